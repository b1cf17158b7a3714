"""The instruction builders: eight words each, arguments broadcast."""

import numpy as np

from plltool.engine import program as prog
from plltool.engine.contract import INSTRUCTION_WORDS, Opcode


def test_words_stand_where_the_kernel_reads_them():
    rows = {
        "propagate": (prog.propagate(7, 1, 2), [Opcode.PROPAGATE, 7, 1, 2, 0, 0, 0, 0]),
        "newview": (prog.newview(7, 1, 2, ~3, 4), [Opcode.NEWVIEW, 7, 1, 2, -4, 4, 0, 0]),
        "evaluate": (prog.evaluate(7, 1, ~2, 3), [Opcode.EVALUATE, 7, 1, 0, -3, 3, 0, 0]),
        "derivative": (prog.derivative(7, 1, ~2, 3), [Opcode.DERIVATIVE, 7, 1, 0, -3, 3, 0, 0]),
        "insert": (prog.insert(7, 1, 2, 3, 4, 5), [Opcode.INSERT, 7, 1, 2, 3, 4, 5, 0]),
        "rate_matrix_gradient": (
            prog.rate_matrix_gradient(7, 1, ~2, 3),
            [Opcode.RATE_MATRIX_GRADIENT, 7, 1, 0, -3, 3, 1, 0],
        ),
        "mass_gradient": (prog.mass_gradient(7, 1, ~2, 3), [Opcode.MASS_GRADIENT, 7, 1, 0, -3, 3, 0, 0]),
        "triplet": (prog.triplet(7, 1, 2, 3, 4, 5, 6), [Opcode.TRIPLET, 7, 1, 2, 3, 4, 5, 6]),
    }
    for name, (found, expected) in rows.items():
        assert found.tolist() == [expected], name
        assert found.dtype == np.int32


def test_arguments_are_broadcast():
    program = prog.newview(np.arange(3), ~np.arange(3), 5, [7, 8, 9], 6)
    assert program[:, :6].tolist() == [[1, 0, -1, 5, 7, 6], [1, 1, -2, 5, 8, 6], [1, 2, -3, 5, 9, 6]]


def test_none_at_all():
    empty = np.zeros(0, dtype=np.int32)
    assert prog.insert(empty, empty, empty, empty, empty, 3).shape == (0, INSTRUCTION_WORDS)
