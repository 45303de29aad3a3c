"""`python -m course`: the command where it is not on PATH."""

from course.cli import main

if __name__ == "__main__":
    main()
