"""Stands in the way of the real pyopencl: ``pytest --no-opencl`` puts this folder into PYTHONPATH."""

raise ModuleNotFoundError("pyopencl is blocked by pytest --no-opencl", name="pyopencl")
