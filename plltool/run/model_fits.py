"""Fit many models to one part on one tree."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

import numpy as np

from plltool.alignment.patterns import Patterns, empirical_frequencies
from plltool.arrays import FloatArray
from plltool.constants import LENGTHS_PRECISION, MAX_BRANCH_LENGTH, MAX_POLISH_ROUNDS, MIN_BRANCH_LENGTH
from plltool.engine.storage import Slots
from plltool.hardware import Hardware
from plltool.model.carry import Start, carry_over
from plltool.model.model import SCALER, Model
from plltool.model.spec import ModelSpec
from plltool.optimise.bounded import Curvatures
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import ModelOptimiser
from plltool.optimise.polish import PolishRound, polish
from plltool.optimise.site_rates import possible_likelihoods
from plltool.run.engines import open_engine
from plltool.run.messages import announce_engine
from plltool.tree.operations import round_slots
from plltool.tree.topology import Tree


@dataclass(frozen=True, eq=False)
class Fit:
    """A model with the branch lengths that go with it.

    Attributes
    ----------
    model : with its values
    lengths : (n_edges,)
    lnl : log-likelihood
    """

    model: Model
    lengths: FloatArray
    lnl: float

    @property
    def spec(self) -> ModelSpec:
        return self.model.spec

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of the model, and of branch lengths."""
        return self.model.n_free_parameters + len(self.lengths)


class ModelFitter:
    """Fits models to the patterns of a part on a tree; use it in a ``with`` block.

    Parameters
    ----------
    patterns : of the part
    tree : its topology stays, and its lengths are where the first fit starts
    hardware : what computes

    Attributes
    ----------
    patterns, tree : as given
    facts : the fields of `plltool.run.results.describe_run` that tell of the device
    fallback : why numpy replaces an OpenCL device, if it does
    """

    def __init__(self, patterns: Patterns, tree: Tree, hardware: Hardware):
        self.patterns = patterns
        self.tree = tree
        self.facts: dict[str, str] = {}
        self.fallback: list[str] = []
        self._hardware = hardware
        self._empirical = empirical_frequencies(patterns, patterns.states)
        self._likelihood: TreeLikelihood | None = None
        self._n_components = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def begin(self, spec: ModelSpec) -> Fit:
        """Fit a model from the lengths of the tree as it was given."""
        model = Model(spec, self._empirical)
        likelihood = self._at(model, self.tree.lengths)
        return self._polished(likelihood, None)

    def carry(self, spec: ModelSpec, sources: Sequence[Fit], exact: bool = False) -> Fit | None:
        """The best start of a model from the values of others; None if these say nothing about it.

        `exact` as for `carry_over`.
        """
        best: Fit | None = None
        for source in sources:
            starts = carry_over(source.model, spec, self._empirical, exact)
            if not starts:
                continue
            likelihood = self._at(starts[0].model, source.lengths)
            lnls = possible_likelihoods(likelihood, [[_scaled(start)] for start in starts])[:, 0]
            number = int(np.argmax(lnls))
            if best is None or lnls[number] > best.lnl:
                start = starts[number]
                lengths = np.clip(start.factor * source.lengths, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
                best = Fit(start.model, lengths, float(lnls[number]))
        return best

    def improve(self, fit: Fit, precision: float, floor: float = -np.inf) -> Fit:
        """Optimise until a round gains less than `precision`, or lnL is not expected to reach `floor`."""
        likelihood = self._at(fit.model.copy(), fit.lengths)
        optimiser = ModelOptimiser(likelihood, [name for name in fit.model.free_parameters if name != SCALER], True)
        lnl = fit.lnl
        for _ in range(MAX_POLISH_ROUNDS):
            before = lnl
            lnl = optimiser.run(precision)
            lnl = smooth(likelihood, precision).lnl
            gain = lnl - before
            if gain < precision or lnl + 2 * gain < floor:
                break
        return Fit(likelihood.models[0], likelihood.tree.lengths.copy(), lnl)

    def polish(self, fit: Fit) -> Fit:
        """Optimise to the end, see `plltool.optimise.polish`, from where other optima need not be looked for."""
        likelihood = self._at(fit.model.copy(), fit.lengths)
        done = PolishRound(1, fit.lnl, False, LENGTHS_PRECISION, True, Curvatures(1))
        return self._polished(likelihood, done)

    def _polished(self, likelihood: TreeLikelihood, done: PolishRound | None) -> Fit:
        lnl = polish(likelihood, done=done)
        return Fit(likelihood.models[0], likelihood.tree.lengths.copy(), lnl)

    def _at(self, model: Model, lengths: FloatArray) -> TreeLikelihood:
        """The likelihood of the tree with these lengths under a model.

        There is one engine at a time; another number of components needs another one.
        """
        n_components = model.components().n_components
        likelihood = self._likelihood
        if likelihood is None or n_components != self._n_components:
            self._stack.close()
            slots = Slots(round_slots(self.patterns.n_taxa))
            engine, reason = open_engine([self.patterns], [model], slots, self._hardware)
            self._stack.enter_context(engine)
            if not self.facts:
                self.fallback = announce_engine(engine, reason, self._hardware)
                self.facts = {"device": engine.device_name, "driver": engine.driver, "reason": reason}
            self._likelihood = likelihood = TreeLikelihood(self.tree.copy(), [model], engine)
            self._n_components = n_components
        likelihood.tree.lengths[:] = lengths
        likelihood.models = [model]
        likelihood.model_changed()
        return likelihood


def _scaled(start: Start) -> Model:
    """The model with the factor of lengths as a factor of rates."""
    model = start.model.copy()
    model.set_ratios(SCALER, np.array([start.factor]))
    return model
