"""`python -m plltool` is the command line."""

from plltool.cli import main

main(prog_name="plltool")
