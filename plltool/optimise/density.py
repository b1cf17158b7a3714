"""The likelihood as a function of one vector, with its gradient, and standard errors of lengths from its curvature.

The vector holds logarithms: of branch lengths (expected substitutions per site), branch by branch and part by part
where parts have lengths of their own, then of the free parameters of each part's model, as `plltool.model.vector`
orders them. No element has a unit, and one that grows by 0.01 raises its length or ratio by one per cent.
"""

from collections.abc import Collection, Sequence

import numpy as np

from plltool.arrays import ArrayLike, BoolArray, FloatArray, IndexArray
from plltool.constants import COLLAPSE_LENGTH, ERROR_STEP, MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine.base import NotFiniteError
from plltool.errors import EngineError, InputError
from plltool.model.model import CATEGORIES, GROUPS, SCALER, Model
from plltool.model.vector import expected_curvature, get_bounds, get_vector, parameter_slopes, scale_slope, set_vector
from plltool.optimise.bounded import Curvatures
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.operations import ROOT

RIDGE_STEP = 1e-3  # in a parameter's logarithm, for differences of slopes
BOUND_TOLERANCE = 1e-9  # of a vector's elements, logarithms, which rounding may put beyond their bounds
MOST_DIFFERENCES = 3  # slopes that are differences of lnL; a gradient takes as long as lnL under seven models
DIFFERENCE_STEP = 1e-5  # of these, in a logarithm; rounding of lnL adds 1e-5 to slopes where lnL is -1e6
LEAST_FOUND = 0.01  # lnL, of second derivatives in logarithms: there lnL is flat


def model_slopes(
    likelihood: TreeLikelihood,
    groups: Sequence[Sequence[str]],
    scaled: Sequence[bool] | None = None,
    parts: BoolArray | None = None,
    curvatures: Curvatures | None = None,
) -> tuple[FloatArray, list[FloatArray]]:
    """lnL of each part (n_parts,), and its slopes in the elements of the part's `groups`.

    Where a part is `scaled`, the slope in the logarithm of a factor of its rates follows. Only `parts` are wanted, None
    for all. Elements are logarithms, so no slope has a unit. Raises EngineError where a pattern cannot be represented.

    An optimiser has `curvatures` of the parts. Those that it does not know become the expected ones, and if it knows
    them, a few slopes of one part are differences of lnL, which take less time.
    """
    models = likelihood.models
    scaled = [False] * len(models) if scaled is None else scaled
    known = curvatures.matrices if curvatures is not None else []
    is_short = len(models) == 1 and len(get_vector(models[0], groups[0])) + scaled[0] <= MOST_DIFFERENCES
    if is_short and known and known[0] is not None and likelihood.engine.layout.precision == "double":
        moved, steps = _moved_models(models[0], groups[0], scaled[0])
        lnls = likelihood.likelihoods([models, *([model] for model in moved)])
        return lnls[0], [(lnls[1:, 0] - lnls[0, 0]) / steps]
    lnls, matrices, masses = likelihood.rate_matrix_gradient(parts)
    found = []
    for number, (model, names, own) in enumerate(zip(models, groups, scaled, strict=True)):
        by_names = parameter_slopes(model, names, matrices[number], masses[number])
        found.append(np.append(by_names, scale_slope(model, matrices[number])) if own else by_names)
        if curvatures is not None and known[number] is None and len(found[number]) and (parts is None or parts[number]):
            expected = expected_curvature(model, names, own, matrices[number], masses[number])
            least = np.maximum(np.abs(found[number]), LEAST_FOUND)  # so that no step is long
            curvatures.guess(number, expected + np.diag(np.maximum(least - np.diag(expected), 0.0)))
    return lnls, found


def _moved_models(model: Model, groups: Sequence[str], scaled: bool) -> tuple[list[Model], FloatArray]:
    """Copies of a model, of which each has another element changed, or the factor of all rates; and by how much."""
    vector, bounds = get_vector(model, groups), get_bounds(model, groups)
    steps = [
        -DIFFERENCE_STEP if at + DIFFERENCE_STEP > high else DIFFERENCE_STEP
        for at, (_, high) in zip(vector, bounds, strict=True)
    ]
    moved = [model.copy() for _ in range(len(vector) + scaled)]
    for change, other in zip(np.diag(steps), moved, strict=False):
        set_vector(other, vector + change, groups)
    if scaled:
        moved[-1].set_ratios(SCALER, moved[-1].ratios(SCALER) * np.exp(DIFFERENCE_STEP))
    return moved, np.array([*steps, *[DIFFERENCE_STEP] * scaled])


class Coordinates:
    """The elements of the vector for a likelihood as it stands; all are read from and written to it.

    Under a model that is not time-reversible, the branch of the tip that stands for the root is left out: its length
    changes no likelihood. Raises InputError if neither lengths nor models are wanted.
    """

    def __init__(self, likelihood: TreeLikelihood, lengths: bool, model: bool, groups: Collection[str] | None = None):
        if not (lengths or model):
            raise InputError("found neither lengths nor model, expected at least one")
        self._likelihood = likelihood
        tree, models = likelihood.tree, likelihood.models
        own = int(tree.edges[ROOT, 0]) if likelihood.is_rooted else -1
        self._edges = np.flatnonzero(np.arange(tree.n_edges) != own) if lengths else np.empty(0, dtype=np.intp)
        chosen = set(GROUPS if groups is None else groups) - {CATEGORIES} if model else set()
        self.groups = [[name for name in one.free_parameters if name in chosen] for one in models]
        self.n_lengths = tree.lengths[self._edges].size
        self.sizes = [len(get_vector(*pair)) for pair in zip(models, self.groups, strict=True)]

    @property
    def _models(self) -> list[tuple[Model, list[str]]]:
        return list(zip(self._likelihood.models, self.groups, strict=True))

    def get(self) -> FloatArray:
        """(n,) the present values."""
        lengths = np.log(self._likelihood.tree.lengths[self._edges]).ravel()
        return np.concatenate([lengths, *(get_vector(*pair) for pair in self._models)])

    @property
    def bounds(self) -> FloatArray:
        """(n, 2) the lowest and the highest value of each element."""
        lengths = np.tile(np.log([MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH]), (self.n_lengths, 1))
        return np.concatenate([lengths, *(np.reshape(get_bounds(*pair), (-1, 2)) for pair in self._models)])

    def names(self) -> list[str]:
        """(n,) what each element is the logarithm of, such as ``length 12`` or ``part 1 rates 0``."""
        several = len(self._likelihood.models) > 1
        own_lengths = self._likelihood.tree.lengths.ndim > 1
        parts = [f" part {part}" for part in range(len(self._likelihood.models))] if own_lengths else [""]
        names = [f"length {edge}{part}" for edge in self._edges.tolist() for part in parts]
        for number, (model, groups) in enumerate(self._models):
            prefix = f"part {number} " if several else ""
            names += [f"{prefix}{group} {k}" for group in groups for k in range(len(model.ratios(group)))]
        return names

    def check(self, vector: ArrayLike) -> FloatArray:
        """The vector (n,) as an array; InputError if it has another shape or an element is no number."""
        try:
            values = np.asarray(vector, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"vector: found {vector!r}, expected numbers") from error
        n = self.n_lengths + sum(self.sizes)
        if values.shape != (n,):
            raise InputError(f"expected a vector of {n} elements, found an array of shape {values.shape}")
        bad = np.flatnonzero(np.isnan(values))
        if len(bad):
            raise InputError(f"element {bad[0]} of the vector: found nan, expected a number")
        return values

    def outside(self, vector: FloatArray) -> IndexArray:
        """The elements that are not within their bounds, rounding aside."""
        low, high = self.bounds.T
        return np.flatnonzero((vector < low - BOUND_TOLERANCE) | (vector > high + BOUND_TOLERANCE))

    def set(self, vector: FloatArray) -> None:
        """Set lengths and models; elements beyond their bounds are moved to them."""
        likelihood = self._likelihood
        lengths = np.clip(np.exp(vector[: self.n_lengths]), MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
        likelihood.tree.lengths[self._edges] = lengths.reshape(-1, *likelihood.tree.lengths.shape[1:])
        start = self.n_lengths
        for (model, groups), size in zip(self._models, self.sizes, strict=True):
            if size:
                set_vector(model, vector[start : start + size], groups)
            start += size
        if start > self.n_lengths:
            likelihood.model_changed()

    def slopes(self, curvatures: Curvatures | None = None) -> tuple[float, FloatArray]:
        """lnL, and its slope in each element (n,), see `model_slopes`; a launch for all lengths."""
        likelihood, found, lnl = self._likelihood, [np.empty(0)], np.nan
        lengths = likelihood.tree.lengths
        if self.n_lengths:
            lnls, slopes = likelihood.all_derivatives() if curvatures is None else likelihood.known_derivatives(lengths)
            lnl = float(lnls.sum())
            found.append((slopes[self._edges, ..., 0] * lengths[self._edges]).ravel())
        if any(self.sizes):
            lnls, own = model_slopes(likelihood, self.groups, curvatures=curvatures)
            lnl = float(lnls.sum())
            found += own
        return (likelihood.lnl() if np.isnan(lnl) else lnl), np.concatenate(found)

    def curvatures(self, of_models: Curvatures) -> tuple[FloatArray, list[FloatArray]]:
        """The size of the second derivative of lnL in each length alone, and the Hessian of each part's parameters.

        The Hessians are those that an optimiser of the models knows; it may have factors of lengths behind parameters.
        """
        lengths = self._likelihood.tree.lengths
        slopes = self._likelihood.known_derivatives(lengths)[1][self._edges]
        lengths = lengths[self._edges]
        alone = (slopes[..., 1] * lengths**2 + slopes[..., 0] * lengths).ravel()
        pairs = zip(of_models.matrices, self.sizes, strict=True)
        hessians = [np.zeros((0, 0)) if matrix is None else matrix[:size, :size] for matrix, size in pairs]
        return np.maximum(np.abs(alone), LEAST_FOUND), hessians

    def evaluate(
        self, vector: FloatArray, _wanted: BoolArray, curvatures: Curvatures
    ) -> tuple[FloatArray, list[FloatArray]]:
        """-lnL and its slopes, as `minimise` asks for them; infinite where some pattern cannot be represented."""
        self.set(vector)
        try:
            lnl, slopes = self.slopes(curvatures)
        except EngineError:
            return np.array([np.inf]), [np.zeros_like(vector)]
        return np.array([-lnl]), [-slopes]


class Density:
    """lnL as a function of a vector; subclasses hold the likelihood. Every method takes `lengths` and `model`.

    They say what the vector holds: logarithms of all branch lengths, of the free parameters of all models, or both.
    """

    _likelihood: TreeLikelihood

    def vector(self, lengths: bool = True, model: bool = True) -> FloatArray:
        """The present branch lengths and free model parameters as one vector (n,) of logarithms.

        The lengths come first, in expected substitutions per site and in the order of `lengths`, without the branch of
        the root of a model that has one. The free parameters of each part follow, group by group, as positive ratios:
        exchangeabilities, frequencies, class weights, and free rates with their weights relative to the last one of
        each; alpha and pinv as functions that are about log alpha and logit pinv; rates of switching; the scaler.
        `vector_names` names the elements. A parameter that the model fixes is no element.
        """
        return Coordinates(self._likelihood, lengths, model).get()

    def set_vector(self, vector: ArrayLike, lengths: bool = True, model: bool = True) -> None:
        """Set lengths and parameters from a vector; InputError for another size, or an element out of bounds."""
        coordinates = Coordinates(self._likelihood, lengths, model)
        values = coordinates.check(vector)
        for element in coordinates.outside(values)[:1]:
            low, high = coordinates.bounds[element]
            name = f"{coordinates.names()[element]} (element {element} of the vector)"
            raise InputError(f"{name}: found {values[element]:g}, expected {low:g} .. {high:g}")
        coordinates.set(values)

    def vector_names(self, lengths: bool = True, model: bool = True) -> list[str]:
        """What each element of `vector` is the logarithm of, such as ``length 12`` or ``part 1 rates 0``."""
        return Coordinates(self._likelihood, lengths, model).names()

    def vector_bounds(self, lengths: bool = True, model: bool = True) -> FloatArray:
        """(n, 2) the lowest and the highest value of each element of `vector`."""
        return Coordinates(self._likelihood, lengths, model).bounds

    def gradient(self, lengths: bool = True, model: bool = True) -> FloatArray:
        """The slope of lnL in each element of `vector`, (n,), at the present lengths and parameters.

        The slope in the logarithm of a length is the length times the slope in the length itself, which `derivatives`
        returns. All lengths take one launch and all models another, so the time grows with the number of branches and
        not with its square (Ji et al. 2020; Gangavarapu et al. 2024). Slopes are exact up to rounding, except for
        those in rates over sites and in the groups of mixtures, which are exact to about 1e-9 of their size.
        """
        return Coordinates(self._likelihood, lengths, model).slopes()[1]

    def hessian_vector(self, direction: ArrayLike, lengths: bool = True, model: bool = True) -> FloatArray:
        """The second derivatives of lnL in the elements of `vector`, times a direction (n,): (n,).

        A central difference of `gradient` along the direction, in double precision exact to about 1e-4 of its largest
        element. It takes two gradients. The likelihood stays as it is. Where a step would lead out of bounds, the
        difference is one-sided, exact to about 1e-3; if it would on both sides, the elements that cannot go up and all
        others are taken one after another, for the product is linear.
        """
        likelihood = self._likelihood
        coordinates = Coordinates(likelihood, lengths, model)
        along = coordinates.check(direction)
        largest = np.abs(along).max(initial=0.0)
        if not np.isfinite(largest):
            wrong = np.abs(along).argmax()
            raise InputError(f"element {wrong} of the direction: found {along[wrong]}, expected a finite number")
        if largest == 0.0:
            return np.zeros_like(along)
        here, before, step = coordinates.get(), likelihood.fit(), along * (RIDGE_STEP / largest)
        beyond = {side: coordinates.outside(here + side * step) for side in (1.0, -1.0)}
        ends = [side for side, elements in beyond.items() if not len(elements)]
        if not ends:
            falling = np.zeros_like(along)
            falling[beyond[1.0]] = along[beyond[1.0]]
            of_others = self.hessian_vector(along - falling, lengths, model)
            return of_others + self.hessian_vector(falling, lengths, model)
        if len(ends) == 1:
            ends.append(0.0)
        try:
            slopes = []
            for side in ends:
                coordinates.set(here + side * step)
                slopes.append(coordinates.slopes()[1])
        finally:
            likelihood.restore(before)
        return (slopes[0] - slopes[1]) * (largest / RIDGE_STEP / (ends[0] - ends[1]))

    def log_density(self, vector: ArrayLike, lengths: bool = True, model: bool = True) -> float:
        """lnL at a vector, where the likelihood then stays; -inf out of bounds, or where a site has likelihood 0.

        Out of bounds the likelihood stays where it was. This is the density of the data alone: a prior, and the
        logarithms of the lengths where a prior is one of lengths themselves, are yours to add.
        """
        coordinates = Coordinates(self._likelihood, lengths, model)
        values = coordinates.check(vector)
        if len(coordinates.outside(values)):
            return -np.inf
        coordinates.set(values)
        try:
            return self._likelihood.lnl()
        except NotFiniteError:
            return -np.inf

    def value_and_grad(self, vector: ArrayLike, lengths: bool = True, model: bool = True) -> tuple[float, FloatArray]:
        """`log_density` and its gradient (n,) at a vector; the gradient is 0 where the density is -inf."""
        coordinates = Coordinates(self._likelihood, lengths, model)
        values = coordinates.check(vector)
        if not len(coordinates.outside(values)):
            coordinates.set(values)
            try:
                return coordinates.slopes()
            except NotFiniteError:
                pass
        return -np.inf, np.zeros_like(values)


LEAST_INFORMATION = 1e-5  # in any direction, where each length alone has 1; less is below the errors of the steps


def length_errors(likelihood: TreeLikelihood, step: float = ERROR_STEP) -> FloatArray:
    """Standard errors of the branch lengths, in the shape of the tree's lengths, which should be optimised.

    They are the square roots of the diagonal of the inverse of the observed information, the second derivatives of -lnL
    in all lengths. The model is taken as known. Lengths at a bound are held fixed; their errors, and those of lengths
    that the data do not determine, are NaN. Each branch takes one launch. `step` is that of `length_hessian`.
    """
    lengths = likelihood.tree.lengths
    free = ((lengths > COLLAPSE_LENGTH) & (lengths < MAX_BRANCH_LENGTH)).reshape(len(lengths), -1)
    edges = np.flatnonzero(free.any(axis=1))
    hessian = length_hessian(likelihood, edges, step)
    errors = np.full(free.shape, np.nan)
    for part, is_free in enumerate(free[edges].T):
        own = np.flatnonzero(is_free)
        information = -hessian[np.ix_(own, own)][..., part]
        scale = np.sqrt(np.maximum(np.abs(np.diag(information)), np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(information / np.outer(scale, scale))  # lengths differ by powers of ten
        known = values > LEAST_INFORMATION
        variances = vectors[:, known] ** 2 @ (1 / values[known])
        unknown = (vectors[:, ~known] ** 2).sum(axis=1) > LEAST_INFORMATION
        errors[edges[own], part] = np.where(unknown, np.nan, np.sqrt(variances) / scale)
    return errors.reshape(lengths.shape)


def length_hessian(likelihood: TreeLikelihood, edges: IndexArray, step: float = ERROR_STEP) -> FloatArray:
    """Second derivatives of lnL in the lengths of each pair of branches: (n, n, k), for k lengths per branch.

    Mixed derivatives are differences of slopes: each branch in turn becomes longer by the share `step`. If parts have
    lengths of their own, these change together, because the length of one part does not affect the slopes of another.
    """
    given = likelihood.tree.lengths
    here = likelihood.all_derivatives()[1][edges].reshape(len(edges), -1, 2)
    hessian = np.empty((len(edges), len(edges), here.shape[1]))
    for row, edge in enumerate(edges.tolist()):
        moved = given.copy()
        moved[edge] *= 1 + step
        slopes = likelihood.all_derivatives(moved)[1][edges, ..., 0].reshape(len(edges), -1)
        hessian[row] = (slopes - here[..., 0]) / (moved[edge] - given[edge])
    hessian = (hessian + hessian.swapaxes(0, 1)) / 2
    own = np.arange(len(edges))
    hessian[own, own] = here[..., 1]
    return hessian
