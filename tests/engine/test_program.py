"""The instruction builders: eight words each, arguments broadcast."""

import numpy as np

from plltool.engine import program as prog


def test_words_stand_where_the_kernel_reads_them():
    rows = {
        "propagate": (prog.propagate(7, 1, 2), [prog.PROPAGATE, 7, 1, 2, 0, 0, 0, 0]),
        "newview": (prog.newview(7, 1, 2, ~3, 4), [prog.NEWVIEW, 7, 1, 2, -4, 4, 0, 0]),
        "evaluate": (prog.evaluate(7, 1, ~2, 3), [prog.EVALUATE, 7, 1, 0, -3, 3, 0, 0]),
        "derivative": (prog.derivative(7, 1, ~2, 3), [prog.DERIVATIVE, 7, 1, 0, -3, 3, 0, 0]),
        "insert": (prog.insert(7, 1, 2, 3, 4, 5), [prog.INSERT, 7, 1, 2, 3, 4, 5, 0]),
        "triplet": (prog.triplet(7, 1, 2, 3, 4, 5, 6), [prog.TRIPLET, 7, 1, 2, 3, 4, 5, 6]),
    }
    for name, (found, expected) in rows.items():
        assert found.tolist() == [expected], name
        assert found.dtype == np.int32


def test_opcodes_are_those_of_the_kernel():
    """As `kernels/traverse.cl` defines them."""
    opcodes = (prog.PROPAGATE, prog.NEWVIEW, prog.EVALUATE, prog.DERIVATIVE, prog.INSERT, prog.TRIPLET)
    assert opcodes == (0, 1, 2, 3, 4, 5)


def test_arguments_are_broadcast():
    program = prog.newview(np.arange(3), ~np.arange(3), 5, [7, 8, 9], 6)
    assert program[:, :6].tolist() == [[1, 0, -1, 5, 7, 6], [1, 1, -2, 5, 8, 6], [1, 2, -3, 5, 9, 6]]


def test_none_at_all():
    empty = np.zeros(0, dtype=np.int32)
    assert prog.insert(empty, empty, empty, empty, empty, 3).shape == (0, prog.N_WORDS)
