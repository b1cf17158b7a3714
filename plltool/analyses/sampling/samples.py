"""What chains have sampled: trees and numbers of the cold chain of each run."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plltool.analyses.sampling.convergence import effective_size, r_hat, split_deviation
from plltool.analyses.sampling.state import Problem, State
from plltool.analyses.sampling.tree import Topology
from plltool.arrays import FloatArray
from plltool.codec import saved

COLUMNS = "LnL", "LnPr", "TL"  # as in the files of MrBayes, in front of the parameters
FIRST_ROWS = 64  # for which there is room at first


class Sample(NamedTuple):
    """What is kept of the state of a chain: the numbers of all columns, and the tree."""

    numbers: list[float]
    topology: Topology
    lengths: list[float]


def take_sample(state: State, problem: Problem) -> Sample:
    """A sample of a state."""
    shown = [x for own in problem.parameters for x in own.shown(state.models[own.part])]
    return Sample([state.lnl, state.log_prior, sum(state.lengths), *shown], state.topology, state.lengths)


@saved("_array", "_n")
class Rows:
    """Rows of numbers in an array, which grows."""

    def __init__(self, width: int, dtype: npt.DTypeLike):
        self._array = np.empty((FIRST_ROWS, width), dtype)
        self._n = 0

    def append(self, row: Sequence[float]) -> None:
        if self._n == len(self._array):
            self._array = np.concatenate([self._array, np.empty_like(self._array)])
        self._array[self._n] = row
        self._n += 1

    def copy(self) -> Rows:
        """The rows so far; rows are never changed, so the two share them."""
        other = copy.copy(self)
        other._array = self.all
        return other

    @property
    def all(self) -> npt.NDArray[Any]:
        """(n, width)"""
        return self._array[: self._n]


@saved("numbers", "lengths", "left", "right", "splits")
class RunSamples:
    """Samples of one run.

    Attributes
    ----------
    numbers : (n, n_columns)
    lengths : (n, n_nodes) lengths of branches
    left, right : (n, n_nodes) the topologies, see `Topology`
    splits : (n, n_nodes) the splits at the branches, by their numbers
    """

    def __init__(self, n_columns: int, n_nodes: int):
        node = np.min_scalar_type(-n_nodes)
        self.numbers, self.lengths = Rows(n_columns, np.float64), Rows(n_nodes, np.float64)
        self.left, self.right, self.splits = Rows(n_nodes, node), Rows(n_nodes, node), Rows(n_nodes, np.int32)

    def copy(self) -> RunSamples:
        """A copy that does not change when more samples are taken."""
        other = copy.copy(self)
        other.__dict__.update((name, rows.copy()) for name, rows in vars(self).items())
        return other


@saved("n_runs", "columns", "generations", "_n_taxa", "_runs", "_splits")
class Samples:
    """Samples of several runs, generation by generation.

    Attributes
    ----------
    columns : names of the numbers of a sample
    generations : those that were sampled
    """

    def __init__(self, problem: Problem, n_runs: int):
        self.n_runs, self._n_taxa = n_runs, len(problem.names)
        self.columns = (*COLUMNS, *(name for own in problem.parameters for name in own.columns))
        self.generations: list[int] = []
        self._runs = [RunSamples(len(self.columns), 2 * self._n_taxa - 2) for _ in range(n_runs)]
        self._splits: list[int] = []  # by number

    @cached_property
    def _split_numbers(self) -> dict[int, int]:
        return {split: number for number, split in enumerate(self._splits)}

    def copy(self) -> Samples:
        """A copy that does not change when more samples are taken, to be saved."""
        other = copy.copy(self)
        other.generations, other._splits = self.generations.copy(), self._splits.copy()
        other._runs = [own.copy() for own in self._runs]
        return other

    def add(self, generation: int, samples: Sequence[Sample]) -> None:
        """Those of the cold chains of all runs."""
        self.generations.append(generation)
        for run, sample in enumerate(samples):
            self._add(run, *sample)

    def _add(self, run: int, numbers: list[float], topology: Topology, lengths: list[float]) -> None:
        kept, splits = self._runs[run], topology.splits()
        for split in splits:
            if split not in self._split_numbers:
                self._split_numbers[split] = len(self._splits)
                self._splits.append(split)
        kept.numbers.append(numbers)
        kept.lengths.append(lengths)
        kept.left.append(topology.left)
        kept.right.append(topology.right)
        kept.splits.append([self._split_numbers[split] for split in splits])

    def __len__(self) -> int:
        """The number of samples of each run."""
        return len(self.generations)

    def first_after(self, generation: int, share: float, end: int | None = None) -> int:
        """The number of samples to discard of the first `end`: a share of them, and at least those up to a generation.

        The last one is always kept.
        """
        number = len(self) if end is None else end
        early = int(np.searchsorted(self.generations[:number], generation, side="right"))
        return min(max(int(share * number), early), number - 1)

    def numbers(self, first: int = 0) -> FloatArray:
        """(n_runs, n_samples, n_columns) of samples from number `first` on."""
        return np.stack([kept.numbers.all[first:] for kept in self._runs])

    def latest(self, run: int) -> Sample:
        """The last sample of a run."""
        return Sample(self._runs[run].numbers.all[-1].tolist(), *self.tree(run, -1))

    def tree(self, run: int, number: int) -> tuple[Topology, list[float]]:
        """The tree of one sample, with the lengths (n_nodes,) of its branches."""
        kept = self._runs[run]
        left, right = kept.left.all[number], kept.right.all[number]
        parent = find_parents(left[None], right[None])[0]
        topology = Topology(self._n_taxa, parent.tolist(), left.tolist(), right.tolist())
        return topology, kept.lengths.all[number].tolist()

    def split_lengths(self, run: int, number: int) -> dict[int, float]:
        """The branch lengths of a tree by split, tips included, see `plltool.tree.splits`."""
        kept = self._runs[run]
        pairs = zip(kept.splits.all[number].tolist(), kept.lengths.all[number].tolist(), strict=True)
        return {split: length for own, length in pairs if (split := self._splits[own])}

    def split_shares(self, run: int, first: int, end: int | None = None) -> dict[int, float]:
        """The share of the trees of a run, from number `first` to `end`, that have each split of an inner branch."""
        inner = self._runs[run].splits.all[first:end, self._n_taxa :]
        counts = np.bincount(inner.ravel(), minlength=len(self._splits))
        everything = (1 << self._n_taxa) - 2  # all but tip 0: the branch of tip 0, which is no inner one
        found = {self._splits[own]: int(counts[own]) / len(inner) for own in np.flatnonzero(counts).tolist()}
        return {split: share for split, share in found.items() if split != everything}

    def deviation(self, first: int, end: int | None = None) -> float:
        """The average standard deviation of split frequencies of the runs, from sample `first` to `end`."""
        return split_deviation([self.split_shares(run, first, end) for run in range(self.n_runs)])

    def convergence(self, first: int) -> dict[str, tuple[float, float]]:
        """The effective size and R-hat of each column, from sample `first` on."""
        numbers = self.numbers(first)
        return {
            name: (effective_size(numbers[:, :, k]), r_hat(numbers[:, :, k])) for k, name in enumerate(self.columns)
        }


def find_parents(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(n, n_nodes) the node above each node of each tree, from those below it; -1 for none."""
    parent = np.full_like(left, -1)
    for below in (left, right):
        tree, node = np.nonzero(below >= 0)
        parent[tree, below[tree, node]] = node
    return parent
