"""plltool: maximum-likelihood phylogenetic trees, computed on an OpenCL device.

Scripts import :mod:`plltool.api`; nothing happens at import.
"""

__version__ = "0.1.0"
