"""The engine that holds the patterns of a run, or a shard of it for each kind of part, and its screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import BoolArray, IndexArray
from plltool.constants import SCREENING_PATTERNS
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
    """The parts that one engine holds: those of one number of states and of components, reversible or not.

    `share` is that of the memory of all shards that it takes. `categories` is the most categories into which the
    patterns of each part may be sorted; empty if their components are a mixture.
    """

    members: tuple[int, ...]
    patterns: tuple[Patterns, ...]
    components: Components
    share: float
    categories: tuple[int, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of patterns of each part."""
        return tuple(part.n_patterns for part in self.patterns)

    @property
    def shape(self) -> DataShape:
        """The shape of the data; where patterns will be sorted into categories, these are taken to be equally large."""
        if not self.categories:
            return self.shape_of(self.sizes)
        sizes: list[int] = []
        for size, most in zip(self.sizes, self.categories, strict=True):
            sizes += [len(some) for some in np.array_split(range(size), min(most, size))]
        return self.shape_of(tuple(sizes))

    def shape_of(self, part_patterns: tuple[int, ...]) -> DataShape:
        """The shape with these numbers of patterns in the parts of an engine."""
        sets = state_sets(self.patterns[0])
        return DataShape(
            self.components.n_states,
            1 if self.categories else self.components.n_components,
            self.patterns[0].n_taxa,
            part_patterns,
            0 if sets is None else len(sets),
            self.components.is_reversible,
        )

    @property
    def data(self) -> EngineData:
        """The patterns of all parts, one part after another."""
        return EngineData(
            np.concatenate([part.codes for part in self.patterns], axis=1),
            np.concatenate([part.weights for part in self.patterns]),
            state_sets(self.patterns[0]),
        )


@dataclass(frozen=True, eq=False)
class ShardPlan:
    """The shards of a run: those of its engine, and those of its screen, see `TreeLikelihood.screen`; maybe none."""

    engine: tuple[PartsShard, ...]
    screen: tuple[PartsShard, ...] = ()


def plan_shards(parts: Sequence[Patterns], models: Sequence[Model], screening: bool = False) -> ShardPlan:
    """Shards in the order of their first parts. Per-site rates (+PSR) are those of a single part.

    With `screening` there is a screen, unless CLAs have one component anyway, or a process is not time-reversible, or
    there are so few patterns that transition matrices, which a screen does not save, take most of the time.
    """
    components = [model.components() for model in models]
    if models[0].has_site_rates:
        most = models[0].spec.sites.n_categories
        return ShardPlan((PartsShard((0,), (parts[0],), components[0], 1.0, (most,)),))
    n_components = [own.n_components for own in components]
    screening &= max(n_components) > 1 and all(own.is_reversible for own in components)
    screening &= sum(part.n_patterns for part in parts) >= SCREENING_PATTERNS
    sizes = [part.n_patterns * own.n_states for part, own in zip(parts, components, strict=True)]
    total = sum(size * (n + screening) for size, n in zip(sizes, n_components, strict=True))

    def shards(counts: Sequence[int], in_categories: bool = False) -> tuple[PartsShard, ...]:
        members: dict[tuple[str, int, bool], list[int]] = {}
        for number, (part, own, n) in enumerate(zip(parts, components, counts, strict=True)):
            members.setdefault((part.states.name, n, own.is_reversible), []).append(number)
        return tuple(
            PartsShard(
                tuple(some),
                tuple(parts[number] for number in some),
                components[some[0]],
                sum(sizes[number] * counts[number] for number in some) / total,
                tuple(n_components[number] for number in some) if in_categories else (),
            )
            for some in members.values()
        )

    return ShardPlan(shards(n_components), shards([1] * len(parts), in_categories=True) if screening else ())


def open_engine(
    parts: Sequence[Patterns],
    models: Sequence[Model],
    slots: Slots,
    hardware: Hardware,
    profile: bool = False,
    screening: bool = False,
) -> tuple[AnyEngine, str]:
    """An engine for all parts, and why its device was chosen; `profile` as in `make_engine`.

    With `screening` it can open a screen, see `TreeLikelihood.screen`.

    Raises
    ------
    DeviceError
        If the device asked for is missing, fails to build the kernels or has not enough memory.
    """
    plan = plan_shards(parts, models, screening)
    reasons: list[str] = []

    def make(shard: PartsShard, data: EngineData, part_patterns: tuple[int, ...]) -> Engine:
        engine, reason = make_engine(data, shard.shape_of(part_patterns), slots, hardware, shard.share, profile)
        reasons.append(reason)
        return engine

    def make_all(shards: Sequence[PartsShard], category_of: IndexArray | None = None) -> AnyEngine:
        ends = np.cumsum([part.n_patterns for part in parts])
        own = None if category_of is None else np.split(category_of, ends[:-1])
        engines: list[Engine | CategoryEngine] = []
        for shard in shards:
            if shard.categories:
                first = None if own is None else np.concatenate([own[part] for part in shard.members])
                engines.append(CategoryEngine(partial(make, shard), shard.data, shard.sizes, first))
            else:
                engines.append(make(shard, shard.data, shard.sizes))
        return engines[0] if len(engines) == 1 else Shards(engines, [shard.members for shard in shards])

    engine = make_all(plan.engine)
    if plan.screen:
        engine.offer_screen(partial(make_all, plan.screen))
    return engine, "; ".join(dict.fromkeys(reasons))
