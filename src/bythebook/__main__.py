"""`python -m bythebook` is the command line."""

from bythebook.cli import main

main()
