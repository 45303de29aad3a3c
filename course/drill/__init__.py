"""Fault injection: planted mistakes, and which tests catch them."""
