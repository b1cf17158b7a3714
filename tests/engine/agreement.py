"""A case for engines: random tips on a random tree, one program with everything in it, and whether engines agree."""

import numpy as np
from helpers import (
    as_masks,
    evaluate_edges,
    lnl_of_sites,
    make_tree,
    numpy_engine,
    program_to_branch,
    program_to_node,
    random_ends,
    random_mixture,
    random_tips,
)
from oracles.likelihood import brute_force, derivative, pruning

from plltool.engine import program as prog
from plltool.optimise.likelihood import TreeLikelihood


def everything(rng, ends, n_taxa):
    """A program with every instruction on every place of a tree, slot, tip and mixed operands; and its n_values.

    Returns (program, n_values, kind of each value: "lnl" or "slope").
    """
    rows, kinds = [], []
    scratch = n_taxa - 2
    for branch in range(len(ends)):
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


def joins(around, scratch, turn=0):
    """INSERT, then TRIPLET, at a node with these neighbours (operand, branch), of which the last is propagated."""
    (a, pa), (b, pb), (c, pc) = (around[(turn + k) % 3] for k in range(3))
    rows = [prog.propagate(scratch, c, pc), prog.insert(0, a, pa, b, pb, scratch), prog.triplet(1, a, pa, b, pb, c, pc)]
    return np.concatenate(rows)


class Case:
    """Parts with a random model each, on one tree; `more` goes to `random_tips`."""

    def __init__(self, seed, n_taxa=5, parts=(9,), n_states=4, n_components=4, **more):
        self.rng = rng = np.random.default_rng(seed)
        self.n_taxa, self.parts = n_taxa, tuple(parts)
        self.ends, self.lengths = random_ends(rng, n_taxa)
        self.mixtures = [random_mixture(rng, n_states, n_components) for _ in parts]
        self.codes, self.state_sets = random_tips(rng, n_taxa, sum(parts), n_states, **more)
        self.weights = rng.integers(1, 9, sum(parts)).astype(float)

    @classmethod
    def of(cls, ends, lengths, mixture, codes, weights=None, state_sets=None):
        """One part with what is given, in place of random numbers."""
        case = cls.__new__(cls)
        case.ends, case.lengths, case.mixtures = np.asarray(ends), np.asarray(lengths), [mixture]
        case.codes, case.state_sets = codes, state_sets
        case.n_taxa, case.parts = len(codes), (codes.shape[1],)
        case.weights = np.ones(codes.shape[1]) if weights is None else weights
        return case

    def engine(self, make_engine, kind, n_slots=None, **more):
        n_slots, given = n_slots or self.n_taxa - 1, (self.codes, self.weights, self.mixtures, self.parts)
        return make_engine(kind, n_slots, *given, state_sets=self.state_sets, **more)

    def likelihood(self, make_engine, kind, n_slots=None, **more):
        """On the case's tree, with the models as they are."""
        engine = self.engine(make_engine, kind, n_slots or 3 * (self.n_taxa - 2), **more)
        models = [mixture.as_model() for mixture in self.mixtures]
        return TreeLikelihood(make_tree(self.ends, self.lengths, self.n_taxa), models, engine)

    def of_part(self, part):
        """The patterns of a part."""
        end = sum(self.parts[: part + 1])
        return slice(end - self.parts[part], end)

    def columns(self, part=0):
        """What the oracle takes."""
        return as_masks(self.codes, self.state_sets)[:, self.of_part(part)].swapaxes(0, 1).tolist()

    def site_lnl(self, oracle=brute_force, lengths=None):
        """lnL of each pattern by an oracle; lengths, those of the case unless told, may be (n_parts, n_branches)."""
        lengths = self.lengths if lengths is None else lengths
        lengths = np.broadcast_to(lengths, (len(self.parts), lengths.shape[-1]))
        parts = zip(lengths, self.mixtures, strict=True)
        lnls = [oracle(self.ends.tolist(), at, self.columns(p), own.oracle) for p, (at, own) in enumerate(parts)]
        return np.concatenate(lnls)

    def sums(self, values):
        """(n_parts,) weighted sums of values of patterns."""
        return np.add.reduceat(values * self.weights, np.cumsum((0, *self.parts[:-1])))

    def to(self, branch=0):
        """Newviews that look across a branch, and its operands."""
        return program_to_branch(self.ends, self.n_taxa, branch)

    def across(self, branch=0):
        """A request for lnL across a branch, with all newviews."""
        program, a, b = self.to(branch)
        return prog.Request(np.concatenate([program, prog.evaluate(0, a, b, branch)]), 1)

    def lnl_at(self, *changed):
        """lnL of each pattern of one part by the oracle, with other lengths of some branches: (branch, length)."""
        lengths = self.lengths.copy()
        for branch, length in changed:
            lengths[branch] = length
        return self.site_lnl(pruning, lengths)

    def slopes(self, branch, step=0.01):
        """(d1, d2) of lnL of each pattern of one part in a branch, by differences of the oracle; steps are relative."""
        t = self.lengths[branch]
        return derivative(lambda length: self.lnl_at((branch, length)), t, step * t)

    def lnl_on(self, engine, branch=0, lengths=None):
        """(n_parts,) lnL across a branch, whose CLAs the engine then has."""
        program, a, b = self.to(branch)
        lengths = self.lengths if lengths is None else lengths
        engine.run(program, lengths)
        return evaluate_edges(engine, [(a, b, branch)], lengths)[0]

    def sites_on(self, engine, branch=0):
        """lnL of each pattern across a branch, not weighted."""
        program, a, b = self.to(branch)
        return lnl_of_sites(engine, a, b, branch, self.lengths, program)

    def lnl_everywhere(self, engine, branches, node):
        """lnL of one part by every instruction that gives one: across branches, and at a node in each role."""
        found = []
        for branch in branches:
            program, a, b = self.to(branch)
            engine.run(program, self.lengths)
            edges = [(a, b, branch), (b, a, branch)]
            found += evaluate_edges(engine, edges, self.lengths)[:, 0].tolist()
            found += engine.derivatives(edges, self.lengths)[:, 0, 0].tolist()
        program, around = program_to_node(self.ends, self.n_taxa, node)
        for turn in range(3):
            whole = np.concatenate([program, joins(around, self.n_taxa - 2, turn)])
            found += engine.execute(prog.Request(whole, 11), self.lengths)[0, :2].tolist()
        return np.array(found)

    def everything(self):
        return everything(self.rng, self.ends, self.n_taxa)

    def errors(self, engine, program, n_values, kinds):
        """(n_parts, n_values): of the value itself if it is a lnL, of the sum of absolute contributions if a slope.

        A contribution counts as 1 at least, the size of a rate matrix: those of an undetermined taxon cancel to 0.
        """
        n, of_part = len(self.weights), np.repeat(np.arange(len(self.parts)), self.parts)
        each = [self.mixtures[part] for part in of_part]
        single = numpy_engine(engine.n_slots, self.codes, np.ones(n), each, (1,) * n, state_sets=self.state_sets)
        per_pattern = single.execute(prog.Request(program, n_values), self.lengths)
        members = (of_part == np.arange(len(self.parts))[:, None]) * self.weights
        expected, size = members @ per_pattern, members @ np.maximum(np.abs(per_pattern), 1.0)
        found = engine.execute(prog.Request(program, n_values), self.lengths)
        assert found.shape == expected.shape
        size = np.maximum(np.where(kinds == "lnl", np.abs(expected), size), np.finfo(float).tiny)
        return np.abs(found - expected) / size

    def assert_agrees(self, engine, rtol):
        """Each value of everything to `rtol`, by the errors above, of which the largest is returned."""
        errors = self.errors(engine, *self.everything())
        assert errors.max() <= rtol, f"{errors.max():.2g} at value {np.unravel_index(errors.argmax(), errors.shape)}"
        return errors.max()
