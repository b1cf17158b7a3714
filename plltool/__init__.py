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
_find, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """A public name, or an error that says which one may have been meant."""
    try:
        return _find(name)
    except AttributeError as error:
        from difflib import get_close_matches

        close = get_close_matches(name, __all__, 1)
        if error.name is not None or not close:
            raise
        raise AttributeError(f"module 'plltool' has no attribute {name!r}; did you mean {close[0]!r}?") from None
