"""One program with everything in it, and whether an engine answers it as the numpy engine does."""

import numpy as np
from helpers import numpy_engine, program_to_branch, program_to_node

from plltool.engine import program as prog


def everything(rng, ends, n_taxa):
    """A program with every instruction on every place of a tree, slot, tip and mixed operands; and its n_values.

    Returns (program, n_values, kind of each value: "lnl" or "slope").
    """
    n_branches = len(ends)
    rows, kinds = [], []
    scratch = n_taxa - 2
    for branch in range(n_branches):
        program, a, b = program_to_branch(ends, n_taxa, branch)
        rows += [program, prog.evaluate(len(kinds), a, b, branch), prog.evaluate(len(kinds) + 1, b, a, branch)]
        kinds += ["lnl"] * 2
        rows += [prog.derivative(len(kinds), a, b, branch)]
        kinds += ["lnl", "slope", "slope"]
    for node in range(n_taxa, 2 * n_taxa - 2):
        program, around = program_to_node(ends, n_taxa, node)
        (a, pa), (b, pb), (c, pc) = (around[k] for k in rng.permutation(3))
        rows += [program, prog.propagate(scratch, c, pc), prog.insert(len(kinds), a, pa, b, pb, scratch)]
        kinds += ["lnl"]
        rows += [prog.triplet(len(kinds), a, pa, b, pb, c, pc)]
        kinds += ["lnl"] + ["slope"] * 9
    return np.concatenate(rows), len(kinds), np.array(kinds)


def one_part_per_pattern(mixtures, parts):
    return [mixture for mixture, n in zip(mixtures, parts, strict=True) for _ in range(n)]


def relative_errors(engine, program, n_values, kinds, lengths, codes, weights, mixtures, parts, state_sets=None):
    """(n_parts, n_values): of the value itself if it is a lnL, of the sum of absolute contributions if it is a slope.

    A contribution counts as 1 at least, the size of a rate matrix: those of an undetermined taxon cancel to 0.
    """
    n_patterns = sum(parts)
    single = numpy_engine(
        engine.n_slots,
        codes,
        np.ones(n_patterns),
        one_part_per_pattern(mixtures, parts),
        (1,) * n_patterns,
        state_sets=state_sets,
    )
    per_pattern = single.execute(prog.Request(program, n_values), lengths)
    of_part = np.repeat(np.arange(len(parts)), parts)
    members = of_part == np.arange(len(parts))[:, None]
    expected = (members * weights) @ per_pattern
    size = (members * weights) @ np.maximum(np.abs(per_pattern), 1.0)
    found = engine.execute(prog.Request(program, n_values), lengths)
    assert found.shape == expected.shape
    return np.abs(found - expected) / np.maximum(np.where(kinds == "lnl", np.abs(expected), size), np.finfo(float).tiny)


def assert_engines_agree(engine, program, n_values, kinds, lengths, codes, weights, mixtures, parts, rtol, *others):
    """Each value to `rtol`, by the errors above, of which the largest is returned."""
    errors = relative_errors(engine, program, n_values, kinds, lengths, codes, weights, mixtures, parts, *others)
    assert errors.max() <= rtol, f"{errors.max():.2g} at value {np.unravel_index(errors.argmax(), errors.shape)}"
    return errors.max()
