"""`python -m bythebook` runs the command line."""

from bythebook.cli import main

main()
