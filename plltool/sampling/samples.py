"""What chains have sampled: trees and numbers of the cold chain of each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IntArray
from plltool.sampling.state import Problem, State
from plltool.sampling.tree import Topology
from plltool.statistics.convergence import effective_size, r_hat, split_deviation

COLUMNS = "LnL", "LnPr", "TL"  # as in the files of MrBayes, in front of the parameters


class Sample(NamedTuple):
    """What is kept of the state of a chain: the numbers of all columns, and the tree."""

    numbers: list[float]
    topology: Topology
    lengths: list[float]


def take_sample(state: State, problem: Problem) -> Sample:
    """A sample of a state."""
    shown = [x for own in problem.parameters for x in own.shown(state.models[own.part])]
    return Sample([state.lnl, state.log_prior, sum(state.lengths), *shown], state.topology, state.lengths)


class Samples:
    """Samples of several runs, generation by generation.

    Attributes
    ----------
    columns : names of the numbers of a sample
    generations : those that were sampled
    """

    def __init__(self, problem: Problem, n_runs: int):
        self._problem = problem
        self.n_runs = n_runs
        self.columns = (*COLUMNS, *(name for own in problem.parameters for name in own.columns))
        self.generations: list[int] = []
        self._numbers: list[list[list[float]]] = [[] for _ in range(n_runs)]
        self._topologies: list[list[Topology]] = [[] for _ in range(n_runs)]
        self._lengths: list[list[list[float]]] = [[] for _ in range(n_runs)]
        self._splits: list[list[list[int]]] = [[] for _ in range(n_runs)]

    def add(self, generation: int, samples: Sequence[Sample]) -> None:
        """Those of the cold chains of all runs."""
        self.generations.append(generation)
        for run, sample in enumerate(samples):
            self._add(run, *sample)

    def _add(self, run: int, numbers: list[float], topology: Topology, lengths: list[float]) -> None:
        self._numbers[run].append(numbers)
        self._topologies[run].append(topology)
        self._lengths[run].append(lengths)
        self._splits[run].append(topology.splits())

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
        return np.array([rows[first:] for rows in self._numbers]).reshape(self.n_runs, -1, len(self.columns))

    def latest(self, run: int) -> Sample:
        """The last sample of a run."""
        return Sample(self._numbers[run][-1], self._topologies[run][-1], self._lengths[run][-1])

    def tree(self, run: int, number: int) -> tuple[Topology, list[float]]:
        """The tree of one sample, with the lengths (n_nodes,) of its branches."""
        return self._topologies[run][number], self._lengths[run][number]

    def split_lengths(self, run: int, number: int) -> dict[int, float]:
        """The branch lengths of a tree by split, tips included, see `plltool.tree.splits`."""
        pairs = zip(self._splits[run][number], self._lengths[run][number], strict=True)
        return {split: length for split, length in pairs if split}

    def split_shares(self, run: int, first: int, end: int | None = None) -> dict[int, float]:
        """The share of the trees of a run, from number `first` to `end`, that have each split of an inner branch."""
        n = len(self._problem.names)
        trees = self._splits[run][first:end]
        counts: dict[int, int] = {}
        for tree, topology in zip(trees, self._topologies[run][first:end], strict=True):
            for node in range(n, 2 * n - 2):
                if node != topology.top:
                    counts[tree[node]] = counts.get(tree[node], 0) + 1
        return {split: count / len(trees) for split, count in counts.items()}

    def deviation(self, first: int, end: int | None = None) -> float:
        """The average standard deviation of split frequencies of the runs, from sample `first` to `end`."""
        return split_deviation([self.split_shares(run, first, end) for run in range(self.n_runs)])

    def convergence(self, first: int) -> dict[str, tuple[float, float]]:
        """The effective size and R-hat of each column, from sample `first` on."""
        numbers = self.numbers(first)
        return {
            name: (effective_size(numbers[:, :, k]), r_hat(numbers[:, :, k])) for k, name in enumerate(self.columns)
        }

    def pack(self) -> dict[str, npt.NDArray[Any]]:
        """All samples as arrays."""
        return {
            "generations": np.array(self.generations, dtype=np.int64),
            "numbers": self.numbers(),
            "lengths": np.array(self._lengths, dtype=np.float64),
            "topologies": pack_topologies([topology for rows in self._topologies for topology in rows]),
        }

    def unpack(self, packed: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `pack` returned."""
        self.generations = packed["generations"].tolist()
        topologies = unpack_topologies(packed["topologies"])
        for run in range(self.n_runs):
            for number in range(len(self)):
                numbers, lengths = packed["numbers"][run, number].tolist(), packed["lengths"][run, number].tolist()
                self._add(run, numbers, topologies[run * len(self) + number], lengths)


def pack_topologies(topologies: Sequence[Topology]) -> IntArray:
    """(n, 3, n_nodes) the lists of topologies."""
    return np.array([(own.parent, own.left, own.right) for own in topologies], dtype=np.int32)


def unpack_topologies(packed: IntArray) -> list[Topology]:
    """The topologies that `pack_topologies` packed."""
    return [Topology(len(own[0]) // 2 + 1, *own) for own in packed.tolist()]
