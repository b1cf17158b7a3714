"""The instruction builders: eight words each, arguments broadcast."""

import numpy as np

from plltool.engine import program as prog
from plltool.engine.contract import INSTRUCTION_WORDS, InstructionWord, Opcode


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


def test_only_the_first_of_slopes_makes_lnl():
    rows = prog.slopes([0, 3, 6], 1, ~np.arange(3), 5)
    expected = prog.derivative([0, 3, 6], 1, ~np.arange(3), 5)
    expected[1:, InstructionWord.C] = 1
    assert rows.tolist() == expected.tolist()


def test_arguments_are_broadcast():
    program = prog.newview(np.arange(3), ~np.arange(3), 5, [7, 8, 9], 6)
    assert program[:, :6].tolist() == [[1, 0, -1, 5, 7, 6], [1, 1, -2, 5, 8, 6], [1, 2, -3, 5, 9, 6]]


def test_none_at_all():
    empty = np.zeros(0, dtype=np.int32)
    assert prog.insert(empty, empty, empty, empty, empty, 3).shape == (0, INSTRUCTION_WORDS)


def run_symbolically(program):
    """The values of a program, and the CLAs that it makes in order, as nested tuples of what they are made of."""
    slots, values, made = {}, [], []
    for op, result, *words in program.tolist():
        a, pa, b, pb, c, pc = words
        n_read = {Opcode.PROPAGATE: 1, Opcode.INSERT: 3, Opcode.TRIPLET: 3}.get(op, 2)
        operands = [slots[slot] if slot >= 0 else slot for slot in (a, b, c)[:n_read]]
        term = (op, *operands, pa, pb, pc)
        if op < Opcode.EVALUATE:
            slots[result] = term
            made.append(term)
        else:
            values.append((result, term))
    return values, made


def terms_in(term):
    """A term and all that it is made of."""
    yield term
    for part in term:
        if isinstance(part, tuple):
            yield from terms_in(part)


def random_program(rng, n_slots=6, n_instructions=40):
    """Instructions that read tips and slots that are written, in slots that are used again and again."""
    rows, written = [prog.newview(0, ~0, 0, ~1, 1)], {0}
    for _ in range(n_instructions):
        a, b, c = (int(rng.choice([~2, *written])) for _ in range(3))
        k, slot = (int(rng.integers(n)) for n in (6, n_slots))
        row = [
            prog.propagate(slot, a, k),
            prog.newview(slot, a, k, b, k + 1),
            prog.evaluate(k, a, b, k),
            prog.derivative(k, a, b, k),
            prog.insert(k, a, k, b, k + 1, c),
            prog.triplet(k, a, k, b, k + 1, c, k + 2),
        ][min(k, int(rng.integers(12)))]
        rows.append(row)
        if row[0, 0] < Opcode.EVALUATE:
            written.add(slot)
    return np.concatenate(rows)


def test_clas_that_no_value_needs_are_left_out():
    rng = np.random.default_rng(4)
    lost = 0
    for _ in range(200):
        program = random_program(rng)
        values, made = run_symbolically(program)
        short = prog.without_unread(program)
        found, still_made = run_symbolically(short)
        assert found == values
        needed = {term for _, value in values for term in terms_in(value)}
        assert all(term in needed for term in still_made)
        lost += len(made) - len(still_made)
    assert lost > 200
