"""plltool: maximum-likelihood phylogenetic trees, computed on an OpenCL device.

    import plltool
    result = plltool.search("primates.phy", model="GTR+F+G4")
    print(result.lnl, result.newick)

`plltool/__init__.pyi` lists everything that scripts use; a name is imported when it is first used, and nothing else
happens at import. Progress goes to the logger "plltool". What you should know of a run is in the warnings of its
result. A device or driver that cannot be used is also a `PlltoolWarning`.
"""

import lazy_loader

from plltool.constants import VERSION

__version__ = VERSION
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
