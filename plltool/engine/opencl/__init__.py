"""The OpenCL engine; the only place that imports pyopencl."""
