"""Which OpenCL drivers lie on this machine's disk, whether or not the OpenCL loader is told of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from plltool.engine.opencl.environment import SYSTEM_VENDORS, VENDORS_VARIABLE, read_vendors

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
