"""What the result of every run has: its data, its device and how long it took."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata

from plltool.constants import VERSION
from plltool.io.files import Recorded
from plltool.model.partition import Dataset
from plltool.reports.shown import Shown

LIBRARIES = ("numpy", "scipy", "pyopencl")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RunResult(Recorded, Shown):
    """The result of a run.

    Attributes
    ----------
    data : the alignment, cut into parts
    n_taxa, n_sites, n_patterns : size of the alignment
    device, reason : the device that did the arithmetic, and why it was chosen
    driver : the driver of the device, with its version
    seed : seed of all random choices; None if there were none
    seconds : wall time of the whole run
    warnings : what a user should know, one line each
    version, software : versions of plltool, and of Python and the libraries on which digits may depend
    """

    data: Dataset
    n_patterns: int
    device: str
    driver: str
    reason: str
    seed: int | None
    seconds: float
    warnings: tuple[str, ...]
    version: str = VERSION

    @property
    def n_taxa(self) -> int:
        """Number of taxa of the alignment."""
        return self.data.n_sequences

    @property
    def n_sites(self) -> int:
        """Number of sites of the alignment."""
        return self.data.n_sites

    @property
    def software(self) -> dict[str, str]:
        """Versions of Python and of the libraries on which digits may depend."""
        return software_versions()


def software_versions() -> dict[str, str]:
    """Versions of Python and of the libraries on which digits may depend."""
    return {"Python": platform.python_version()} | installed_versions(LIBRARIES)


def installed_versions(packages: Sequence[str]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found = {}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
