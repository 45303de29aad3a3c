"""What of the environment gets in the way of a course, and how it is mended."""
