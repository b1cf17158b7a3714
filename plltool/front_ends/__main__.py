"""`python -m plltool.front_ends PROGRAM ARGUMENTS` runs a front end; `plltool.registry.FRONT_ENDS` has their names."""

import logging
import sys
from collections.abc import Sequence
from importlib import import_module

from plltool import PlltoolError
from plltool.cli.terminal import settle_process
from plltool.front_ends.options import UsageError
from plltool.registry import FRONT_ENDS

EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130


def main(program: str, arguments: Sequence[str]) -> int:
    settle_process()
    try:
        own = next((own for own, names in FRONT_ENDS.items() if program in names), None)
        if own is None:
            raise UsageError(f"found no front end of this name, expected one of: {', '.join(FRONT_ENDS)}")
        import_module(f"plltool.front_ends.{own.lower().replace('-', '_')}").run(arguments)
    except (PlltoolError, KeyboardInterrupt, OSError) as error:
        print(f"{program} (plltool): error: {' '.join(str(error).split()) or 'interrupted'}", file=sys.stderr)
        is_stopped = isinstance(error, KeyboardInterrupt)
        return EXIT_INTERRUPTED if is_stopped else EXIT_USAGE if isinstance(error, UsageError) else EXIT_ERROR
    return EXIT_OK


if __name__ == "__main__":
    logging.raiseExceptions = False  # where the reader of stdout has gone, as `head` does, the files are still written
    sys.exit(main("".join(sys.argv[1:2]), sys.argv[2:]))
