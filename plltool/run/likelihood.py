"""A likelihood that stays on its device: read and set lengths and parameters, compute, optimise."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from numbers import Integral
from os import PathLike
from typing import NoReturn, Unpack

import numpy as np

from plltool import constants
from plltool.arrays import ArrayLike, FloatArray, IndexArray
from plltool.errors import InputError, check_least, count, shorten, show_object
from plltool.hardware import Hardware, HardwareSettings
from plltool.model.describe import format_scheme
from plltool.model.model import GROUPS, Model
from plltool.model.vector import Parameters
from plltool.optimise.ancestral import node_states, with_state_tips
from plltool.optimise.categories import choose_categories
from plltool.optimise.density import Density, length_errors
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.polish import Other, PolishRound, polish
from plltool.progress import Listener, Progress, ignore
from plltool.run.engines import open_engine
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree, cut_inputs, link_lengths, resolve_inputs
from plltool.run.memory import evaluation_slots, search_slots
from plltool.run.messages import remarks_on_optima
from plltool.run.rooting import OutgroupLike, mean_tree, write_rooted
from plltool.run.site_rates import refuse_site_rates
from plltool.run.supports import Supports, check_kinds
from plltool.seeds import SUPPORTS, generator
from plltool.settings import takes_keywords
from plltool.tree.topology import Tree
from plltool.tree_search.branch_supports import smaller_support, support_branches
from plltool.tree_search.climb import RootPlace, describe_places, place_root, scan_root

COARSE_ERROR_STEP = 1e-2  # in place of ERROR_STEP if slopes have 24 bits
LENGTHS = "lengths"
LENGTH_RANGE = f"{constants.MIN_BRANCH_LENGTH:g} .. {constants.MAX_BRANCH_LENGTH:g}"


class Likelihood(Parameters, Density):
    """The likelihood of one alignment on one tree under one model, or a model for each part, on one device.

    A length or parameter that is set changes the next answer; nothing is written to files. Use it in a ``with`` block,
    or call `close`. Branches are numbered as in ``likelihood.tree.ends``; lengths are expected substitutions per site.

    Parameters
    ----------
    alignment : as for `plltool.search`
    tree : as for `plltool.evaluate`; it is copied
    model : as for `plltool.search`; it is copied. Values in braces are never optimised
    brlen : how the branch lengths of parts are linked, as for `plltool.search`; unlinked ones have the shape
        (n_edges, n_parts)
    multifurcations : keep nodes of the trees that have more than three branches; the branches that were `added` have no
        length, see `plltool.Tree`. Not for models that need a root
    lnl_only : hold only the CLAs that `lnl` and `site_lnl` need; `gradient`, `optimise` ... raise EngineError
    neighbours, states, roots : hold what `support_branches`, `node_states`, or `scan_root` and `place_root` need
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Attributes
    ----------
    data : the alignment, cut into parts
    patterns : the distinct columns of each part
    hardware : the settings above, from `device` to `memory`
    engine : the engine that does the arithmetic, with its layout and counters
    reason : why its device was chosen
    warnings : what a user should know about the trees that were set, one line each
    other : another optimum of the lengths of this tree that `optimise` met; its numbers are nan if there was none
    root_is_given : whether the tree came with a root that means something, see `is_rooted`

    Raises InputError if alignment, tree or model cannot be used, and DeviceError if the device cannot be used.
    """

    @takes_keywords(HardwareSettings)
    def __init__(
        self,
        alignment: AlignmentLike,
        tree: TreeLike,
        model: ModelLike | None = None,
        *,
        brlen: str = constants.DEFAULT_LINKAGE,
        multifurcations: bool = False,
        lnl_only: bool = False,
        neighbours: bool = False,
        states: bool = False,
        roots: bool = False,
        **hardware: Unpack[HardwareSettings],
    ):
        self.hardware = Hardware.of(**hardware)
        self.data, models = resolve_inputs(alignment, model, brlen, rooted=True)
        self._brlen = brlen
        unlinked = brlen == constants.UNLINKED
        self._multifurcations = multifurcations
        given = as_tree(tree, self.data.names, unlinked, multifurcations)
        self._tree = link_lengths(given, len(models) if unlinked else 1)
        self.patterns = self.data.patterns
        self.root_is_given = given.root_is_given
        self.warnings, self.other = (*given.warnings, *self._bound_lengths()), Other()
        n_taxa = self.data.n_taxa
        slots = evaluation_slots(n_taxa, lnl_only)
        if neighbours or states or (roots and self.data.has_root):
            slots = search_slots(n_taxa)
        held = with_state_tips(self.patterns) if states else self.patterns
        self.engine, self.reason = open_engine(held, models, slots, self.hardware)
        self._likelihood = TreeLikelihood(self._tree, models, self.engine)
        choose_categories(self._likelihood, only_first=True)
        self._is_complete = True

    def _bound_lengths(self) -> tuple[str, ...]:
        """Move the tree's lengths into the bounds, with a warning if that changes any."""
        bounded = np.clip(self._tree.lengths, constants.MIN_BRANCH_LENGTH, constants.MAX_BRANCH_LENGTH)
        n_changed = int(np.count_nonzero(bounded != self._tree.lengths))
        self._tree.lengths[:] = bounded
        return (f"{count(n_changed, 'branch length')} outside {LENGTH_RANGE} moved to the bound",) if n_changed else ()

    def __repr__(self) -> str:
        """One line; it computes nothing."""
        models = shorten("; ".join(dict.fromkeys(str(model.spec) for model in self._likelihood.models)))
        size = f"{self.data.n_sequences} taxa, {self.data.n_sites} sites"
        return f"<Likelihood: {size}, {models}, {self.engine.device_name}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Likelihood cannot be pickled or copied: make one from the data, tree and models of this one")

    def __enter__(self) -> Likelihood:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.engine.__exit__(kind, error, traceback)

    def close(self) -> None:
        """Free what is held on the device."""
        self.engine.close()

    # --- tree -----------------------------------------------------------------------------------------------

    @property
    def tree(self) -> Tree:
        """A copy of the tree with its present lengths. Assign another tree of the same taxa to replace it."""
        return self._tree.copy()

    @tree.setter
    def tree(self, given: TreeLike) -> None:
        several = self._tree.lengths.ndim > 1
        tree = as_tree(given, self.data.names, several, self._multifurcations)
        self._tree.assign(link_lengths(tree, self._tree.lengths[0].size))
        self._tree.added = tree.added
        self.root_is_given = tree.root_is_given
        self._warn_of(*tree.warnings, *self._bound_lengths())
        self.other = Other()
        self._likelihood.topology_changed()

    def _warn_of(self, *remarks: str) -> None:
        self.warnings = tuple(dict.fromkeys((*self.warnings, *remarks)))

    def newick(self, outgroup: OutgroupLike | None = None) -> str:
        """The tree with its present lengths as Newick text; means over sites where parts have separate lengths.

        If the outgroup is not one clade, its first taxon alone is used. InputError if that is not in the tree.
        """
        return write_rooted(mean_tree(self._tree, self._likelihood.part_sites), outgroup)[0]

    @property
    def lengths(self) -> FloatArray:
        """A copy of the branch lengths, (n_edges,) or unlinked (n_edges, n_parts). Assign an array to set them all."""
        return self._tree.lengths.copy()

    @lengths.setter
    def lengths(self, values: ArrayLike) -> None:
        lengths = np.asarray(values, dtype=np.float64)
        if lengths.shape != self._tree.lengths.shape:
            expected = " x ".join(map(str, self._tree.lengths.shape))
            raise InputError(f"expected {expected} branch lengths, found an array of shape {lengths.shape}")
        is_possible = (lengths >= constants.MIN_BRANCH_LENGTH) & (lengths <= constants.MAX_BRANCH_LENGTH)
        for edge, *part in np.argwhere(~is_possible).tolist():
            raise InputError(f"branch {edge}: found length {lengths[(edge, *part)]:g}, expected {LENGTH_RANGE}")
        self._tree.lengths[:] = lengths

    def set_length(self, edge: int, length: float) -> None:
        """Set the length of one branch; InputError outside the bounds or for a branch that does not exist."""
        if not (isinstance(edge, Integral) and 0 <= edge < self._tree.n_edges):
            raise InputError(f"found branch {edge!r}, expected 0 .. {self._tree.n_edges - 1}")
        lengths = self.lengths
        lengths[edge] = length
        self.lengths = lengths

    # --- parts ----------------------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[PartLikelihood, ...]:
        """A handle on the model of each part; with one part the likelihood itself has the same attributes."""
        return tuple(PartLikelihood(self, number) for number in range(len(self.data.parts)))

    @property
    def models(self) -> list[Model]:
        """Copies of the parts' models with their present values."""
        return [model.copy() for model in self._likelihood.models]

    @property
    def model_string(self) -> str:
        """The model with all present values in braces; for several parts the lines of a partition file."""
        return format_scheme(self.data, self._likelihood.models)

    def _the_model(self) -> Model:
        models = self._likelihood.models
        if len(models) > 1:
            raise InputError(f"found {len(models)} parts, each with a model: expected the attribute of one of `parts`")
        return models[0]

    def _model_changed(self) -> None:
        self._likelihood.model_changed()

    # --- answers --------------------------------------------------------------------------------------------

    def lnl(self) -> float:
        """Log-likelihood of the alignment."""
        return self._likelihood.lnl()

    def site_lnl(self) -> FloatArray:
        """(n_sites,) log-likelihood of each site, in the alignment's order; NaN for sites that are in no part."""
        return self.spread_over_sites(self.pattern_lnl())

    def site_rates(self) -> FloatArray:
        """(n_sites,) posterior mean rate of each site, relative to a mean of 1 in its part; NaN as in `site_lnl`.

        Empirical Bayes: the components of the mixture are weighted by the likelihood of the site under each of them
        (Yang & Wang 1995). Under per-site rates (+PSR), the rate of the site's category.
        """
        rates = []
        for model, lnl in zip(self._likelihood.models, self._likelihood.component_lnl(), strict=True):
            own, category_of = model.mixture()[2] / model.scaler, model.sites.category_of
            shares = np.exp(lnl - lnl.max(axis=0))
            mean = own[: len(lnl)] @ shares / shares.sum(axis=0)
            rates.append(own[category_of] if model.has_site_rates and category_of is not None else mean)
        return self.spread_over_sites(np.concatenate(rates))

    def site_categories(self) -> FloatArray:
        """(n_sites,) the number, from 0, of the rate category with the highest posterior at each site; NaN likewise.

        Categories are in the order of the model's rates; the first one is that of invariable sites, if there are any.
        Classes of a mixture are summed.
        """
        numbers = []
        for model, lnl in zip(self._likelihood.models, self._likelihood.component_lnl(), strict=True):
            first, n = int(model.sites.invariable), len(model.sites.categories()[0])
            shares = np.exp(lnl - lnl.max(axis=0))
            varying = shares[first:].reshape(-1, n - first, shares.shape[1]) if len(lnl) > 1 else shares[None]
            best = np.vstack([shares[:first], varying.sum(axis=0)]).argmax(axis=0)
            category_of = model.sites.category_of
            numbers.append(category_of if model.has_site_rates and category_of is not None else best)
        return self.spread_over_sites(np.concatenate(numbers).astype(np.float64))

    def site_frequencies(self) -> FloatArray:
        """(n_sites, n_states) posterior mean frequencies (PMSF) of each site under a mixture of profiles; NaN likewise.

        The frequencies of classes are weighted by the likelihood of the site under each of them (Wang et al. 2018);
        invariable sites, which have all frequencies, do not count. InputError without profiles, or for several parts.
        """
        model = self._the_model()
        if model.spec.profiles is None or model.spec.switching:
            raise InputError(f"model {model.spec.shown}: found no profiles, expected a mixture such as LG+C20+G4")
        (lnl,), first = self._likelihood.component_lnl(), int(model.sites.invariable)
        shares, frequencies = np.exp(lnl[first:] - lnl[first:].max(axis=0)), model.mixture()[1][first:]
        return self.spread_over_sites(frequencies.T @ shares / shares.sum(axis=0)).T

    @property
    def is_rooted(self) -> bool:
        """Whether a model is not time-reversible; tip 0 of `tree` is then the root, on which lnL depends."""
        return self._likelihood.is_rooted

    def scan_root(self) -> tuple[RootPlace, ...]:
        """The lnL of the root on each branch, best first, with its two lengths optimised; made with `roots` only."""
        if not self.is_rooted:
            found = f"model {self.model_string!r} is time-reversible, so the root does not matter"
            raise InputError(f"{found}; choose another model")
        return describe_places(self._likelihood, scan_root(self._likelihood))

    def place_root(self, listener: Listener = ignore) -> float:
        """Optimise the place of the root, and then what `optimise` does, until neither gains; return lnL.

        A root that was given stays on its branch. The likelihood must have been made with `roots`.
        """
        again = partial(self.optimise, listener=listener)
        return place_root(self._likelihood, self.lnl(), again, stay=self.root_is_given)

    def length_errors(self) -> FloatArray:
        """Standard errors of the branch lengths, in the shape of `lengths`; see `optimise.density.length_errors`."""
        step = constants.ERROR_STEP if self.hardware.precision == "double" else COARSE_ERROR_STEP
        return length_errors(self._likelihood, step)

    def pattern_lnl(self) -> FloatArray:
        """(n_patterns,) unweighted log-likelihood of each pattern, part after part."""
        return self._likelihood.site_lnl()

    def spread_over_sites(self, values: FloatArray) -> FloatArray:
        """Values of patterns (..., n_patterns) as values of columns (..., n_columns); NaN for columns in no part.

        Constant sites that were added have no column.
        """
        n_columns = self.data.n_columns
        sites = np.full((*values.shape[:-1], n_columns + len(self.data.constant_sites)), np.nan)
        of_parts = self._likelihood.split_patterns(values)
        for part, patterns, own in zip(self.data.parts, self.patterns, of_parts, strict=True):
            sites[..., part.sites] = own[..., patterns.site_pattern]
        return sites[..., :n_columns]

    def part_lnl(self) -> FloatArray:
        """(n_parts,) log-likelihood of each part."""
        return self._likelihood.part_lnl()

    def likelihoods(self, models: Sequence[ModelLike]) -> FloatArray:
        """(n_models,) lnL of the tree under other models with as many rate categories; the likelihood keeps its own.

        A device computes as many of them at the same time as it has room for. Raises InputError for text, a model with
        another number of rate categories, and for per-site rates.
        """
        if isinstance(models, (str, PathLike)):
            raise InputError(f"models: found {show_object(models)}, expected a list of models")
        refuse_site_rates(self._likelihood.models, "the likelihood under several models")
        proposals = [cut_inputs(self.data, model, self._brlen)[1] for model in models]
        for parts in proposals:
            for model, own in zip(parts, self._likelihood.models, strict=True):
                found, expected = model.components().n_components, own.components().n_components
                if found != expected:
                    raise InputError(f"model {model.spec.shown}: found {found} rate categories, expected {expected}")
        return self._likelihood.likelihoods(proposals).sum(axis=1)

    def derivatives(self) -> tuple[float, FloatArray, FloatArray]:
        """lnL, and its first and second derivatives in each branch length, both in the shape of `lengths`."""
        lnl, slopes = self._likelihood.all_derivatives()
        return float(lnl.sum()), slopes[..., 0], slopes[..., 1]

    def support_branches(
        self,
        kinds: str | Sequence[str] = constants.ALRT_KINDS,
        replicates: int = constants.ALRT_REPLICATES,
        seed: int = constants.DEFAULT_SEED,
    ) -> Supports:
        """SH-aLRT, aBayes, LBP and SPRTA supports of the branches; lengths and parameters stay as they are.

        The likelihood must have been made with `neighbours`, and should be optimised. Parameters and errors are those
        of `plltool.alrt`.
        """
        kinds = check_neighbour_request(kinds, replicates, seed)
        rng = generator(seed, SUPPORTS)
        values, lnl = dict[str, FloatArray](), None
        if by_neighbours := [kind for kind in kinds if kind in constants.NEIGHBOUR_KINDS]:
            values, lnl = support_branches(self._likelihood, by_neighbours, replicates, rng)
        if constants.SPRTA in kinds:
            values[constants.SPRTA] = smaller_support(self._likelihood)
        values = {kind: values[kind] for kind in kinds}
        numbers = {kind: replicates for kind in kinds if kind in (constants.SH_ALRT, constants.LBP)}
        return Supports(mean_tree(self.tree, self._likelihood.part_sites), values, numbers, lnl)

    def node_states(self, subtrees: tuple[IndexArray, IndexArray] | None = None) -> list[FloatArray]:
        """Marginal probabilities of states at inner nodes, (n_taxa - 2, n_patterns, n_states) for each part.

        `subtrees` is as for `optimise.ancestral.node_states`. The likelihood must have been made with `states`.
        """
        return node_states(self._likelihood, [patterns.states.n_states for patterns in self.patterns], subtrees)

    def optimise(self, *names: str, listener: Listener = ignore) -> float:
        """Optimise branch lengths and model parameters in place until neither improves lnL; returns lnL.

        The `names` are "lengths" or those in `plltool.model.model.GROUPS`; by default all that is free. The listener is
        called after every round. Raises InputError for a name that is not free in this model.
        """
        models = self._likelihood.models
        free = (LENGTHS, *(group for group in GROUPS if any(group in model.free_parameters for model in models)))
        for name in names:
            if name not in free:
                specs = ", ".join(dict.fromkeys(repr(str(model.spec)) for model in models))
                raise InputError(f"cannot optimise {name!r}; free in {specs}: {', '.join(free)}")
        chosen = names or free
        started = time.perf_counter()

        def report(done: PolishRound) -> None:
            listener(Progress("polish", done.number, done.lnl, 0, 0, time.perf_counter() - started))
            self.other = done.other

        groups = [name for name in chosen if name != LENGTHS]
        lnl = polish(self._likelihood, LENGTHS in chosen, groups, report, given=True)
        if self._tree.added is not None:  # scales of all lengths may have moved theirs
            self._tree.lengths[self._tree.added] = constants.MIN_BRANCH_LENGTH
        self._warn_of(*remarks_on_optima(lnl, self._tree, self.other))
        return lnl


def check_neighbour_request(kinds: str | Sequence[str], replicates: int, seed: int) -> tuple[str, ...]:
    """The kinds; InputError unless supports by moves can be computed: known kinds, at least 1 replicate."""
    check_least("replicates", replicates, 1)
    check_least("seed", seed, 0)
    return check_kinds(kinds, constants.MOVE_KINDS)


class PartLikelihood(Parameters):
    """The model of one part of a `Likelihood`, with its name and its sites, see `plltool.model.partition.Part`."""

    def __init__(self, whole: Likelihood, number: int):
        self._whole = whole
        self._number = number
        part = whole.data.parts[number]
        self.name, self.sites = part.name, np.sort(part.sites)
        self._is_complete = True

    def _the_model(self) -> Model:
        return self._whole._likelihood.models[self._number]

    def _model_changed(self) -> None:
        self._whole._model_changed()
