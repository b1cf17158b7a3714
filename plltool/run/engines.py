"""An engine, or a shard for each kind of part, that holds the patterns of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import BoolArray
from plltool.engine.base import EngineData
from plltool.engine.codes import MASK_STATES
from plltool.engine.select import DataShape, make_engine
from plltool.engine.shards import AnyEngine, Shards
from plltool.engine.storage import Slots
from plltool.hardware import Hardware
from plltool.model.components import Components
from plltool.model.model import Model


def state_sets(patterns: Patterns) -> BoolArray | None:
    """The table of state sets that the codes index, as an engine takes it; None where codes are bit masks."""
    return patterns.states.state_sets if patterns.states.n_states > MASK_STATES else None


@dataclass(frozen=True, eq=False)
class PartsShard:
    """The parts that one engine holds: those of one number of states and of components.

    `share` is that of the memory of all shards that it takes.
    """

    members: tuple[int, ...]
    patterns: tuple[Patterns, ...]
    components: Components
    share: float

    @property
    def shape(self) -> DataShape:
        sets = state_sets(self.patterns[0])
        return DataShape(
            self.components.n_states,
            self.components.n_components,
            self.patterns[0].n_taxa,
            tuple(part.n_patterns for part in self.patterns),
            0 if sets is None else len(sets),
        )

    @property
    def data(self) -> EngineData:
        """The patterns of all parts, one part after another."""
        return EngineData(
            np.concatenate([part.codes for part in self.patterns], axis=1),
            np.concatenate([part.weights for part in self.patterns]),
            state_sets(self.patterns[0]),
        )


def make_shards(parts: Sequence[Patterns], models: Sequence[Model]) -> list[PartsShard]:
    """In the order of their first parts."""
    members: dict[tuple[str, int], list[int]] = {}
    components = [model.components() for model in models]
    for number, (part, own) in enumerate(zip(parts, components, strict=True)):
        members.setdefault((part.states.name, own.n_components), []).append(number)
    sizes = [part.n_patterns * own.rates.size * own.n_states for part, own in zip(parts, components, strict=True)]
    return [
        PartsShard(
            tuple(some),
            tuple(parts[number] for number in some),
            components[some[0]],
            sum(sizes[number] for number in some) / sum(sizes),
        )
        for some in members.values()
    ]


def open_engine(
    parts: Sequence[Patterns], models: Sequence[Model], slots: Slots, hardware: Hardware, profile: bool = False
) -> tuple[AnyEngine, str]:
    """An engine for all parts, and why its device was chosen; `profile` as in `make_engine`.

    Raises
    ------
    DeviceError
        If the device asked for is missing, fails to build the kernels or has not enough memory.
    """
    shards = make_shards(parts, models)
    engines, reasons = [], []
    for shard in shards:
        engine, reason = make_engine(shard.data, shard.shape, slots, hardware, shard.share, profile)
        engines.append(engine)
        reasons.append(reason)
    if len(engines) == 1:
        return engines[0], reasons[0]
    return Shards(engines, [shard.members for shard in shards]), "; ".join(dict.fromkeys(reasons))
