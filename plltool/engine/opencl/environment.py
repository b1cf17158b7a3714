"""Makes OpenCL drivers that pip installed usable; for the command line only, before OpenCL loads.

The library itself never changes the process's environment. A script that wants what the command does calls
`prepare_environment` before it imports pyopencl.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import sys
import tempfile
from pathlib import Path

VENDORS_VARIABLE = "OCL_ICD_VENDORS"  # the folder that an OpenCL loader reads instead of its usual one
INTEL_THREADS_VARIABLE = "CL_CONFIG_CPU_TBB_NUM_WORKERS"  # documented in the runtime's cl.cfg
BLAS_THREADS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # for numpy
INTEL_LIBRARY = "libintelocl.so"
INTEL_DEPENDENCIES = (
    "libintlc.so.5",
    "libimf.so",
    "libsvml.so",
    "libirng.so",
    "libtbb.so.12",
    "libtbbmalloc.so.2",
)
SYSTEM_VENDORS = "/etc/OpenCL/vendors"


def prepare_environment(threads: int | None = None) -> list[str]:
    """Offer a pip-installed Intel runtime to the OpenCL loader, and tell it how many threads it may use.

    The `.icd` file that Intel's wheel installs names a path of its build machine. This writes a correct one, beside
    copies of those that the loader would have read, into a folder of the user's cache, and names the folder in
    OCL_ICD_VENDORS; the PoCL of the pyopencl wheel is found whatever that variable says. Values that the user gave
    stay. Repeated calls change nothing.

    Parameters
    ----------
    threads : cores that a CPU device may use. Only Intel's runtime needs it here: it accepts sub-devices by counts
        but runs them on every core (measured, 2026.2), and reads its number of threads when it loads. Unlike CPU
        affinity this pins nothing, so several runs share a machine well.

    Returns
    -------
    One line for each thing done or not possible.
    """
    lines = []
    library = Path(sys.prefix) / "lib" / INTEL_LIBRARY
    if library.is_file():
        lines += _offer_intel(library.resolve())
    if threads is not None and not os.environ.get(INTEL_THREADS_VARIABLE):
        os.environ[INTEL_THREADS_VARIABLE] = str(threads)
        lines.append(f"{INTEL_THREADS_VARIABLE}={threads} (for Intel's OpenCL runtime)")
    return lines


def child_environment(threads: int) -> dict[str, str]:
    """What a child process that is to use so many cores needs in its environment, on top of this process's."""
    return {INTEL_THREADS_VARIABLE: str(threads), **dict.fromkeys(BLAS_THREADS_VARIABLES, str(threads))}


def prepare_child() -> None:
    """Do in a child what the parent has done, if it has called `prepare_environment`."""
    if VENDORS_VARIABLE in os.environ:
        prepare_environment()


def _offer_intel(library: Path) -> list[str]:
    drivers = _registered_drivers()
    if any(Path(driver).name.startswith(INTEL_LIBRARY) for driver in drivers):
        return []  # the system has one already; two in one process could clash
    try:
        folder = _write_vendors([*drivers, str(library)])
    except (OSError, RuntimeError) as error:
        return [f"Intel's OpenCL runtime is not used, its driver file cannot be written to the user's cache: {error}"]
    if os.environ.setdefault(VENDORS_VARIABLE, str(folder)) != str(folder):
        return []
    _load_dependencies(library.parent)
    return [f"{VENDORS_VARIABLE}={folder} (for Intel's OpenCL runtime in {sys.prefix})"]


def _registered_drivers() -> list[str]:
    """The libraries that the loader would find without OCL_ICD_VENDORS, as their `.icd` files name them."""
    folders = [Path(os.environ.get("OPENCL_VENDOR_PATH") or SYSTEM_VENDORS)]
    if (Path(sys.prefix) / "conda-meta").is_dir():
        folders.append(Path(sys.prefix) / "etc" / "OpenCL" / "vendors")
    drivers = []
    for file in (file for folder in folders for file in sorted(folder.glob("*.icd"))):
        with contextlib.suppress(OSError):
            drivers.append(file.read_text(encoding="utf-8", errors="surrogateescape").strip())
    return list(dict.fromkeys(filter(None, drivers)))


def _cache_folder() -> Path:
    """plltool's folder in the user's cache; RuntimeError if the user has no home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "plltool"


def _write_vendors(drivers: list[str]) -> Path:
    """A folder with one `.icd` file per driver, named by its content: other environments use other folders."""
    digest = hashlib.sha256(os.fsencode("\n".join(drivers))).hexdigest()[:16]
    folder = _cache_folder() / "vendors" / digest
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for k, driver in enumerate(drivers):
        file, content = folder / f"{k}.icd", os.fsencode(driver + "\n")
        if not file.is_file() or file.read_bytes() != content:
            _write_atomically(file, content)
    return folder


def _write_atomically(file: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(temporary, file)
    except OSError:
        os.unlink(temporary)
        raise


def _load_dependencies(folder: Path) -> None:
    """Load what the runtime links to from its own folder, so that no library path is needed."""
    for name in INTEL_DEPENDENCIES:
        with contextlib.suppress(OSError):
            ctypes.CDLL(str(folder / name), ctypes.RTLD_GLOBAL)
