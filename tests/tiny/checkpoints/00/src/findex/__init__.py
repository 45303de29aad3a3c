"""A small text-search index, rebuilt chapter by chapter."""
