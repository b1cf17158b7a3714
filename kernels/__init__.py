"""OpenCL C sources, shipped as package data and read with importlib.resources."""
