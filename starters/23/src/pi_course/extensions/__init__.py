"""The production loading pipeline: seven modules, each importing only from those before it. (Chapter 23)"""
