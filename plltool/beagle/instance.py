"""An instance: numbered buffers of tips, partials, matrices and scale factors, and operations on them."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Self

import numpy as np

from plltool.arrays import ArrayLike, FloatArray, IndexArray
from plltool.beagle.buffers import Buffers
from plltool.beagle.codes import (
    NONE,
    BeagleError,
    Code,
    Flag,
    check_same_length,
    check_sizes,
    check_whole,
    choose_resource,
)
from plltool.beagle.partials import EDGES_AT_ONCE, PatternBlock
from plltool.hardware import Hardware


class Instance(Buffers):
    """A BEAGLE instance. Every method is the call of BEAGLE of that name, of which lists lose their lengths.

    Buffers 0 .. tip_count - 1 are tips, states or partials; the others are partials. Partials are (category_count,
    pattern_count, state_count). Calls that compute put their work into a queue, and those that return numbers wait.
    With COMPUTATION_ASYNCH `calculate_root_log_likelihoods` and `calculate_edge_log_likelihoods` return None at once,
    and a getter waits. `count` sets of buffers are a mixture: likelihoods of sites are added up. Of more than one there
    are no derivatives.

    Parameters
    ----------
    tip_count, partials_buffer_count, compact_buffer_count, state_count : as those of BEAGLE's `beagleCreateInstance`
    pattern_count, eigen_buffer_count, matrix_buffer_count, category_count, scale_buffer_count : the same
    resource_list : numbers in `get_resource_list` to choose from; None for all
    preference_flags, requirement_flags : what the instance should and must have; double precision, manual scaling and
        synchronous answers unless they say otherwise
    vw, threads : see `plltool.Hardware`

    Attributes
    ----------
    resource : where it runs
    flags : what it has
    implementation_name : the engine and its device

    Raises
    ------
    BeagleError
        NO_RESOURCE if no resource has what is required; OUT_OF_RANGE for a size that cannot be.
    """

    NONE = NONE
    _asked: Sequence[PatternBlock] = ()  # the partitions of the last request
    _wait: Callable[[], FloatArray] | None = None  # for the sums (n_partitions, k) of the last request

    def __init__(
        self,
        tip_count: int,
        partials_buffer_count: int,
        compact_buffer_count: int,
        state_count: int,
        pattern_count: int,
        eigen_buffer_count: int,
        matrix_buffer_count: int,
        category_count: int = 1,
        scale_buffer_count: int = 0,
        resource_list: Sequence[int] | None = None,
        preference_flags: Flag | int = 0,
        requirement_flags: Flag | int = 0,
        *,
        vw: int | None = None,
        threads: int | None = None,
    ):
        sizes = {name: size for name, size in locals().items() if name.endswith("_count")}
        check_sizes(sizes)
        preferred, required = Flag(preference_flags), Flag(requirement_flags)
        resource = choose_resource(resource_list, preferred, required)
        flags = _settle_flags(preferred, required) | resource.required_flags
        precision = "single" if Flag.PRECISION_SINGLE in flags else "double"
        super().__init__(sizes, flags, resource, Hardware(precision=precision, vw=vw, threads=threads))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finalize()

    def __repr__(self) -> str:
        size = f"{self.tip_count} tips, {self.pattern_count} patterns, {self.state_count} states"
        return f"<Instance: {size}, {self.category_count} categories, {self.resource.name}>"

    @property
    def implementation_name(self) -> str:
        blocks = self._blocks()
        return f"plltool {blocks[0].engine.name}: {blocks[0].engine.device_name}"

    # --- requests -------------------------------------------------------------------------------------------

    def calculate_root_log_likelihoods(
        self,
        buffer_indices: ArrayLike,
        category_weights_indices: ArrayLike,
        state_frequencies_indices: ArrayLike,
        cumulative_scale_indices: ArrayLike,
    ) -> float | None:
        """lnL from partials at the root."""
        model = category_weights_indices, state_frequencies_indices, cumulative_scale_indices
        self._ask([buffer_indices], [], model)
        return None if Flag.COMPUTATION_ASYNCH in self.flags else self.get_log_likelihood()

    def calculate_root_log_likelihoods_by_partition(
        self,
        buffer_indices: ArrayLike,
        category_weights_indices: ArrayLike,
        state_frequencies_indices: ArrayLike,
        cumulative_scale_indices: ArrayLike,
        partition_indices: ArrayLike,
        count: int = 1,
    ) -> tuple[FloatArray, float]:
        """lnL of each partition named, and their sum; indices are for all partitions, `count` times over."""
        model = category_weights_indices, state_frequencies_indices, cumulative_scale_indices
        self._ask([buffer_indices], [], model, partition_indices, count)
        return self._sums()[:, 0], self.get_log_likelihood()

    def calculate_edge_log_likelihoods(
        self,
        parent_buffer_indices: ArrayLike,
        child_buffer_indices: ArrayLike,
        probability_indices: ArrayLike,
        first_derivative_indices: ArrayLike | None,
        second_derivative_indices: ArrayLike | None,
        category_weights_indices: ArrayLike,
        state_frequencies_indices: ArrayLike,
        cumulative_scale_indices: ArrayLike,
    ) -> tuple[float, ...] | None:
        """lnL across an edge, and as many derivatives in its length as there are matrices for: (lnL, d1, d2)."""
        matrices = [probability_indices, first_derivative_indices, second_derivative_indices]
        model = category_weights_indices, state_frequencies_indices, cumulative_scale_indices
        self._ask([parent_buffer_indices, child_buffer_indices], matrices, model)
        if Flag.COMPUTATION_ASYNCH in self.flags:
            return None
        return self.get_log_likelihood(), *self.get_derivatives()

    def calculate_edge_log_likelihoods_by_partition(
        self,
        parent_buffer_indices: ArrayLike,
        child_buffer_indices: ArrayLike,
        probability_indices: ArrayLike,
        first_derivative_indices: ArrayLike | None,
        second_derivative_indices: ArrayLike | None,
        category_weights_indices: ArrayLike,
        state_frequencies_indices: ArrayLike,
        cumulative_scale_indices: ArrayLike,
        partition_indices: ArrayLike,
        count: int = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """(n_partitions, k) lnL and derivatives of each partition named, and their sums (k,)."""
        matrices = [probability_indices, first_derivative_indices, second_derivative_indices]
        model = category_weights_indices, state_frequencies_indices, cumulative_scale_indices
        self._ask([parent_buffer_indices, child_buffer_indices], matrices, model, partition_indices, count)
        sums = self._sums()
        return sums, sums.sum(axis=0)

    def calculate_edge_derivatives(
        self,
        post_buffer_indices: ArrayLike,
        pre_buffer_indices: ArrayLike,
        derivative_matrix_indices: ArrayLike,
        category_weights_indices: ArrayLike,
        want_sites: bool = True,
    ) -> tuple[FloatArray | None, FloatArray, FloatArray]:
        """Derivatives of lnL in the lengths of edges, from partials below and above (Ji et al. 2020).

        The matrix of an edge is that of `set_differential_matrix`. Category weights are one set for all edges, or one
        for each.

        Returns (n_edges, n_patterns) derivatives of sites, None if not wanted; (n_edges,) their weighted sums, and
        those of their squares.
        """
        lists = [self._indices("buffer", own) for own in (post_buffer_indices, pre_buffer_indices)]
        lists.append(self._indices("matrix", derivative_matrix_indices))
        weights = check_whole("category weights", category_weights_indices)
        lists.append(np.repeat(weights, len(lists[0])) if len(weights) == 1 else weights)
        n = check_same_length(zip(("edges", "buffers above", "matrices", "category weights"), lists, strict=True))
        post, pre, matrices, weights_of = (own.tolist() for own in lists)
        masses = np.array([self._masses(number) for number in weights_of])
        asked = self._blocks() if n else []
        self._settle()
        sums, sites = np.zeros((n, 2)), np.empty((n, self.pattern_count)) if want_sites else None
        for block in asked:
            block.add_ratios(list(zip(pre, post, strict=True)), matrices, masses, want_sites)
        for block in asked:
            own_sums, own_sites = block.engine.take_ratios(n, want_sites)
            sums += own_sums
            if sites is not None and own_sites is not None:
                sites[:, block.patterns] = own_sites
        return sites, sums[:, 0], sums[:, 1]

    def calculate_cross_product_derivative(
        self,
        post_buffer_indices: ArrayLike,
        pre_buffer_indices: ArrayLike,
        category_rates_indices: ArrayLike,
        category_weights_indices: ArrayLike,
        edge_lengths: ArrayLike,
    ) -> FloatArray:
        """(S, S) sums over edges, patterns and categories of rate * length * pre_i * post_j, over the likelihood.

        To first order in the lengths, they are the derivatives of lnL in the entries of the rate matrix. Category rates
        and weights are one set for all edges, or one for each.
        """
        lists = [self._indices("buffer", own) for own in (post_buffer_indices, pre_buffer_indices)]
        lengths = np.atleast_1d(np.asarray(edge_lengths, dtype=np.float64))
        names = "edges", "buffers above", "category rates", "category weights", "lengths"
        for what, indices in zip(names[2:4], (category_rates_indices, category_weights_indices), strict=True):
            found = self._indices(what, indices)
            lists.append(np.repeat(found, len(lengths)) if len(found) == 1 else found)
        check_same_length(zip(names, [*lists, lengths], strict=True))
        post, pre, rates, weights = (own.tolist() for own in lists)
        masses = np.array([self._masses(number) for number in weights])
        factors = self._rates[rates] * lengths[:, None]
        self._settle()
        ends = list(zip(pre, post, strict=True))
        blocks = self._blocks()
        return np.asarray(sum(own.engine.add_products(own.queries(ends), masses, factors) for own in blocks))

    # --- getters --------------------------------------------------------------------------------------------

    def get_log_likelihood(self) -> float:
        """lnL of the last request; waits for it."""
        return float(self._sums()[:, 0].sum())

    def get_derivatives(self) -> tuple[float, ...]:
        """The derivatives of the last request across an edge; waits for them."""
        return tuple(self._sums()[:, 1:].sum(axis=0).tolist())

    def get_site_log_likelihoods(self) -> FloatArray:
        """(n_patterns,) log-likelihoods of the last request, not weighted; waits for them."""
        return self._sites(1)[0]

    def get_site_derivatives(self) -> FloatArray:
        """(k, n_patterns) derivatives of the last request across an edge, not weighted; waits for them."""
        return self._sites(self._last().shape[1])[1:]

    def _settle(self) -> None:
        """Wait for the sums of the last request, before others take their place."""
        if self._wait is not None:
            self._wait()

    def _last(self) -> FloatArray:
        if self._wait is None:
            raise BeagleError(Code.GENERAL, "no likelihood has been asked for")
        return self._wait()

    def _sites(self, n: int) -> FloatArray:
        """(n, n_patterns) values of patterns of the last request; 0 in partitions that were not asked."""
        self._last()
        sites = np.zeros((n, self.pattern_count))
        for block in self._asked:
            sites[:, block.patterns] = block.engine.read_sites(n)
        return sites

    def _sums(self) -> FloatArray:
        """(n_partitions, k) lnL and derivatives of the last request; waits for them."""
        sums = self._last()
        if np.isnan(sums[:, 0]).any():
            raise BeagleError(Code.FLOATING_POINT, "lnL is not a number")
        return sums

    # --- how they are made ----------------------------------------------------------------------------------

    def _ask(
        self,
        ends: Sequence[ArrayLike],
        matrices: Sequence[ArrayLike | None],
        model: tuple[ArrayLike, ArrayLike, ArrayLike],
        partitions: ArrayLike | None = None,
        count: int = 1,
    ) -> None:
        """Ask for sets of buffers, of all partitions or of those named; the answer comes when it is its turn.

        `ends`: the buffers of each set, of roots, or of parents and of children; `matrices`: for each order of
        derivatives those of the sets, none for roots; `model`: category weights, frequencies and scale buffers.
        """
        rows = self._rows(ends, *model)
        orders = [self._indices("matrix", own) for own in matrices if own is not None]
        if len(matrices) == 3 and matrices[1] is None and matrices[2] is not None:
            raise BeagleError(Code.NO_IMPLEMENTATION, "second derivatives without first ones")
        check_same_length([("sets of buffers", rows), *(("matrices", own) for own in orders)])
        n_sets = len(rows) if partitions is None else count
        if len(orders) > 1 and n_sets > 1:
            raise BeagleError(Code.NO_IMPLEMENTATION, "derivatives of a mixture of buffers")
        if orders and n_sets > EDGES_AT_ONCE:
            raise BeagleError(Code.NO_IMPLEMENTATION, f"a mixture of {n_sets} edges, more than {EDGES_AT_ONCE}")
        blocks = self._blocks()
        places = [slice(None)] * len(blocks)
        if partitions is not None:
            indices = self._indices("partition", partitions).tolist()
            if len(rows) != count * len(indices):
                raise BeagleError(Code.OUT_OF_RANGE, f"found {len(rows)} sets of buffers for {len(indices)} partitions")
            blocks = [blocks[index] for index in indices]
            places = [slice(place, None, len(indices)) for place in range(len(indices))]
        masses = np.array([self._masses(*row[-3:-1]) for row in rows.tolist()])
        sets = np.delete(rows, [-3, -2], axis=1)
        self._wait = None
        pending = []
        for block, own in zip(blocks, places, strict=True):
            pending.append(block.ask(sets[own].tolist(), [order[own].tolist() for order in orders], masses[own]))
        self._asked, self._wait = blocks, cache(lambda: np.array([sums() for sums in pending]))

    def _rows(
        self, ends: Sequence[ArrayLike], weights: ArrayLike, frequencies: ArrayLike, scales: ArrayLike
    ) -> IndexArray:
        """(n, k) the buffers, category weights, frequencies and scale buffer of each set."""
        lists = [self._indices("buffer", own) for own in ends]
        lists += [check_whole("category weights", weights), check_whole("frequencies", frequencies)]
        found = check_whole("scale buffer", NONE if scales is None else scales)
        of_each = np.repeat(found, len(lists[0])) if len(found) == 1 else found
        lists.append(self._indices("scale buffer", of_each, optional=True))
        names = *("buffers", "other ends")[: len(ends)], "category weights", "frequencies", "scale buffers"
        if not check_same_length(zip(names, lists, strict=True)):
            raise BeagleError(Code.OUT_OF_RANGE, "found no buffers, expected at least one")
        return np.stack(lists, axis=1)


def _settle_flags(preferred: Flag, required: Flag) -> Flag:
    """What an instance has, of each choice that is open: what is required, else what is preferred, else the first."""
    choices = (
        (Flag.PRECISION_DOUBLE, Flag.PRECISION_SINGLE),
        (Flag.COMPUTATION_SYNCH, Flag.COMPUTATION_ASYNCH),
        (Flag.EIGEN_REAL, Flag.EIGEN_COMPLEX),
        (Flag.SCALING_MANUAL, Flag.SCALING_AUTO, Flag.SCALING_ALWAYS, Flag.SCALING_DYNAMIC),
        (Flag.INVEVEC_STANDARD, Flag.INVEVEC_TRANSPOSED),
        (Flag.SCALERS_LOG,),
    )
    flags = Flag(0)
    for options in choices:
        named = [option for flags_given in (required, preferred) for option in options if option & flags_given]
        flags |= named[0] if named else options[0]
    return flags
