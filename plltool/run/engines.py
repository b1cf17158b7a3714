"""An engine, or a shard for each kind of part, that holds the patterns of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import BoolArray
from plltool.engine.base import Engine, EngineData
from plltool.engine.categories import CategoryEngine
from plltool.engine.codes import MASK_STATES
from plltool.engine.layout_choice import DataShape
from plltool.engine.select import make_engine
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

    `share` is that of the memory of all shards that it takes. `categories` is the most rate categories into which
    patterns may be sorted; 0 if their components are a mixture.
    """

    members: tuple[int, ...]
    patterns: tuple[Patterns, ...]
    components: Components
    share: float
    categories: int = 0

    @property
    def shape(self) -> DataShape:
        """The shape of the data; where patterns will be sorted into categories, these are taken to be equally large."""
        sizes = tuple(part.n_patterns for part in self.patterns)
        if self.categories:
            sizes = tuple(len(some) for some in np.array_split(range(sizes[0]), min(self.categories, sizes[0])))
        return self.shape_of(sizes)

    def shape_of(self, part_patterns: tuple[int, ...]) -> DataShape:
        """The shape with these numbers of patterns in the parts of an engine."""
        sets = state_sets(self.patterns[0])
        return DataShape(
            self.components.n_states,
            1 if self.categories else self.components.n_components,
            self.patterns[0].n_taxa,
            part_patterns,
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
    """In the order of their first parts. Per-site rates (+PSR) are those of a single part."""
    if models[0].has_site_rates:
        categories = models[0].spec.sites.n_categories
        return [PartsShard((0,), (parts[0],), models[0].components(), 1.0, categories)]
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
    reasons = []

    def make(shard: PartsShard, data: EngineData, part_patterns: tuple[int, ...]) -> Engine:
        engine, reason = make_engine(data, shard.shape_of(part_patterns), slots, hardware, shard.share, profile)
        reasons.append(reason)
        return engine

    if shards[0].categories:
        return CategoryEngine(partial(make, shards[0]), shards[0].data), reasons[0]
    engines = [make(shard, shard.data, shard.shape.part_patterns) for shard in shards]
    if len(engines) == 1:
        return engines[0], reasons[0]
    return Shards(engines, [shard.members for shard in shards]), "; ".join(dict.fromkeys(reasons))
