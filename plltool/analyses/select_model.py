"""`select_model` chooses a substitution model by an information criterion.

    import plltool
    choice = plltool.select_model("primates.phy")
    print(choice.best.name, choice.best.bic)

The way through the candidates follows ModelFinder (Kalyaanamoorthy et al. 2017). Every fit starts from the values of a
related one. First all substitution models are tried under gamma rates, and then all kinds of rates over sites with the
best one. A pair of a substitution model and rates is expected to differ from the best model by what either of them
costs alone; pairs that may compete after all are fitted in turn, until none is left.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from time import perf_counter
from typing import Unpack

from plltool.alignment.partition import Dataset
from plltool.alignment.patterns import compress
from plltool.constants import (
    CRITERIA,
    DEFAULT_SEED,
    SELECTION_KEPT_LOSS,
    SELECTION_MARGIN,
    SELECTION_PRECISION,
    SELECTION_TOLERANCE,
    START_KINDS,
)
from plltool.errors import InputError, check_least
from plltool.hardware import Hardware, HardwareSettings
from plltool.model.candidates import (
    FREE_RATES,
    GAMMA,
    INVARIABLE,
    SIMPLE_RATES,
    VARIABLE_ONLY,
    is_nested,
    parse_candidate,
    substitution_models,
)
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree, refuse_invariable, resolve_inputs
from plltool.run.keywords import takes_keywords
from plltool.run.memory import until_memory_suffices
from plltool.run.messages import announce_data, warn
from plltool.run.model_choice import ModelChoice, compare_fits
from plltool.run.model_fits import Fit, ModelFitter
from plltool.run.rooting import write_rooted
from plltool.run.seeds import STARTS, generator
from plltool.statistics.criteria import information_score
from plltool.tree.topology import Tree
from plltool.tree_search.parsimony import stepwise_addition
from plltool.tree_search.progress import announce

_log = logging.getLogger("plltool")

AUTOMATIC = {  # what to choose by, and whether among free rates too, for words in place of a model
    "AUTO": ("BIC", True),
    "MFP": ("BIC", True),
    "TEST": ("BIC", False),
    **{name.upper(): (name, True) for name in CRITERIA},
}
Pair = tuple[str, str]  # a substitution model and rates over sites, as in a model string


@takes_keywords(HardwareSettings)
def select_model(
    alignment: AlignmentLike,
    tree: TreeLike | None = None,
    *,
    criterion: str = CRITERIA[0],
    free_rates: bool = True,
    ascertainment: bool = False,
    seed: int = DEFAULT_SEED,
    **hardware: Unpack[HardwareSettings],
) -> ModelChoice:
    """Choose the model that describes an alignment best, with all lengths and parameters optimised on one tree.

    Parameters
    ----------
    alignment : as for `plltool.search`; it is not cut into parts
    tree : as for `plltool.evaluate`; by default the parsimony tree that a search with this seed starts from
    criterion : "BIC", "AIC" or "AICc"; the others are reported, but models that only they prefer may be left out
    free_rates : whether +R2 to +R10 are among the candidates
    ascertainment : whether all candidates have +ASC_LEWIS, and none has +I, because invariable sites were left out
    seed : of the parsimony tree
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Raises
    ------
    InputError
        If alignment or tree cannot be used, the criterion is unknown, or it is AICc and the sites are too few for it;
        and for a column that does not vary if `ascertainment` says that all do.
    DeviceError
        If the device cannot be used.
    """
    began = perf_counter()
    if criterion not in CRITERIA:
        raise InputError(f"criterion: found {criterion!r}, expected one of: {', '.join(CRITERIA)}")
    check_least("seed", seed, 0)
    data, _ = resolve_inputs(alignment, None)
    patterns = compress(data.parts[0].alignment)
    announce_data(data, [patterns])
    substitutions = substitution_models(patterns.states)
    kinds = (*SIMPLE_RATES, *(FREE_RATES if free_rates else ()))
    if ascertainment:
        substitutions = tuple(name + VARIABLE_ONLY for name in substitutions)
        kinds = tuple(rates for rates in kinds if INVARIABLE not in rates)
        refuse_invariable(parse_candidate(substitutions[0], GAMMA), data.parts[0])
    chosen_on, remarks = _choose_tree(data, tree, seed)

    def attempt(hardware: Hardware) -> _Selection:
        with ModelFitter(patterns, chosen_on, hardware) as fitter:
            selection = _Selection(fitter, substitutions, kinds, criterion, len(data.parts[0].sites))
            selection.run()
        return selection

    selection = until_memory_suffices(attempt, Hardware(**hardware))
    candidates = compare_fits(list(selection.fits.values()), selection.n_sites, criterion)
    best = selection.best
    return ModelChoice(
        candidates=candidates,
        criterion=criterion,
        left_out=tuple(selection.left_out),
        newick=write_rooted(chosen_on.with_lengths(best.lengths), None)[0],
        spec=best.spec,
        data=data,
        n_patterns=patterns.n_patterns,
        **selection.fitter.facts,
        seed=seed,
        seconds=perf_counter() - began,
        warnings=warn(data, selection.fitter.fallback, remarks),
    )


def choose_if_asked(
    alignment: AlignmentLike, model: ModelLike | None, start: TreeLike, seed: int, hardware: HardwareSettings
) -> tuple[ModelLike | None, ModelChoice | None]:
    """The model for a search, chosen if that is asked for; and how it was chosen.

    The tree is the given start tree of the search, if there is one.
    """
    word, plus, correction = model.upper().partition("+") if isinstance(model, str) else ("", "", "")
    if word not in AUTOMATIC or plus + correction not in ("", VARIABLE_ONLY):
        return model, None
    criterion, free_rates = AUTOMATIC[word]
    tree = None if isinstance(start, str) and start in START_KINDS else start
    choice = select_model(
        alignment,
        tree,
        criterion=criterion,
        free_rates=free_rates,
        ascertainment=bool(plus),
        seed=seed,
        **hardware,
    )
    _log.info("%s", choice.describe())
    return choice.spec, choice


def _choose_tree(data: Dataset, tree: TreeLike | None, seed: int) -> tuple[Tree, tuple[str, ...]]:
    """The tree on which all models are fitted, and warnings about it."""
    if tree is not None:
        given = as_tree(tree, data.names)
        return given, given.warnings
    announce("parsimony tree")
    patterns = compress(data.parts[0].alignment)
    rng = generator(seed, STARTS, 0)
    return stepwise_addition(patterns.masks, patterns.weights, data.names, rng), ()


class _Selection:
    """The fits made so far, and what is tried next.

    Attributes
    ----------
    fits : by substitution model and rates
    left_out : candidates that were never optimised
    """

    def __init__(
        self,
        fitter: ModelFitter,
        substitutions: tuple[str, ...],
        kinds: tuple[str, ...],
        criterion: str,
        n_sites: int,
    ):
        self.fitter = fitter
        self.n_sites = n_sites
        self.fits: dict[Pair, Fit] = {}
        self._substitutions = substitutions
        self._kinds = kinds
        self._criterion = criterion

    @property
    def left_out(self) -> list[str]:
        """Candidates that were not fitted, as model strings."""
        pairs = [(name, rates) for name in self._substitutions for rates in self._kinds]
        return [str(parse_candidate(*pair)) for pair in pairs if pair not in self.fits]

    @property
    def best(self) -> Fit:
        """The best fit by the criterion."""
        return self.fits[self._best]

    def run(self) -> None:
        """Fit all that may be the best."""
        first = (self._substitutions[0], GAMMA)
        announce(f"model {first[0]}{first[1]}")
        self._keep(first, self.fitter.begin(parse_candidate(*first)))
        if not math.isfinite(self._score(self.fits[first])):
            n = self.fits[first].n_parameters
            raise InputError(f"{self.n_sites} sites are too few for AICc with {n} parameters, expected {n + 2} or more")
        self._try_substitutions()
        self._try_rates(self._best[0])
        is_new = True
        while is_new:
            while (pair := self._next()) is not None:
                self._fit(pair)
            is_new = self._mend()

    # --- scores ---------------------------------------------------------------------------------------------

    def _score(self, fit: Fit, lnl: float | None = None) -> float:
        """The criterion of a fit, or what it would be with another lnL."""
        lnl = fit.lnl if lnl is None else lnl
        return information_score(self._criterion, lnl, fit.n_parameters, self.n_sites)

    @property
    def _best(self) -> Pair:
        return min(self.fits, key=lambda pair: self._score(self.fits[pair]))

    @property
    def _limit(self) -> float:
        """The score that a model needs to be of interest."""
        return self._score(self.fits[self._best]) + SELECTION_MARGIN

    def _loss(self, kind: int) -> dict[str, float]:
        """By how much each substitution model (0), or each kind of rates (1), is worse than the best of its kind.

        The other half of the pair is the same; of several such differences the least counts.
        """
        least: dict[str, float] = {}
        for pair, fit in self.fits.items():
            rivals = [other for key, other in self.fits.items() if key[1 - kind] == pair[1 - kind]]
            loss = self._score(fit) - min(map(self._score, rivals))
            least[pair[kind]] = min(loss, least.get(pair[kind], math.inf))
        return least

    # --- steps ----------------------------------------------------------------------------------------------

    def _try_substitutions(self) -> None:
        """All substitution models under gamma rates, from the values of the first one; the best starts come first."""
        first = [self.fits[self._best]]
        starts = {(name, GAMMA): self._start((name, GAMMA), first) for name in self._substitutions[1:]}
        for pair, start in sorted(starts.items(), key=lambda item: -item[1].lnl):
            lacking = max(0.0, self.fits[self._best].lnl - start.lnl)
            if self._score(start, start.lnl + (1 - SELECTION_KEPT_LOSS) * lacking) < self._limit:
                self._finish(pair, start)

    def _try_rates(self, substitution: str) -> None:
        """All kinds of rates with one substitution model; free rates as long as another category gains."""
        before = math.inf
        for rates in self._kinds:
            pair = (substitution, rates)
            if pair not in self.fits:
                own = [fit for (name, _), fit in self.fits.items() if name == substitution]
                self._finish(pair, self._start(pair, own))
            score = self._score(self.fits[pair])
            if rates in FREE_RATES and score > before:
                break
            before = score if rates in FREE_RATES else math.inf

    def _next(self) -> Pair | None:
        """The pair with the best expected score among those that are not fitted; None if none can compete."""
        by_name, by_rates = self._loss(0), self._loss(1)
        expected = {
            (name, rates): lost + too
            for name, lost in by_name.items()
            for rates, too in by_rates.items()
            if (name, rates) not in self.fits and lost + too < SELECTION_MARGIN
        }
        return min(expected, key=lambda pair: expected[pair], default=None)

    def _fit(self, pair: Pair) -> None:
        """Fit a pair from the best model with the same rates."""
        same = [fit for (_, rates), fit in self.fits.items() if rates == pair[1]]
        self._finish(pair, self._start(pair, [max(same, key=lambda fit: fit.lnl)]))

    def _start(self, pair: Pair, sources: Sequence[Fit]) -> Fit:
        start = self.fitter.carry(parse_candidate(*pair), sources)
        assert start is not None, "each kind of rates follows from one before it"
        return start

    def _finish(self, pair: Pair, start: Fit) -> None:
        """Optimise from a start: to the end if the model may compete, or if its free rates are a step to others."""
        announce(f"model {start.spec}")
        is_step = pair[1] in FREE_RATES
        floor = -math.inf if is_step else start.lnl + (self._score(start) - self._limit) / 2
        fit = self.fitter.improve(start, SELECTION_PRECISION, floor)
        if is_step or self._score(fit) < self._limit:
            fit = self.fitter.polish(fit)
        self._keep(pair, fit)

    def _keep(self, pair: Pair, fit: Fit) -> None:
        self.fits[pair] = fit
        _log.info("%-22s lnL %.3f  %s %.3f", fit.spec, fit.lnl, self._criterion, self._score(fit))

    def _mend(self) -> bool:
        """Optimise models again whose special cases have a higher lnL, from the values of these; whether there were."""
        found = False
        for pair in sorted(self.fits, key=lambda pair: self.fits[pair].n_parameters):
            fit = self.fits[pair]
            special = [other for other in self.fits.values() if is_nested(other.spec, fit.spec)]
            best = max(special, key=lambda other: other.lnl, default=fit)
            if best.lnl > fit.lnl + SELECTION_TOLERANCE:
                start = self.fitter.carry(fit.spec, [best], exact=True)
                if start is not None and start.lnl > fit.lnl + SELECTION_TOLERANCE:
                    self._keep(pair, self.fitter.polish(start))
                    found = True
        return found
