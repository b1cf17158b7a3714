"""An instance: numbered buffers of tips, partials, matrices and scale factors, and operations on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from plltool.beagle.codes import NONE, Flag
from plltool.beagle.likelihoods import Likelihoods
from plltool.beagle.resources import choose_resource
from plltool.beagle.sizes import Sizes


class Instance(Likelihoods):
    """A BEAGLE instance. Every method is the call of BEAGLE of that name, of which lists lose their lengths.

    Buffers 0 .. tip_count - 1 are tips, states or partials; the others are partials. Partials are (category_count,
    pattern_count, state_count). Calls that compute put their work into a queue, and those that return numbers wait.

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
        sizes.check()
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
