"""`python -m plltool` is the command line."""

from plltool.cli import main

if __name__ == "__main__":
    main(prog_name="plltool")
