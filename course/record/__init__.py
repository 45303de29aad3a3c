"""The acceptance record of a practice."""
