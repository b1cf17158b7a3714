"""What drivers need: where their libraries are, how many threads Intel's may use, and where PoCL may write.

Environment variables tell them. They are set only while a driver reads them, and only if the user has not set them, so
that they change neither the rest of the user's process nor the processes that it starts.
"""

import atexit
import contextlib
import ctypes
import functools
import json
import os
import shutil
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

VENDORS_VARIABLE = "OCL_ICD_VENDORS"  # the folder that an OpenCL loader reads instead of its usual one
WITHOUT_INTEL_VARIABLE = "PLLTOOL_WITHOUT_INTEL"  # tells child processes why their parent does without Intel's driver
OUTCOMES_VARIABLE = "PLLTOOL_DEVICE_TESTS"  # tells child processes how their parent's tests of devices ended, as JSON
INTEL_THREADS_VARIABLE = "CL_CONFIG_CPU_TBB_NUM_WORKERS"  # documented in the driver's cl.cfg
POCL_CACHE_VARIABLE = "POCL_CACHE_DIR"
PYOPENCL_CACHE_VARIABLE = "PYOPENCL_NO_CACHE"
BLAS_THREADS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # for numpy
CACHED_BYTES = 1 << 22  # more than the kernels of most runs take
INTEL_LIBRARY = "libintelocl.so"
INTEL_DEPENDENCIES = ("libintlc.so.5", "libimf.so", "libsvml.so", "libirng.so", "libtbb.so.12", "libtbbmalloc.so.2")
SYSTEM_VENDORS = "/etc/OpenCL/vendors"

_NOT_USED = "Intel's OpenCL driver is installed ({}) but not used"
_absent: dict[Path | None, str] = {}  # drivers that were offered in vain, and why
_variables = threading.RLock()  # held while variables of the environment are set

OUTCOMES: dict[str, str | None] = {}  # of tests of devices that this process knows, see `device_faults.find_fault`


@contextlib.contextmanager
def intel_offered(loader_was_used: bool) -> Iterator[list[str]]:
    """Let the OpenCL loader find Intel's driver if pip installed it, beside all other drivers.

    `loader_was_used` says whether this process may have used the loader before, which looks for drivers only once.
    Yields a list that holds one line afterwards if the driver is there but not used.
    """
    library = _find_intel_library()
    known = os.environ.get(WITHOUT_INTEL_VARIABLE) or _absent.get(library)
    problems = [known] if known else []
    if library is None or known or _is_loaded(library):
        yield problems
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_vendors_folder(library))
        except OSError as error:
            problems.append(f"{_NOT_USED.format(library)}: no temporary folder can be written: {error}")
        yield problems
    if not problems and not _is_loaded(library):
        problems.append(_explain_absence(library, loader_was_used))
    if problems:
        _absent[library] = problems[0]


def describe_offer() -> list[str]:
    """A line about Intel's driver if this process has it from plltool; otherwise none."""
    library = _find_intel_library()
    if library is None or library in _absent or not _is_loaded(library):
        return []
    return [f"Intel's OpenCL driver was installed by pip, and plltool loaded it: {library}"]


@contextlib.contextmanager
def caches_settled() -> Iterator[list[str]]:
    """Let pyopencl be imported and devices be listed even if the user's cache cannot be written.

    pyopencl then keeps no compiled kernels, and PoCL keeps them in a temporary folder. Without this, the former fails
    at the first kernel and the latter finds no device. Yields a list with one line if the cache cannot be written.
    """
    cache = user_cache()
    try:
        with tempfile.TemporaryFile(dir=next(folder for folder in (cache, *cache.parents) if folder.exists())) as file:
            file.write(bytes(CACHED_BYTES))  # an empty file would fit on a full disk
    except OSError:
        pass
    else:
        yield []
        return
    with _variables_set({PYOPENCL_CACHE_VARIABLE: "1", POCL_CACHE_VARIABLE: _temporary_cache()}):
        hint = "set XDG_CACHE_HOME to a folder that can be written"
        yield [f"{cache} cannot be written, so that every run has to compile the OpenCL kernels; {hint}"]


@functools.cache
def _temporary_cache() -> str:
    """A folder for compiled kernels, which is removed when this process ends; empty if there is no room for one."""
    try:
        folder = tempfile.mkdtemp(prefix="plltool-")
    except OSError:
        return ""
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def user_cache() -> Path:
    """The folder of the user's caches, which may not exist."""
    home = os.environ.get("HOME") or os.path.expanduser("~")
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")).absolute()


def find_kernel_folder() -> Path:
    """The folder of the kernel files: inside the installed package, beside it in a checkout, which goes first."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "kernels"
    return installed if installed.is_dir() else package.parent / "kernels"


def _find_intel_library() -> Path | None:
    """The library of Intel's driver if pip installed it and the OpenCL loader needs help to find it, else None.

    The loader finds it by itself where the system has Intel's driver as well; a second copy in one process could clash.
    A user who sets OCL_ICD_VENDORS chooses the drivers.
    """
    if os.environ.get(VENDORS_VARIABLE):
        return None
    if any(Path(driver).name.startswith(INTEL_LIBRARY) for driver in _registered_drivers()):
        return None
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    candidates = (Path(sysconfig.get_path("data", scheme)) / "lib" / INTEL_LIBRARY for scheme in schemes)
    return next((library.resolve() for library in candidates if library.is_file()), None)


@contextlib.contextmanager
def _vendors_folder(library: Path) -> Iterator[None]:
    """Set OCL_ICD_VENDORS to a folder of ``.icd`` files: one for the library, and copies of the registered ones.

    The file that Intel's wheel installs itself names a path of the machine that built it. PoCL from PyPI is found
    anyway.
    """
    with _variables, tempfile.TemporaryDirectory(prefix="plltool-") as folder:
        for number, driver in enumerate([*_registered_drivers(), str(library)]):
            (Path(folder) / f"{number}.icd").write_bytes(os.fsencode(driver + "\n"))
        for name in INTEL_DEPENDENCIES:  # from the driver's own folder, so that no library path is needed
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(library.parent / name), ctypes.RTLD_GLOBAL)
        with _variables_set({VENDORS_VARIABLE: folder}):
            yield


def _is_loaded(library: Path) -> bool:
    try:
        ctypes.CDLL(str(library), os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _explain_absence(library: Path, loader_was_used: bool) -> str:
    not_used = _NOT_USED.format(library)
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return f"{not_used}: it cannot be loaded: {error}"
    if loader_was_used:
        hint = "in a new process, call plltool.devices() before anything else uses pyopencl"
        return f"{not_used}: this process had listed the OpenCL platforms before; {hint}"
    return f"{not_used}: it finds no device on this machine"


@dataclass
class IntelThreads:
    """The threads of Intel's driver in this process, which are the same from its first context on.

    The driver accepts sub-devices by counts but runs them on every core (measured, 2026.2). It does obey a variable,
    which it reads with the first context, and which pins nothing, so that several processes share a machine well.
    """

    limit: int | None = None  # their number; None for one per core, or if there has been no context yet
    _settled: bool = False

    @contextlib.contextmanager
    def settled(self, threads: int | None) -> Iterator[None]:
        """Let the first context take `threads`, one per core if None; later ones change nothing."""
        if self._settled:
            yield
            return
        given = os.environ.get(INTEL_THREADS_VARIABLE, "")
        if given or threads is None:
            yield
        else:
            with _variables_set({INTEL_THREADS_VARIABLE: str(threads)}):
                yield
        self.limit = int(given) if given.isdigit() else threads
        self._settled = True


INTEL_THREADS = IntelThreads()


def same_drivers() -> dict[str, str]:
    """Variables for a child process that is to find, and not test again, the drivers of this process."""
    drivers = {WITHOUT_INTEL_VARIABLE: next(iter(_absent.values()))} if _absent else {}
    return {**drivers, OUTCOMES_VARIABLE: json.dumps(OUTCOMES)} if OUTCOMES else drivers


def child_environment(threads: int) -> dict[str, str]:
    """Variables for a child process that may use `threads` cores."""
    threads_variables = (INTEL_THREADS_VARIABLE, *BLAS_THREADS_VARIABLES)
    return {**same_drivers(), **dict.fromkeys(threads_variables, str(threads))}


@contextlib.contextmanager
def _variables_set(values: dict[str, str]) -> Iterator[None]:
    """Set variables of the environment for a while, but for empty values and those that the user has set."""
    with _variables:
        added = {name: value for name, value in values.items() if value and not os.environ.get(name)}
        before = {name: os.environ[name] for name in added.keys() & os.environ.keys()}
        os.environ.update(added)
        try:
            yield
        finally:
            for name in added:
                del os.environ[name]
            os.environ.update(before)


def _registered_drivers() -> list[str]:
    """The libraries that the loader finds without OCL_ICD_VENDORS, as their ``.icd`` files name them."""
    folders = [Path(os.environ.get("OPENCL_VENDOR_PATH") or SYSTEM_VENDORS)]
    if (Path(sys.prefix) / "conda-meta").is_dir():
        folders.append(Path(sys.prefix) / "etc" / "OpenCL" / "vendors")
    return list(dict.fromkeys(driver for folder in folders for driver in read_vendors(folder)))


def read_vendors(folder: Path) -> Iterator[str]:
    """The libraries that the ``.icd`` files of a folder name."""
    for file in sorted(folder.glob("*.icd")):
        with contextlib.suppress(OSError):
            if name := file.read_text(encoding="utf-8", errors="surrogateescape").strip():
                yield name


# --- drivers of GPUs on the disk, whether or not the loader is told of them -------------------------------------

GPU_LIBRARIES = {  # the OpenCL drivers of GPUs, and the file that a GPU of this kind has where its kernel module runs
    "libnvidia-opencl.so.1": "dev/nvidiactl",
    "libamdocl64.so": "dev/kfd",
    "libigdrcl.so": "dev/dri/renderD*",
}
WSL_GPU = "dev/dxg"  # of every make, in Windows' Linux
LIBRARY_FOLDERS = (  # where vendors, distributions, containers and WSL put libraries; searched with their folders
    "/usr/local/nvidia",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl",
    "/opt/rocm",
    "/opt/amdgpu",
    "/opt/intel",
)
USER_VENDORS = "~/.opencl"  # a folder for .icd files that needs no root


def find_gpu_drivers(folders: Sequence[str] = LIBRARY_FOLDERS) -> list[Path]:
    """The OpenCL drivers of GPUs on the disk, one for each vendor."""
    found: dict[str, Path] = {}
    for folder in folders:
        for root, _, files in os.walk(folder):
            for name in GPU_LIBRARIES.keys() & files:
                found.setdefault(name, Path(root) / name)
    return list(found.values())


def registered_libraries() -> set[str]:
    """The file names of the drivers that the loader is told of, by OCL_ICD_VENDORS or as usual."""
    return {Path(name).name for name in read_vendors(Path(os.environ.get(VENDORS_VARIABLE) or SYSTEM_VENDORS))}


def advise_on_gpus(folders: Sequence[str] = LIBRARY_FOLDERS, devices: Path = Path("/")) -> list[str]:
    """A line for each GPU driver that the loader misses, and for each GPU without a driver, with what to do.

    `devices` is the folder in which the files of devices are, such as ``dev/nvidiactl``.
    """
    drivers = {driver.name: driver for driver in find_gpu_drivers(folders)}
    known = registered_libraries()
    lines = []
    for name, file in GPU_LIBRARIES.items():
        gpu = next((found for kind in (file, WSL_GPU) for found in devices.glob(kind)), None)
        if gpu is None or (gpu.name == Path(WSL_GPU).name and name not in drivers):
            continue  # there is none, or one of another make
        if name in drivers and not any(own.startswith(name) for own in known):
            vendors = USER_VENDORS
            lines.append(
                f"{drivers[name]} drives a GPU, but the OpenCL loader is not told of it. Paste: mkdir -p {vendors} &&"
                f" echo {drivers[name]} > {vendors}/{name.split('.')[0]}.icd && export {VENDORS_VARIABLE}={vendors}"
            )
        elif name not in drivers:
            lines.append(
                f"/{gpu.relative_to(devices)} tells of a GPU, but its OpenCL driver, {name}, is missing. Install it, or"
                f" let the container have it; for NVIDIA's: docker run --gpus all --env"
                f" NVIDIA_DRIVER_CAPABILITIES=compute,utility"
            )
    return lines
