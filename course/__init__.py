"""The course lab kit: an engine that turns folders of chapters into practices, drills and proofs."""

__version__ = "0.1.0"
