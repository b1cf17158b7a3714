"""`plltool bench`: throughput of an engine."""
