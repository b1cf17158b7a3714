"""Trees in time."""
