"""The software that a run stands on."""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib import metadata

LIBRARIES = ("numpy", "scipy", "pyopencl")


def software_versions() -> dict[str, str]:
    """Versions of Python and of the libraries on which digits may depend."""
    found = {"Python": platform.python_version()}
    for library in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found
