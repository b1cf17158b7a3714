"""The likelihood engines: one protocol, a numpy and an OpenCL implementation."""
