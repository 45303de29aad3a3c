"""The production loading pipeline, from a path to a tool call that an extension blocks. (Chapter 23)"""
