"""The benchmark of a device."""
