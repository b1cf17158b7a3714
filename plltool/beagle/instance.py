"""An instance: numbered buffers of tips, partials, matrices and scale factors, and operations on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray
from plltool.beagle.buffers import Buffers
from plltool.beagle.codes import NONE, BeagleError, Code, Flag, Sizes, check_indices, check_same_length, check_whole
from plltool.beagle.partials import PatternBlock
from plltool.beagle.resources import choose_resource


@dataclass(eq=False)
class Answer:
    """Sums of a request, once they are there."""

    sites: FloatArray  # (1 or more, n_patterns) log-likelihoods and derivatives of patterns
    sums: FloatArray  # (n_parts, k) of the partitions asked for, in their order, weighted


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
    _answer: Answer | None = None

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
        sizes = Sizes(
            tip_count, partials_buffer_count, compact_buffer_count, state_count, pattern_count, eigen_buffer_count,
            matrix_buffer_count, category_count, scale_buffer_count,
        )  # fmt: skip
        preferred, required = Flag(preference_flags), Flag(requirement_flags)
        resource = choose_resource(resource_list, preferred, required)
        super().__init__(sizes, _settle_flags(preferred, required) | resource.required_flags, resource, vw, threads)

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
        buffer_indices: npt.ArrayLike,
        category_weights_indices: npt.ArrayLike,
        state_frequencies_indices: npt.ArrayLike,
        cumulative_scale_indices: npt.ArrayLike,
    ) -> float | None:
        """lnL from partials at the root."""
        model = category_weights_indices, state_frequencies_indices, cumulative_scale_indices
        self._ask([buffer_indices], [], *model)
        return None if self._is_asynchronous else self.get_log_likelihood()

    def calculate_root_log_likelihoods_by_partition(
        self,
        buffer_indices: npt.ArrayLike,
        category_weights_indices: npt.ArrayLike,
        state_frequencies_indices: npt.ArrayLike,
        cumulative_scale_indices: npt.ArrayLike,
        partition_indices: npt.ArrayLike,
        count: int = 1,
    ) -> tuple[FloatArray, float]:
        """lnL of each partition named, and their sum; indices are for all partitions, `count` times over."""
        model = category_weights_indices, state_frequencies_indices, cumulative_scale_indices
        self._ask([buffer_indices], [], *model, partition_indices, count)
        return self._sums()[:, 0], self.get_log_likelihood()

    def calculate_edge_log_likelihoods(
        self,
        parent_buffer_indices: npt.ArrayLike,
        child_buffer_indices: npt.ArrayLike,
        probability_indices: npt.ArrayLike,
        first_derivative_indices: npt.ArrayLike | None,
        second_derivative_indices: npt.ArrayLike | None,
        category_weights_indices: npt.ArrayLike,
        state_frequencies_indices: npt.ArrayLike,
        cumulative_scale_indices: npt.ArrayLike,
    ) -> tuple[float, ...] | None:
        """lnL across an edge, and as many derivatives in its length as there are matrices for: (lnL, d1, d2)."""
        matrices = [probability_indices, first_derivative_indices, second_derivative_indices]
        model = category_weights_indices, state_frequencies_indices, cumulative_scale_indices
        self._ask([parent_buffer_indices, child_buffer_indices], matrices, *model)
        return None if self._is_asynchronous else (self.get_log_likelihood(), *self.get_derivatives())

    def calculate_edge_log_likelihoods_by_partition(
        self,
        parent_buffer_indices: npt.ArrayLike,
        child_buffer_indices: npt.ArrayLike,
        probability_indices: npt.ArrayLike,
        first_derivative_indices: npt.ArrayLike | None,
        second_derivative_indices: npt.ArrayLike | None,
        category_weights_indices: npt.ArrayLike,
        state_frequencies_indices: npt.ArrayLike,
        cumulative_scale_indices: npt.ArrayLike,
        partition_indices: npt.ArrayLike,
        count: int = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """(n_partitions, k) lnL and derivatives of each partition named, and their sums (k,)."""
        matrices = [probability_indices, first_derivative_indices, second_derivative_indices]
        model = category_weights_indices, state_frequencies_indices, cumulative_scale_indices
        self._ask([parent_buffer_indices, child_buffer_indices], matrices, *model, partition_indices, count)
        sums = self._sums()
        return sums, sums.sum(axis=0)

    def calculate_edge_derivatives(
        self,
        post_buffer_indices: npt.ArrayLike,
        pre_buffer_indices: npt.ArrayLike,
        derivative_matrix_indices: npt.ArrayLike,
        category_weights_indices: npt.ArrayLike,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Derivatives of lnL in the lengths of edges, from partials below and above (Ji et al. 2020).

        The matrix of an edge is that of `set_differential_matrix`. Category weights are one set for all edges, or one
        for each.

        Returns (n_edges, n_patterns) derivatives of sites, (n_edges,) their weighted sums, and those of their squares.
        """
        lists = [check_indices("buffer", own, self._buffer_count) for own in (post_buffer_indices, pre_buffer_indices)]
        lists.append(check_indices("matrix", derivative_matrix_indices, self.matrix_buffer_count))
        weights = check_whole("category weights", category_weights_indices)
        lists.append(np.repeat(weights, len(lists[0])) if len(weights) == 1 else weights)
        n = check_same_length(zip(("edges", "buffers above", "matrices", "category weights"), lists, strict=True))
        sites = np.empty((n, self.pattern_count))
        for k in range(n):
            post, pre, matrix, weights_of = (int(own[k]) for own in lists)
            masses = self._category_masses(weights_of)
            for block in self._blocks():
                sites[k, block.patterns] = block.ratio(pre, post, matrix, masses)()
        return sites, sites @ self._pattern_weights, sites**2 @ self._pattern_weights

    # --- getters --------------------------------------------------------------------------------------------

    def get_log_likelihood(self) -> float:
        """lnL of the last request; waits for it."""
        return float(self._sums()[:, 0].sum())

    def get_derivatives(self) -> tuple[float, ...]:
        """The derivatives of the last request across an edge; waits for them."""
        return tuple(self._sums()[:, 1:].sum(axis=0).tolist())

    def get_site_log_likelihoods(self) -> FloatArray:
        """(n_patterns,) log-likelihoods of the last request, not weighted; waits for them."""
        return self._settled().sites[0].copy()

    def get_site_derivatives(self) -> FloatArray:
        """(k, n_patterns) derivatives of the last request across an edge, not weighted; waits for them."""
        return self._settled().sites[1:].copy()

    @property
    def _is_asynchronous(self) -> bool:
        return Flag.COMPUTATION_ASYNCH in self.flags

    def _settled(self) -> Answer:
        self.settle()
        if self._answer is None:
            raise BeagleError(Code.GENERAL, "no likelihood has been asked for")
        return self._answer

    def _sums(self) -> FloatArray:
        """(n_partitions, k) lnL and derivatives of the last request; waits for them."""
        sums = self._settled().sums
        if np.isnan(sums[:, 0]).any():
            raise BeagleError(Code.FLOATING_POINT, "lnL is not a number")
        return sums

    # --- how they are made ----------------------------------------------------------------------------------

    def _ask(
        self,
        ends: Sequence[npt.ArrayLike],
        matrices: Sequence[npt.ArrayLike | None],
        weights: npt.ArrayLike,
        frequencies: npt.ArrayLike,
        scales: npt.ArrayLike,
        partitions: npt.ArrayLike | None = None,
        count: int = 1,
    ) -> None:
        """Ask for sets of buffers, of all partitions or of those named; the answer comes when it is its turn.

        `ends`: the buffers of each set, of roots, or of parents and of children; `matrices`: for each order of
        derivatives those of the sets, none for roots.
        """
        rows, orders = self._rows(ends, weights, frequencies, scales), self._orders(matrices)
        check_same_length([("sets of buffers", rows), *(("matrices", own) for own in orders)])
        if len(orders) > 1 and (len(rows) if partitions is None else count) > 1:
            raise BeagleError(Code.NO_IMPLEMENTATION, "derivatives of a mixture of buffers")
        blocks, places = self._blocks(), [slice(None)] * self._n_partitions
        if partitions is not None:
            indices = check_indices("partition", partitions, len(blocks)).tolist()
            if len(rows) != count * len(indices):
                raise BeagleError(Code.OUT_OF_RANGE, f"found {len(rows)} sets of buffers for {len(indices)} partitions")
            blocks = [blocks[index] for index in indices]
            places = [slice(place, None, len(indices)) for place in range(len(indices))]
        pairs = zip(blocks, places, strict=True)
        asked = [self._ask_partition(block, rows[own], [order[own] for order in orders]) for block, own in pairs]
        self._answer = None
        weights, patterns = self._pattern_weights, [block.patterns for block in blocks]
        self._later.append(lambda: self._take(patterns, weights, [values() for values in asked]))
        if not self._is_asynchronous:
            self.settle()

    def _rows(
        self, ends: Sequence[npt.ArrayLike], weights: npt.ArrayLike, frequencies: npt.ArrayLike, scales: npt.ArrayLike
    ) -> IndexArray:
        """(n, k) the buffers, category weights, frequencies and scale buffer of each set."""
        lists = [check_indices("buffer", own, self._buffer_count) for own in ends]
        lists += [check_whole("category weights", weights), check_whole("frequencies", frequencies)]
        found = check_whole("scale buffer", NONE if scales is None else scales)
        of_each = np.repeat(found, len(lists[0])) if len(found) == 1 else found
        lists.append(check_indices("scale buffer", of_each, self.scale_buffer_count, optional=True))
        names = *("buffers", "other ends")[: len(ends)], "category weights", "frequencies", "scale buffers"
        if not check_same_length(zip(names, lists, strict=True)):
            raise BeagleError(Code.OUT_OF_RANGE, "found no buffers, expected at least one")
        return np.stack(lists, axis=1)

    def _orders(self, matrices: Sequence[npt.ArrayLike | None]) -> list[IndexArray]:
        """For each order of derivatives that is asked for, the matrices of each set of buffers."""
        given = [check_indices("matrix", own, self.matrix_buffer_count) for own in matrices if own is not None]
        if len(matrices) == 3 and matrices[1] is None and matrices[2] is not None:
            raise BeagleError(Code.NO_IMPLEMENTATION, "second derivatives without first ones")
        return given

    def _ask_partition(
        self, block: PatternBlock, rows: IndexArray, orders: list[IndexArray]
    ) -> Callable[[], FloatArray]:
        """Ask a partition for each set of buffers; what is returned waits for site values (k, n) of its patterns."""
        asked = []
        for number, (*ends, weights, frequencies, scale) in enumerate(rows.tolist()):
            masses = self._masses(weights, frequencies)
            if len(ends) == 1:
                pending = block.at_root(ends[0], masses)
            else:
                pending = block.across(ends[0], ends[1], [int(order[number]) for order in orders], masses)
            asked.append((pending, scale))

        def wait() -> FloatArray:
            found = []
            for pending, scale in asked:
                found.append(pending())
                if scale != NONE and not self._ignores_scales:
                    found[-1][0] += self._scales[scale, block.patterns]
            return found[0] if len(found) == 1 else np.logaddexp.reduce([values[:1] for values in found], axis=0)

        return wait

    def _take(self, patterns: list[IndexArray], weights: FloatArray, found: list[FloatArray]) -> None:
        """Note the answer of partitions with these patterns."""
        sites = np.zeros((len(found[0]), self.pattern_count))
        sums = []
        for own, values in zip(patterns, found, strict=True):
            sites[:, own] = values
            sums.append(values @ weights[own])
        self._answer = Answer(sites, np.array(sums))


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
