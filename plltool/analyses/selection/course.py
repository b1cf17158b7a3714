"""The way through the candidates for the data of a part, whose fits advance together with other parts'.

It follows ModelFinder (Kalyaanamoorthy et al. 2017). Every fit starts from the values of a related one. First all
substitution models are tried under gamma rates, and then all kinds of rates over sites with the best one. A pair of a
substitution model and rates is expected to differ from the best model by what either of them costs alone; pairs that
may compete after all are fitted in turn, until none is left.
"""

import math
from collections.abc import Generator, Sequence
from typing import Any, TypeAlias

from plltool.analyses.selection.model_fits import Begin, Carry, Fit, Improve, ModelFitter, PartData, Polish, Step
from plltool.constants import SELECTION_PRECISION, SELECTION_TOLERANCE
from plltool.errors import InputError
from plltool.model.candidates import FREE_RATES, GAMMA, Candidates, information_score, is_nested
from plltool.model.describe import shorten_model
from plltool.model.model_string import parse_model
from plltool.progress import announce, log

SELECTION_MARGIN = 10.0  # of the criterion: models that are worse by more have no support (Burnham & Anderson 2002)
SELECTION_KEPT_LOSS = 0.25  # of the lnL that a model lacks with values carried over, once optimised; found: 0.4 or more

STEP_KINDS: tuple[type[Step], ...] = (Begin, Carry, Improve, Polish)  # in the order in which they are made
Pair: TypeAlias = tuple[str, str]  # a substitution model and rates over sites, as in a model string
Steps: TypeAlias = Generator[Step, Any, None]  # is sent the answer to each step, see `ModelFitter.run`


class Selection:
    """The fits to some data made so far, by substitution model and rates, and what is tried next.

    The `start` is the data, or a fit to them from which the first one starts, instead of the lengths of the tree. The
    criterion counts `n_sites`; the `name` of the part is empty for a whole alignment.
    """

    def __init__(self, start: PartData | Fit, candidates: Candidates, criterion: str, n_sites: int, name: str = ""):
        self.fits: dict[Pair, Fit] = {}
        self._first = start
        self._candidates = candidates
        self._criterion = criterion
        self._n_sites = n_sites
        self._of_part = f"partition {name}: " if name else ""

    @property
    def left_out(self) -> list[str]:
        pairs = [(name, rates) for name in self._candidates.substitutions for rates in self._candidates.kinds]
        return [str(parse_model("".join(pair))) for pair in pairs if pair not in self.fits]

    @property
    def best(self) -> Fit:
        return self.fits[self._best]

    def steps(self) -> Steps:
        first = (self._candidates.substitutions[0], GAMMA)
        announce(f"{self._of_part}model {first[0]}{first[1]}")
        if isinstance(self._first, PartData):
            self._keep(first, (yield Begin(self._first, parse_model("".join(first)))))
        else:
            [start] = yield from self._start([first], [self._first])
            self._keep(first, (yield Polish(start)))
        if not math.isfinite(self._score(self.fits[first])):
            n = self.fits[first].n_parameters
            found = f"{self._n_sites} sites are too few for AICc with {n} parameters"
            raise InputError(f"{found}, expected {n + 2} or more")
        yield from self._try_substitutions()
        yield from self._try_rates(self._best[0])
        is_new = True
        while is_new:
            while (pair := self._next()) is not None:
                yield from self._fit(pair)
            is_new = yield from self._mend()

    # --- scores ---------------------------------------------------------------------------------------------

    def _score(self, fit: Fit, lnl: float | None = None) -> float:
        """The criterion of a fit, or what it would be with another lnL."""
        lnl = fit.lnl if lnl is None else lnl
        return information_score(self._criterion, lnl, fit.n_parameters, self._n_sites)

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

    def _try_substitutions(self) -> Steps:
        """All substitution models under gamma rates, from the values of the first one; the best starts come first."""
        pairs = [(name, GAMMA) for name in self._candidates.substitutions[1:]]
        starts = dict(zip(pairs, (yield from self._start(pairs, [self.fits[self._best]])), strict=True))
        for pair, start in sorted(starts.items(), key=lambda item: -item[1].lnl):
            lacking = max(0.0, self.fits[self._best].lnl - start.lnl)
            hopeful = self._score(start, start.lnl + (1 - SELECTION_KEPT_LOSS) * lacking) < self._limit
            if hopeful or pair[0] in self._candidates.asked:
                yield from self._finish(pair, start)
        yield from self._try_again({pair: start for pair, start in starts.items() if pair not in self.fits})

    def _try_again(self, left_out: dict[Pair, Fit]) -> Steps:
        """Pairs that may compete with the lnL of a special case alone, the narrowest first, from its values."""
        for pair, start in sorted(left_out.items(), key=lambda item: item[1].n_parameters):
            special = self._best_special_case(start)
            if special is not None and self._score(start, special.lnl) < self._limit:
                [again] = yield from self._start([pair], [special])
                yield from self._finish(pair, again)

    def _best_special_case(self, fit: Fit) -> Fit | None:
        """The model with the highest lnL among all that are nested in the model of a fit."""
        special = [other for other in self.fits.values() if is_nested(other.spec, fit.spec)]
        return max(special, key=lambda other: other.lnl, default=None)

    def _try_rates(self, substitution: str) -> Steps:
        """All kinds of rates with one substitution model; free rates as long as another category gains."""
        before = math.inf
        for rates in self._candidates.kinds:
            pair = (substitution, rates)
            if pair not in self.fits:
                own = [fit for (name, _), fit in self.fits.items() if name == substitution]
                [start] = yield from self._start([pair], own)
                yield from self._finish(pair, start)
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

    def _fit(self, pair: Pair) -> Steps:
        """Fit a pair from the best model with the same rates, rather one that is time-reversible likewise."""
        same = [fit for (_, rates), fit in self.fits.items() if rates == pair[1]]
        is_reversible = parse_model("".join(pair)).is_reversible
        source = max(same, key=lambda fit: (fit.spec.is_reversible == is_reversible, fit.lnl))
        [start] = yield from self._start([pair], [source])
        yield from self._finish(pair, start)

    def _start(self, pairs: Sequence[Pair], sources: Sequence[Fit]) -> Generator[Step, Any, list[Fit]]:
        """The best start of each pair from the values of the sources."""
        specs = {pair: parse_model("".join(pair)) for pair in pairs}
        starts: dict[Pair, Fit] = {}
        for is_reversible in (True, False):
            own = [pair for pair in pairs if specs[pair].is_reversible == is_reversible]
            if own:
                found = yield Carry(tuple(specs[pair] for pair in own), sources)
                starts |= zip(own, found, strict=True)
        assert None not in starts.values(), "each kind of rates follows from one before it"
        return [starts[pair] for pair in pairs]

    def _finish(self, pair: Pair, start: Fit) -> Steps:
        """Optimise from a start: to the end if the model may compete, or if its free rates are a step to others.

        Without its best root a model cannot show whether it may.
        """
        announce(f"{self._of_part}model {shorten_model(start.name)}")
        to_end = pair[1] in FREE_RATES or not start.spec.is_reversible
        floor = -math.inf if to_end else start.lnl + (self._score(start) - self._limit) / 2
        fit: Fit = yield Improve(start, SELECTION_PRECISION, floor)
        if to_end or self._score(fit) < self._limit:
            fit = yield Polish(fit)
        self._keep(pair, fit)

    def _keep(self, pair: Pair, fit: Fit, remark: str = "") -> None:
        self.fits[pair] = fit
        line = "%s%-22s lnL %.3f  %s %.3f%s"
        log.info(line, self._of_part, shorten_model(fit.name), fit.lnl, self._criterion, self._score(fit), remark)

    def _mend(self) -> Generator[Step, Any, bool]:
        """Optimise models again whose special cases have a higher lnL, from the values of these; whether there were."""
        found = False
        for pair in sorted(self.fits, key=lambda pair: self.fits[pair].n_parameters):
            fit = self.fits[pair]
            best = self._best_special_case(fit)
            if best is not None and best.lnl > fit.lnl + SELECTION_TOLERANCE:
                [start] = yield Carry((fit.spec,), [best], exact=True)
                if start is not None and start.lnl > fit.lnl + SELECTION_TOLERANCE:
                    remark = f"  (fitted again, from {shorten_model(best.name)})"
                    self._keep(pair, (yield Polish(start)), remark)
                    found = True
        return found


def run_together(selections: Sequence[Selection], fitter: ModelFitter) -> None:
    """Make all fits of some selections; steps of one kind share launches, and earlier kinds go first."""
    waiting: dict[Steps, Step] = {steps: next(steps) for steps in [selection.steps() for selection in selections]}
    while waiting:
        kind = next(kind for kind in STEP_KINDS if any(isinstance(step, kind) for step in waiting.values()))
        chosen = {steps: step for steps, step in waiting.items() if isinstance(step, kind)}
        for steps, answer in zip(chosen, fitter.run(list(chosen.values())), strict=True):
            try:
                waiting[steps] = steps.send(answer)
            except StopIteration:
                del waiting[steps]
