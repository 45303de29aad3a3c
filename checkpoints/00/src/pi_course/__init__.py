"""A small coding-agent runtime, rebuilt chapter by chapter."""
