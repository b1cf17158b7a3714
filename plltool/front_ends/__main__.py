"""`python -m plltool.front_ends PROGRAM ARGUMENTS` runs a front end, one of `plltool.registry.FRONT_ENDS`."""

import logging
import sys
from collections.abc import Sequence
from importlib import import_module

from plltool import PlltoolError
from plltool.cli.terminal import settle_process
from plltool.front_ends.options import UsageError

EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130


def main(program: str, arguments: Sequence[str]) -> int:
    settle_process()
    try:
        import_module(f"plltool.front_ends.{program.lower().replace('-', '_')}").run(arguments)
    except (PlltoolError, KeyboardInterrupt, BrokenPipeError) as error:
        print(f"{program} (plltool): error: {' '.join(str(error).split()) or 'interrupted'}", file=sys.stderr)
        is_stopped = isinstance(error, KeyboardInterrupt)
        return EXIT_INTERRUPTED if is_stopped else EXIT_USAGE if isinstance(error, UsageError) else EXIT_ERROR
    return EXIT_OK


if __name__ == "__main__":
    logging.raiseExceptions = False  # where the reader of stdout has gone, as `head` does, the files are still written
    sys.exit(main(sys.argv[1], sys.argv[2:]))
