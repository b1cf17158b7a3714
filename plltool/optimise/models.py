"""Optimise the models of all parts in lock-step; one pass over the tree gives the gradients of all of them."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from plltool.arrays import BoolArray, FloatArray, IndexArray
from plltool.constants import MAX_BRANCH_LENGTH, MAX_SCALER, MIN_BRANCH_LENGTH, MIN_SCALER
from plltool.errors import EngineError
from plltool.model.model import CATEGORIES, SCALER
from plltool.model.vector import get_bounds, get_vector, set_vector
from plltool.optimise.bounded import Curvatures, minimise
from plltool.optimise.categories import choose_categories
from plltool.optimise.density import Coordinates, model_slopes
from plltool.optimise.likelihood import TreeLikelihood, possible_likelihoods, side_by_side

MODEL_EPSILON = 0.01  # model parameters have converged when an iteration gains less lnL
MAX_MODEL_EVALUATIONS = 100  # of all gradients, in one optimisation of the models
MAX_LOG_SCALE = 1.0  # of the factor of all branch lengths that is optimised with the model
OTHER_FACTORS = (1.0, 4.0, 0.25)  # times the best factor of a part's lengths, from where other optima are looked for
EXPLORING_EPSILON = 0.1  # lnL precision of each part on the way to them


class ModelOptimiser:
    """Optimises free model parameters in place, and factors of branch lengths with them, as often as it is asked to.

    Parts do not depend on each other, unless they share a factor of lengths; so each takes its own steps, see
    `minimise`. What one run learns of the curvature of lnL serves the next one, too.

    The factor of a part is its scaler if that is free; otherwise, with `scale`, that of its own lengths or of those
    that it shares with other parts. Without it, parameters that change the overall rate of evolution would converge
    slowly, because they and the lengths would have to change in turn. If all scalers are free, lengths take over a
    common factor after a run, because the data determine no more than their products: the mean of the scalers over
    sites is 1, or larger where a length would pass its bound.

    `names` are groups among `plltool.model.model.GROUPS`; None for all free groups. Of each part `sizes` has the number
    of parameters, and `owns_factor` says whether it has a factor of lengths that it does not share.
    """

    def __init__(self, likelihood: TreeLikelihood, names: Iterable[str] | None = None, scale: bool = False):
        self.likelihood = likelihood
        wanted = None if names is None else set(names)
        models = likelihood.models
        chosen = [[name for name in model.free_parameters if wanted is None or name in wanted] for model in models]
        self._parameters = Coordinates(likelihood, False, True, {name for part in chosen for name in part} - {SCALER})
        self._groups, self.sizes = self._parameters.groups, self._parameters.sizes
        self._has_categories = any(CATEGORIES in part for part in chosen)
        self._is_scaled = np.array([SCALER in part for part in chosen])  # by a scaler of its own, which is free
        self.curvatures = Curvatures(len(models))
        # variables: parameters as in `Coordinates`, factors of single parts, and a shared one last
        scale, unlinked = scale and any(chosen), likelihood.tree.lengths.ndim > 1
        self.owns_factor = self._is_scaled | (scale and unlinked & (np.array(self.sizes) > 0))
        own = [
            get_bounds(model, [SCALER])[0] if is_scaled else (-MAX_LOG_SCALE, MAX_LOG_SCALE)
            for model, is_scaled, owns in zip(models, self._is_scaled, self.owns_factor, strict=True)
            if owns
        ]
        ends = np.cumsum([0, *self.sizes])
        self.members: list[IndexArray] = [np.arange(first, end) for first, end in pairwise(ends)]
        for k, number in enumerate(np.flatnonzero(self.owns_factor).tolist()):
            self.members[number] = np.append(self.members[number], ends[-1] + k)
        if scale and not unlinked and not self._is_scaled.all():
            for number in np.flatnonzero(~self._is_scaled).tolist():
                self.members[number] = np.append(self.members[number], ends[-1] + len(own))
            own.append((-MAX_LOG_SCALE, MAX_LOG_SCALE))
        self._bounds = np.concatenate([self._parameters.bounds, np.reshape(own, (-1, 2))])

    def run(self, epsilon: float = MODEL_EPSILON) -> float:
        """Optimise until no more than `epsilon` is to be gained, see `minimise`; return lnL, which never falls.

        Rate categories of sites (+PSR) are chosen first; this may change all lengths by a common factor.
        """
        if self._has_categories:
            choose_categories(self.likelihood)
            self._settle_factors(self.begin())
        if not len(self._bounds):
            return self.likelihood.lnl()
        choose_site_rates(self.likelihood, self._groups)
        what = self._bounds, self.members, epsilon, MAX_MODEL_EVALUATIONS, self.curvatures
        return self._improve(lambda start: minimise(self.evaluate, start, *what))

    def explore(self, factors: Sequence[float] = OTHER_FACTORS) -> float:
        """Look for other optima of each part, keep what is better; return lnL, which never falls.

        With a factor of lengths, alpha and the rates lnL may have several optima, and plateaus where alpha is small.
        Each part is optimised again from `factors` times its present one, if it has one of its own among others, each
        with the best of `SiteRates.others`; where the factor is 1, only if these have changed. Parts that share a
        factor with others stay as they are.
        """
        if not len(self._bounds):
            return self.likelihood.lnl()
        return self._improve(lambda start: self._best_of_others(start, factors))

    def settle(self) -> float:
        """Bring factors from the scalers to the lengths where all scalers are free, see above; return lnL."""
        return self._improve(lambda start: start)

    def _improve(self, find: Callable[[FloatArray], FloatArray]) -> float:
        """Go from the present vector to the one that `find` makes of it, unless lnL is lower there; return lnL."""
        likelihood = self.likelihood
        before, lnl = likelihood.fit(), likelihood.lnl()
        found = find(self.begin())
        self._set_models(found)
        self._settle_factors(found)
        reached = likelihood.lnl()
        if reached >= lnl:
            return reached
        likelihood.restore(before)
        return lnl

    def _best_of_others(self, start: FloatArray, factors: Sequence[float]) -> FloatArray:
        """The vector with the best variables of each part, from `start` and from elsewhere."""
        best, lnls = start.copy(), self.likelihood.part_lnl()
        for factor in factors:
            trial, members = self._elsewhere(start, factor)
            epsilon = EXPLORING_EPSILON * sum(len(own) > 0 for own in members)
            if not epsilon:
                continue
            curvatures = Curvatures(len(members))  # far from here they are others
            what = self._bounds, members, epsilon, MAX_MODEL_EVALUATIONS, curvatures
            found = minimise(partial(self.evaluate, curvatures=curvatures), trial, *what)
            self._set_models(found)
            try:
                reached = self.likelihood.part_lnl()
            except EngineError:  # it never got away from a start where some pattern cannot be represented
                continue
            for number in np.flatnonzero(reached > lnls):
                best[members[number]] = found[members[number]]
                self.curvatures.matrices[number] = curvatures.matrices[number]
            lnls = np.maximum(lnls, reached)
        return best

    def _elsewhere(self, start: FloatArray, factor: float) -> tuple[FloatArray, list[IndexArray]]:
        """Where `explore` begins with a factor: the vector, and the variables of each part that it optimises."""
        owns = self.owns_factor if len(self.members) > 1 and factor != 1.0 else np.zeros(len(self.members), dtype=bool)
        if factor != 1.0 and not owns.any():
            return start, [own[:0] for own in self.members]
        self._set_models(start)
        pairs = zip(self.likelihood.models, self._groups, strict=True)
        starts = [[model.with_sites(sites) for sites in model.sites.others(groups)] for model, groups in pairs]
        for number in np.flatnonzero(owns).tolist():
            for model in starts[number]:
                model.set_ratios(SCALER, factor * model.ratios(SCALER))
        tried = side_by_side(starts)
        chosen = np.argmax(possible_likelihoods(self.likelihood, tried), axis=0)
        trial, members = start.copy(), []
        for number, own in enumerate(self.members):
            size = self.sizes[number]
            is_alone = len(self.members) == 1 or len(own) == size + self.owns_factor[number]  # shares no factor
            moves = owns[number] or (factor == 1.0 and chosen[number] > 0 and is_alone)
            members.append(own if moves else own[:0])
            if moves:
                trial[own[:size]] = get_vector(tried[chosen[number]][number], self._groups[number])
            if owns[number]:
                trial[own[-1]] += np.log(factor)
        return trial, members

    def begin(self) -> FloatArray:
        """The variables that stand for the models and lengths as they are; `evaluate` needs it first."""
        self._scalers = [model.scaler for model in self.likelihood.models]
        self._present = np.full(len(self._bounds), np.nan)  # what the models are set to
        vector = np.zeros(len(self._bounds))
        vector[: sum(self.sizes)] = self._parameters.get()
        for number in np.flatnonzero(self._is_scaled).tolist():
            vector[self.members[number][-1]] = np.log(self._scalers[number])
        return vector

    def _set_models(self, vector: FloatArray) -> None:
        """Set the models; factors of lengths become factors of rates, which have no bounds."""
        for number, (model, members) in enumerate(zip(self.likelihood.models, self.members, strict=True)):
            if np.array_equal(vector[members], self._present[members]):
                continue
            size = self.sizes[number]
            set_vector(model, vector[members[:size]], self._groups[number])
            if len(members) > size:
                base = 1.0 if self._is_scaled[number] else self._scalers[number]
                model.set_ratios(SCALER, base * np.exp(vector[members[-1:]]))
        self._present = vector.copy()
        self.likelihood.model_changed()

    def evaluate(
        self, vector: FloatArray, wanted: BoolArray, curvatures: Curvatures | None = None
    ) -> tuple[FloatArray, Sequence[FloatArray]]:
        """-lnL and slopes of each part, as `minimise` asks; infinite if some pattern cannot be represented."""
        self._set_models(vector)
        slopes = [np.zeros(len(members)) for members in self.members]
        scaled = [len(members) > size for members, size in zip(self.members, self.sizes, strict=True)]
        try:
            lnls, found = model_slopes(self.likelihood, self._groups, scaled, wanted, curvatures or self.curvatures)
        except EngineError:
            return np.full(len(slopes), np.inf), slopes
        return -lnls, [-own if is_wanted else none for own, is_wanted, none in zip(found, wanted, slopes, strict=True)]

    def know_curvatures(self) -> Curvatures:
        """Those of the models as they are, the expected ones if they have never been optimised."""
        if any(matrix is None and len(own) for matrix, own in zip(self.curvatures.matrices, self.members, strict=True)):
            self.evaluate(self.begin(), np.ones(len(self.members), dtype=bool))
        return self.curvatures

    def _settle_factors(self, vector: FloatArray) -> None:
        """Bring factors from the rates to the lengths, except for scalers; if all are free, their mean becomes 1.

        A common factor of scalers comes to the lengths as far as the longest stays within its bound.
        """
        models, lengths = self.likelihood.models, self.likelihood.tree.lengths
        factors = np.ones(len(models))
        for number in np.flatnonzero(~self._is_scaled).tolist():
            factors[number] = np.exp(vector[self.members[number][self.sizes[number] :]].sum())
            models[number].set_ratios(SCALER, np.array(self._scalers[number : number + 1]))
        if self._is_scaled.all():
            sites = self.likelihood.part_sites
            mean = sites / sites.sum() @ [model.scaler for model in models]
            factors[:] = min(mean, MAX_BRANCH_LENGTH / lengths.max())
        if lengths.ndim == 1:
            factors[:] = factors[np.argmin(self._is_scaled)]  # shared by all parts
        for number in np.flatnonzero(self._is_scaled).tolist():
            scaler = models[number].scaler / factors[number]
            models[number].set_ratios(SCALER, np.clip([scaler], MIN_SCALER, MAX_SCALER))
        scaled = lengths * (factors[0] if lengths.ndim == 1 else factors)
        lengths[:] = np.clip(scaled, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
        self.likelihood.model_changed()


def optimise_model(
    likelihood: TreeLikelihood, names: Iterable[str] | None = None, epsilon: float = MODEL_EPSILON, scale: bool = False
) -> float:
    """Optimise free model parameters in place, once, and return lnL, which never falls; see `ModelOptimiser`."""
    optimiser = ModelOptimiser(likelihood, names, scale)
    optimiser.run(epsilon)
    return optimiser.explore((1.0,))


def choose_site_rates(likelihood: TreeLikelihood, names: Sequence[Sequence[str]]) -> None:
    """Set the rates over sites to the best start values, in each model in which they have never been optimised.

    All values are tried at once; lnL never falls. `names` holds the groups of each model that will be optimised.
    """
    models = likelihood.models
    pairs = zip(models, names, strict=True)
    starts = [[model, *map(model.with_sites, model.site_starts(part))] for model, part in pairs]
    tried = side_by_side(starts)
    if len(tried) == 1:
        return
    for model, part, lnls in zip(models, starts, possible_likelihoods(likelihood, tried).T, strict=True):
        model.assign(part[min(int(np.argmax(lnls)), len(part) - 1)])
    likelihood.model_changed()
