"""The posterior density of a time tree as a function of one vector, with its gradient."""

from __future__ import annotations

import math
import time
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from plltool.analyses.sampling.analysis import prepare
from plltool.analyses.sampling.clock_choice import choose_clock
from plltool.analyses.sampling.joint_moves import CoordinateSlopes, change_value, coordinates_of, density_slopes
from plltool.analyses.sampling.parameters import PINV
from plltool.analyses.sampling.settings import ClockPriors, Priors, SampleOptions
from plltool.analyses.sampling.state import ALL_NODES, Proposal, Question, Slopes, State
from plltool.analyses.sampling.time_state import LARGEST_COORDINATE, TimeSpace, time_of
from plltool.arrays import FloatArray
from plltool.constants import CLOCKS, DEFAULT_SEED, STRICT, TREE_PRIORS
from plltool.errors import InputError, check_one_of
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.files import FileName
from plltool.io.table_reader import DatesLike
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree
from plltool.settings import takes_keywords
from plltool.tree.splits import members_of


class TimeTreeDensity:
    """The logarithm of the posterior density of a time tree with a fixed topology, as a function of one vector (n,).

    It is what `plltool.sample` samples with a clock: lnL, plus the logarithms of all prior densities and of the
    Jacobian of the numbers y in the elements z of the vector. These have no bounds and no units:

    - of each inner node, in the order of `clades`: the logit of its height above the oldest tip below it, as a share of
      that of its parent; for the root the logarithm of that height in years (Ji et al. 2023);
    - the logarithms of the clock's rate, in substitutions per site and year, and of a relaxed clock's spread; then
      numbers of the tree prior: logarithms of positive ones, the logit of the relative death rate;
    - with a relaxed clock the scores (log m + s^2 / 2) / s of the rates m above all nodes relative to the clock's, tips
      first, where s is the spread: their prior is standard normal;
    - free parameters of the model: log ratios of shares to the last one, log alpha, the logit of pinv.

    Tips without an exact date stay in the middle of its range.

    Parameters
    ----------
    tree : as for `plltool.evaluate`; a root with two branches is kept, else it is where a clock fits best
    others : as for `plltool.sample`

    Attributes
    ----------
    clades, names : the taxa below each inner node, and what each element is (n,)
    engine : the engine that does the arithmetic, with its counters

    Raises InputError if something given cannot be used, and DeviceError if the device cannot be used.
    """

    @takes_keywords(HardwareSettings)
    def __init__(
        self,
        alignment: AlignmentLike,
        tree: TreeLike,
        model: ModelLike | None = None,
        *,
        clock: str = STRICT,
        dates: DatesLike | None = None,
        calibrations: FileName | None = None,
        tree_prior: str = TREE_PRIORS[0],
        priors: Priors | None = None,
        clock_priors: ClockPriors | None = None,
        **hardware: Unpack[HardwareSettings],
    ):
        check_one_of("clock", clock, CLOCKS)
        chosen = choose_clock(clock, dates, calibrations, tree_prior, clock_priors, None)
        on, texts, begun = Hardware.of(**hardware), (priors or Priors()).canonical(), time.perf_counter()
        how: dict[str, Any] = {"seed": DEFAULT_SEED, "outgroup": None, "checkpoint": None}
        run, setup, *_ = prepare(alignment, model, texts, tree, on, begun, SampleOptions(1, 1, 1), chosen, **how)
        assert isinstance(setup.space, TimeSpace), "there is a clock"
        self._space, (topology, lengths), given = setup.space, setup.starts[0], as_tree(tree, run.data.names)
        root = None
        if given.root_place is not None:
            a, b = given.ends[given.root_place[0]].tolist()
            root = a if topology.parent[a] == b else b
        _, self._likelihoods, self.engine = setup.open(1, on)
        (self._state,) = self._likelihoods.begin([self._space.start(topology, lengths, root)])
        rooted = time_of(self._state).rooted
        taxa = [tuple(run.data.names[bit - 1] for bit in members_of(split)) for split in rooted.splits()[1:]]
        self.clades = taxa[rooted.n_taxa - 1 :]
        self.names = [f"ratio of {', '.join(own)}" for own in self.clades] + [own.name for own in self._space.numbers]
        self.names[rooted.top - rooted.n_taxa] = "height of the root"
        self.names += [f"score of the rate of {', '.join(own)}" for own in taxa] if self._space.is_relaxed else []
        for own, value in zip(self._space.parameters, self._state.values, strict=True):
            self.names += [f"part {own.part + 1} {own.kind} {k}" for k in range(len(coordinates_of(own, value)))]

    def vector(self) -> FloatArray:
        """(n,) a point to begin from: heights by the lengths of the tree, and the values that the model has."""
        pairs = zip(self._space.parameters, self._state.values, strict=True)
        of_time = self._space.coordinates(time_of(self._state))
        return np.concatenate([of_time, *(coordinates_of(own, value) for own, value in pairs)])

    def log_density(self, vector: npt.ArrayLike) -> float:
        """The logarithm of the density at a vector (n,); -inf where it cannot be computed, or is 0."""
        return self._ask(vector)[0]

    def value_and_grad(self, vector: npt.ArrayLike) -> tuple[float, FloatArray]:
        """`log_density` and its gradient (n,), by one launch, and another one if the model has free parameters.

        The gradient is 0 where the density is -inf. InputError if the vector does not have n elements.
        """
        space = self._space
        value, found = self._ask(vector, Slopes(self._state.topology.n_nodes))
        if found is None:
            return value, np.zeros(len(self.names))
        slopes = space.slopes(found, 1.0)
        if space.parameters:
            pairs = zip(space.parameters, found.values, strict=True)
            of_priors = np.concatenate([density_slopes(own, at, 1.0) for own, at in pairs])
            _, asked = self._ask(vector, CoordinateSlopes(space))
            slopes = np.append(slopes, of_priors + asked.answer.values[:-1] if asked else of_priors)
        return value, slopes

    def describe(self, vector: npt.ArrayLike) -> dict[str, float]:
        """The numbers that `plltool.sample` has of a point, and `height(TAXON,TAXON...)` of inner nodes, in years."""
        proposal = self._propose(vector)
        if proposal is None:
            raise InputError("found a vector out of bounds")
        heights = time_of(proposal.state).heights[self._space.n_tips :]
        known = zip(self._space.columns, self._space.sample(proposal.state).numbers, strict=True)
        nodes = {f"height({','.join(own)})": height for own, height in zip(self.clades, heights, strict=True)}
        return dict(list(known)[3:]) | nodes

    def _propose(self, vector: npt.ArrayLike, question: Question | None = None) -> Proposal | None:
        values, n = np.asarray(vector, dtype=np.float64), len(self.names)
        if values.shape != (n,):
            raise InputError(f"expected a vector of {n} elements, found an array of shape {values.shape}")
        space, state, at = self._space, self._state, self._space.n_coordinates
        moved = space.moved_to(time_of(state), values[:at])
        if moved is None or not np.abs(values).max() < LARGEST_COORDINATE:
            return None
        changes = {}
        for number, (own, value) in enumerate(zip(space.parameters, state.values, strict=True)):
            old = coordinates_of(own, value)
            changes[number], _ = change_value(own, value, values[at : at + len(old)] - old)
            at += len(old)
        new = space.propose(space.revalued(state, changes), moved, 0.0, revalued=True, question=question)
        return new._replace(stale=ALL_NODES)

    def _ask(self, vector: npt.ArrayLike, question: Question | None = None) -> tuple[float, State | None]:
        """The density at a vector, and the state there with an answer; None where the density is 0."""
        proposal = self._propose(vector, question)
        is_possible = proposal is not None and math.isfinite(proposal.state.log_prior)
        (found,) = self._likelihoods.ask([proposal if is_possible else None])
        if found is None:
            return -math.inf, None
        value = found.log_posterior + self._space.log_jacobian(time_of(found))
        for own, at in zip(self._space.parameters, found.values, strict=True):
            value += float(np.log(at).sum()) + (math.log1p(-float(at)) if own.kind == PINV else 0.0)
        return (value, found) if math.isfinite(value) else (-math.inf, None)
