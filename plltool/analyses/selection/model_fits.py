"""Fit models to parts of an alignment on one tree; fits of many parts, or many models, advance in the same launches."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from plltool.alignment.patterns import Patterns, empirical_frequencies
from plltool.analyses.selection.carry import Start, carry_over
from plltool.arrays import FloatArray
from plltool.constants import (
    CRITERIA,
    LENGTHS_PRECISION,
    LINKED,
    MAX_BRANCH_LENGTH,
    MAX_POLISH_ROUNDS,
    MIN_BRANCH_LENGTH,
    SCALED,
    SELECTION_TOLERANCE,
    UNLINKED,
)
from plltool.hardware import Hardware
from plltool.io.files import nan_to_null
from plltool.model.candidates import information_score, score_weights
from plltool.model.model import SCALER, Model
from plltool.model.spec import ModelSpec
from plltool.optimise.bounded import Curvatures
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood, possible_likelihoods, side_by_side
from plltool.optimise.models import ModelOptimiser
from plltool.optimise.polish import PolishRound, polish
from plltool.run.engines import open_engine
from plltool.run.memory import evaluation_slots, search_slots
from plltool.run.model_choice import FittedModel
from plltool.run.run import Run
from plltool.tree.rooted import add_root, drop_root, root_split
from plltool.tree.splits import branch_splits
from plltool.tree.topology import Tree
from plltool.tree_search.climb import place_root

SELECTION_BATCH = 65536  # patterns times states of the parts that are fitted in the same launches
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class PartData:
    patterns: Patterns

    @cached_property
    def with_root(self) -> Patterns:
        """The patterns with a first row of gaps, which stands for the root of trees, see `plltool.tree.rooted`."""
        codes = self.patterns.codes
        gaps = np.full_like(codes[:1], self.patterns.states.all_states_code)
        return replace(self.patterns, codes=np.vstack([gaps, codes]))

    @cached_property
    def frequencies(self) -> FloatArray:
        """State frequencies counted in the data (n_states,)."""
        return empirical_frequencies(self.patterns, self.patterns.states)


@dataclass(frozen=True, eq=False)
class Fit:
    """A model of some data, with the branch lengths that go with it.

    The tree has a root if the model is not time-reversible. `n_lengths` is the number of free parameters of its lengths
    (n_edges,), and `curvature` an approximate Hessian of -lnL in the model's parameters, as in `Curvatures`.
    """

    data: PartData
    model: Model
    tree: Tree
    lnl: float
    n_lengths: int
    curvature: FloatArray | None = None

    @property
    def lengths(self) -> FloatArray:
        return self.tree.lengths

    @property
    def spec(self) -> ModelSpec:
        return self.model.spec

    @property
    def name(self) -> str:
        """Model string without values and scaler."""
        return str(replace(self.spec, scaled=False))

    @property
    def overall_rate(self) -> float:
        return self.model.scaler * float(self.lengths.mean())

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of the model, without a scaler, and of branch lengths."""
        return self.model.n_free_parameters - (SCALER in self.model.free_parameters) + self.n_lengths


class Begin(NamedTuple):
    """Fit a model to the end, from the lengths of the tree as it was given. The answer is a Fit."""

    data: PartData
    spec: ModelSpec


class Carry(NamedTuple):
    """Find the best start of each model from the values of others. The answer has a Fit for each model, or None.

    It is None where the others say nothing about the model. The models have equally many components, and
    all of them are time-reversible or none is.
    """

    specs: tuple[ModelSpec, ...]
    sources: Sequence[Fit]
    exact: bool = False  # as for `carry_over`


class Improve(NamedTuple):
    """Optimise until a round gains less than `precision`, or lnL is not expected to reach `floor`: a Fit."""

    fit: Fit
    precision: float
    floor: float = -np.inf


class Polish(NamedTuple):
    """Optimise to the end, see `plltool.optimise.polish`, where other optima need not be looked for: a Fit.

    If the model is not time-reversible, that includes the place of the root.
    """

    fit: Fit


Step: TypeAlias = Begin | Carry | Improve | Polish


class ModelFitter:
    """Fits models to data of parts on a tree; the `stack` closes the last engine.

    The topology stays, and the lengths are where a fit begins. A root that the tree was read with keeps its branch. The
    linkage UNLINKED optimises the lengths of each fit, SCALED a common factor of them, LINKED leaves them as they are.
    The run is told of the first engine.
    """

    def __init__(self, run: Run, tree: Tree, hardware: Hardware, linkage: str, stack: ExitStack):
        self.tree = tree
        self._run = run
        self._hardware = hardware
        self._linkage = linkage
        self._root_is_given = tree.root_place is not None
        self._root: int | None = None  # the split of the branch on which the last root was
        self._explored: set[str] = set()  # names of models for which all roots have been tried
        self._likelihood: TreeLikelihood | None = None
        self._held: list[tuple[PartData, int, bool]] = []  # data, numbers of components, whether rooted
        self._stack = stack

    def run(self, steps: Sequence[Step]) -> list[Any]:
        """The answers to some steps of one kind; different datasets share launches."""
        advance = {Begin: self._begin, Carry: self._carry, Improve: self._improve, Polish: self._polish}[type(steps[0])]
        return [answer for batch in _batches(steps) for answer in advance(batch)]  # type: ignore[operator]

    def fit_of(self, data: PartData, model: Model, tree: Tree, lnl: float) -> Fit:
        """A fit that was found elsewhere."""
        n_lengths = {LINKED: 0, SCALED: 1, UNLINKED: tree.n_edges - tree.is_rooted}  # the root's own has no effect
        return Fit(data, model, tree, lnl, n_lengths[self._linkage])

    # --- steps ----------------------------------------------------------------------------------------------

    def _begin(self, steps: Sequence[Begin]) -> list[Fit]:
        is_scaled = self._linkage == SCALED
        models = [Model(replace(step.spec, scaled=is_scaled), step.data.frequencies) for step in steps]
        likelihood = self._at([step.data for step in steps], models, [self.tree] * len(steps))
        return self.fits([step.data for step in steps], polish(likelihood, lengths=self._linkage == UNLINKED))

    def _carry(self, steps: Sequence[Carry]) -> list[list[Fit | None]]:
        best: list[list[Fit | None]] = [[None] * len(step.specs) for step in steps]
        for number in range(max(len(step.sources) for step in steps)):
            starts, sources = {}, []
            for at, step in enumerate(steps):
                source = step.sources[number] if number < len(step.sources) else None
                found = [] if source is None else list(self._starts(step, source))
                if source is not None and found:
                    starts[at] = found
                    sources.append(self._on_tree_of(step.specs[0], source))
            if not starts:
                continue
            first = [found[0][1].model for found in starts.values()]
            likelihood = self._at([source.data for source in sources], first, [source.tree for source in sources])
            tried = side_by_side([[_scaled(start) for _, start in found] for found in starts.values()])
            lnls = possible_likelihoods(likelihood, tried)
            for own, (at, found), source in zip(lnls.T.tolist(), starts.items(), sources, strict=True):
                for (which, start), lnl in zip(found, own, strict=False):  # rows beyond repeat the last start
                    rival = best[at][which]
                    if rival is None or lnl > rival.lnl:
                        lengths = np.clip(start.factor * source.lengths, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
                        tree = source.tree.with_lengths(lengths)
                        best[at][which] = self.fit_of(source.data, start.model, tree, lnl)
        return best

    def _starts(self, step: Carry, source: Fit) -> Iterator[tuple[int, Start]]:
        """The starts of the models of a step from one source, with the number of the model."""
        for which, spec in enumerate(step.specs):
            linked = replace(spec, scaled=self._linkage == SCALED)
            for start in carry_over(source.model, linked, source.data.frequencies, step.exact):
                start.model.set_ratios(SCALER, np.array([source.model.scaler]))
                yield which, start

    def _improve(self, steps: Sequence[Improve]) -> list[Fit]:
        likelihood = self._from([step.fit for step in steps])
        names = {name for model in likelihood.models for name in model.free_parameters}
        is_free = self._linkage == UNLINKED
        optimiser = ModelOptimiser(likelihood, names - {SCALER} if is_free else names, is_free)
        lnls = np.array([step.fit.lnl for step in steps])
        precision = np.array([step.precision for step in steps])
        floor = np.array([step.floor for step in steps])
        for _ in range(MAX_POLISH_ROUNDS):
            before = lnls
            lnl = optimiser.run(float(precision.sum()))
            if is_free:
                lnl = smooth(likelihood, float(precision.sum()))
            lnls = likelihood.part_lnl() if len(steps) > 1 else np.array([lnl])
            gain = lnls - before
            if np.all((gain < precision) | (lnls + 2 * gain < floor)):
                break
        fits = self.fits([step.fit.data for step in steps], lnl)
        known = optimiser.curvatures.matrices
        return [replace(fit, curvature=own) for fit, own in zip(fits, known, strict=True)]

    def _polish(self, steps: Sequence[Polish]) -> list[Fit]:
        fits = [step.fit for step in steps]
        if self._linkage != UNLINKED:  # without lengths there is no more to it, and all parts are optimised at the end
            return self._improve([Improve(fit, SELECTION_TOLERANCE) for fit in fits])
        likelihood = self._from(fits)
        lnl = sum((fit.lnl for fit in fits[1:]), fits[0].lnl)
        curvatures = Curvatures(len(fits))
        curvatures.matrices = [fit.curvature for fit in fits]
        done = PolishRound(1, lnl, False, LENGTHS_PRECISION, 2, np.nan, np.nan, curvatures)
        lnl = polish(likelihood, done=done)
        if likelihood.is_rooted:
            name, again = fits[0].spec.name, partial(polish, likelihood)
            is_new = name not in self._explored
            lnl = place_root(likelihood, lnl, again, stay=self._root_is_given, explore=is_new)
            self._explored.add(name)
            self._root = root_split(likelihood.tree, self.tree.names)
        return self.fits([fit.data for fit in fits], lnl)

    def _on_tree_of(self, spec: ModelSpec, fit: Fit) -> Fit:
        """The fit on a tree with the root of the last fit that has one, or without a root, as a model needs it."""
        if fit.tree.is_rooted != spec.is_reversible:
            return fit
        if spec.is_reversible:
            return replace(fit, tree=drop_root(fit.tree))
        if self._root is None:
            self._root = branch_splits(self.tree)[self.tree.root_place[0] if self.tree.root_place else 0]
        return replace(fit, tree=add_root(fit.tree, branch_splits(fit.tree, self.tree.names).index(self._root)))

    # --- engines --------------------------------------------------------------------------------------------

    def _from(self, fits: Sequence[Fit]) -> TreeLikelihood:
        return self._at([fit.data for fit in fits], [fit.model.copy() for fit in fits], [fit.tree for fit in fits])

    def fits(self, datasets: Sequence[PartData], lnl: float | None = None) -> list[Fit]:
        """What the likelihood of some datasets holds now; `lnl` is for all of them, if it is known."""
        likelihood = self._likelihood
        assert likelihood is not None
        lengths = np.broadcast_to(likelihood.tree.lengths.T, (len(datasets), likelihood.tree.n_edges))
        trees = [likelihood.tree.with_lengths(own) for own in lengths]
        lnls = likelihood.part_lnl().tolist() if lnl is None or len(datasets) > 1 else [lnl]
        return [self.fit_of(*own) for own in zip(datasets, likelihood.models, trees, lnls, strict=True)]

    def _at(self, datasets: Sequence[PartData], models: Sequence[Model], trees: Sequence[Tree]) -> TreeLikelihood:
        """The likelihood of a tree with the lengths and models of each of them.

        There is one engine at a time; other datasets, and another number of components, need another one.
        """
        own = [tree.lengths for tree in trees]
        tree = trees[0].with_lengths(own[0] if len(own) == 1 else np.stack(own, axis=1))
        held = [
            (data, model.components().n_components, tree.is_rooted)
            for data, model in zip(datasets, models, strict=True)
        ]
        likelihood = self._likelihood
        if likelihood is None or held != self._held:
            likelihood = self.joint(datasets, models, tree)
            self._held = held
        elif likelihood.tree.has_topology_of(tree):
            likelihood.tree.lengths[:] = tree.lengths
        else:
            likelihood.set_tree(tree)
        likelihood.models = list(models)
        likelihood.model_changed()
        return likelihood

    def joint(self, datasets: Sequence[PartData], models: Sequence[Model], tree: Tree) -> TreeLikelihood:
        """The likelihood of all datasets on a tree, whose lengths they may share; it serves until the next step."""
        self._stack.close()
        self._held = []
        slots = search_slots(tree.n_taxa) if tree.is_rooted else evaluation_slots(tree.n_taxa)
        patterns = [data.with_root if tree.is_rooted else data.patterns for data in datasets]
        engine, reason = open_engine(patterns, models, slots, self._hardware)
        self._stack.enter_context(engine)
        if self._likelihood is None:
            self._run.engine_opened(engine, reason, self._hardware)
        self._likelihood = TreeLikelihood(tree, list(models), engine)
        return self._likelihood


def ask_fitter(ask: Callable[[ModelFitter], T], run: Run, tree: Tree, linkage: str = UNLINKED) -> T:
    """What `ask` returns of a fitter, see `ModelFitter`; where memory is short, it is called again with another."""

    def attempt(hardware: Hardware) -> T:
        with ExitStack() as stack:
            return ask(ModelFitter(run, tree, hardware, linkage, stack))

    return run.ask(attempt)


def _scaled(start: Start) -> Model:
    """The model with the factor of lengths as a factor of rates."""
    model = start.model.copy()
    model.set_ratios(SCALER, start.factor * model.ratios(SCALER))
    return model


def _data_of(step: Step) -> PartData:
    if isinstance(step, Begin):
        return step.data
    return step.sources[0].data if isinstance(step, Carry) else step.fit.data


def _batches(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    """The steps in their order, as many at a time as have no more than SELECTION_BATCH patterns times states."""
    first, size = 0, 0
    for number, step in enumerate(steps):
        patterns = _data_of(step).patterns
        own = patterns.n_patterns * patterns.states.n_states
        if number > first and size + own > SELECTION_BATCH:
            yield steps[first:number]
            first, size = number, 0
        size += own
    yield steps[first:]


def compare_fits(fits: Sequence[Fit], n_sites: int, criterion: str) -> tuple[FittedModel, ...]:
    """All fits with their scores and weights, the best one by the criterion first."""
    scores = {name: [information_score(name, fit.lnl, fit.n_parameters, n_sites) for fit in fits] for name in CRITERIA}
    weights = {name: score_weights(values).tolist() for name, values in scores.items()}
    rows = [
        FittedModel(
            *(fit.name, fit.model.to_string(), fit.lnl, fit.n_parameters),
            *(scores["AIC"][number], nan_to_null(scores["AICc"][number]), scores["BIC"][number]),
            *(weights["AIC"][number], nan_to_null(weights["AICc"][number]), weights["BIC"][number]),
        )
        for number, fit in enumerate(fits)
    ]
    order = sorted(range(len(fits)), key=lambda number: scores[criterion][number])
    return tuple(rows[number] for number in order)
