"""Child processes: a Python that imports the plltool of its parent, and nothing from the current folder.

A child started with ``python -m`` or ``python -c`` looks in the current folder first. In a checkout it would find the
folder ``plltool`` there instead of the package that its parent uses.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from plltool.errors import DeviceError

HOME = str(Path(__file__).absolute().parents[2])  # the folder that holds plltool
START = """\
import json, pkgutil, sys
path, target, arguments = json.loads(sys.argv[1])
sys.path[:] = path
import plltool  # found in the first folder of the path, which has nothing else to offer
del sys.path[0]
sys.exit(pkgutil.resolve_name(target)(*arguments))
"""


def child_command(target: str, *arguments: str) -> list[str]:
    """The command line of a child process that calls a function, and exits with what it returns.

    The child imports what this process would import, except from folders that are named relative to the current one.
    The function is named as "plltool.module:function". Raises DeviceError if there is no Python interpreter to start,
    see `can_start_children`.
    """
    executable = _find_interpreter()
    if executable is None:
        hint = "name an interpreter with multiprocessing.set_executable(), or use one worker"
        raise DeviceError(f"this program has no Python interpreter that child processes can run in; {hint}")
    path = [HOME, *(folder for folder in sys.path if os.path.isabs(folder))]
    return [executable, "-P", "-c", START, json.dumps([path, target, arguments])]


def can_start_children() -> bool:
    """Whether this process knows a Python interpreter. A frozen program, or one that embeds Python, may not."""
    return _find_interpreter() is not None


def _find_interpreter() -> str | None:
    from multiprocessing import spawn

    executable = os.fsdecode(spawn.get_executable() or "")
    is_program = getattr(sys, "frozen", False) and executable == sys.executable  # a child would be the program again
    return None if is_program or not executable else executable
