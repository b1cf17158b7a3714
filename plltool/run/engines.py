"""The engine that holds the patterns of a run, or a shard of it for each kind of part, and its screen."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from plltool.alignment.patterns import Patterns, invariable_columns
from plltool.alignment.states import CodeArray, GradedSpace, StateSpace
from plltool.arrays import AnyArray, IndexArray
from plltool.constants import MASK_STATES
from plltool.engine import several
from plltool.engine.base import Engine, EngineData
from plltool.engine.categories import AscertainedEngine, CategoryEngine
from plltool.engine.composite import Composite
from plltool.engine.layout import DataShape
from plltool.engine.requests import Holder
from plltool.engine.select import make_engine, make_site_engine
from plltool.engine.storage import Slots
from plltool.hardware import Hardware, format_share
from plltool.io.checkpoint import recorded_item
from plltool.io.files import FileName
from plltool.model.checks import Ascertainment
from plltool.model.components import Components
from plltool.model.model import Model
from plltool.processes.ranks import current

SCREENING_SIZE = 2000  # patterns times states from which a search has a screen: with fewer it gains little time
_MEASURED: dict[tuple[Hardware, int], tuple[float, ...]] = {}  # shares of devices, by the number of states


def state_sets(states: StateSpace, n_states: int) -> AnyArray | None:
    """The table of state sets that the codes index, as an engine takes it; None where codes are bit masks.

    A process with `n_states`, several times those of the data, has a copy of each set for each of its hidden states.
    """
    are_masks = n_states <= MASK_STATES and not isinstance(states, GradedSpace)
    return None if are_masks else np.tile(states.tips, n_states // states.n_states)


def hidden_codes(codes: CodeArray, states: StateSpace, n_states: int) -> CodeArray:
    """Codes for a process with `n_states`, see `state_sets`."""
    if n_states == states.n_states or state_sets(states, n_states) is not None:
        return codes
    sets = np.tile(states.state_sets, n_states // states.n_states)
    return (sets << np.arange(n_states)).sum(axis=1).astype(codes.dtype)[codes]


@dataclass(frozen=True, eq=False)
class PartsShard:
    """The parts that one engine holds: all of one number of states and of components, reversible or not.

    `share` is that of the memory of all shards. `categories` is the most categories into which the patterns of each
    part may be sorted; empty for a mixture. They have an eigensystem each if frequencies are `by_site`. `corrections`
    are those for ascertainment bias; empty if there are none.
    """

    members: tuple[int, ...]
    patterns: tuple[Patterns, ...]
    components: Components
    share: float
    categories: tuple[int, ...] = ()
    by_site: bool = False
    corrections: tuple[Ascertainment | None, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(part.n_patterns for part in self.patterns)

    @property
    def corrected(self) -> tuple[Patterns, ...]:
        """The patterns of the parts that have a correction."""
        return tuple(part for part, own in zip(self.patterns, self.corrections, strict=False) if own is not None)

    @property
    def engine_sizes(self) -> tuple[int, ...]:
        """The number of patterns of each part of the engine, with invariable sites (`AscertainedEngine`)."""
        return (*self.sizes, *(1 for part in self.corrected for _ in range(part.states.n_states)))

    @property
    def shape(self) -> DataShape:
        """The shape of the data; where patterns will be sorted into categories, these are taken to be equally large."""
        if not self.categories:
            return self.shape_of(self.engine_sizes)
        sizes: list[int] = []
        for size, most in zip(self.sizes, self.categories, strict=True):
            sizes += [len(some) for some in np.array_split(range(size), min(most, size))]
        return self.shape_of(tuple(sizes))

    def shape_of(self, part_patterns: tuple[int, ...]) -> DataShape:
        sets = state_sets(self.patterns[0].states, self.components.n_states)
        own, n_sets = self.components, 0 if sets is None else len(sets)
        n_each = 1 if self.categories and not self.by_site else own.n_each
        return DataShape(own.n_states, n_each, self.patterns[0].n_taxa, part_patterns, n_sets, own.is_reversible)

    @property
    def data(self) -> EngineData:
        invariable = [invariable_columns(part) for part in self.corrected]
        states, n_states = self.patterns[0].states, self.components.n_states
        codes = np.concatenate([*(part.codes for part in self.patterns), *invariable], axis=1)
        weights = [*(part.weights for part in self.patterns), *(np.ones(len(own.T)) for own in invariable)]
        return EngineData(hidden_codes(codes, states, n_states), np.concatenate(weights), state_sets(states, n_states))


@dataclass(frozen=True, eq=False)
class ShardPlan:
    """The shards of a run in its engine and in its screen, see `TreeLikelihood.screen`, which may have none."""

    engine: tuple[PartsShard, ...]
    screen: tuple[PartsShard, ...] = ()


def plan_shards(parts: Sequence[Patterns], models: Sequence[Model], screening: bool = False) -> ShardPlan:
    """Shards in the order of their first parts.

    With `screening` there is a screen, unless CLAs have one component anyway, a process is not time-reversible, there
    are so few patterns and states that transition matrices, which a screen does not save, take most of the time, or a
    part has a correction for ascertainment bias, which needs the likelihood of sites under all components, or
    frequencies of each site.
    """
    components = [model.components() for model in models]
    by_site = [model.spec.has_site_frequencies for model in models]
    site_categories = [
        own.n_categories if has_own else model.spec.sites.n_categories if model.has_site_rates else 0
        for model, own, has_own in zip(models, components, by_site, strict=True)
    ]
    n_components = [own.n_each for own in components]
    corrections = [model.spec.ascertainment for model in models]
    is_corrected = any(own is not None for own in corrections)
    screening &= not (is_corrected or any(by_site)) and max(n_components) > 1
    screening &= all(own.is_reversible for own in components)
    sizes = [part.n_patterns * own.n_states for part, own in zip(parts, components, strict=True)]
    screening &= sum(sizes) >= SCREENING_SIZE
    total = sum(size * (n + screening) for size, n in zip(sizes, n_components, strict=True))

    def shards(counts: Sequence[int], categories: Sequence[int]) -> tuple[PartsShard, ...]:
        """Shards of parts, from the number of components and the most categories of each part; 0 for a mixture."""
        members: dict[tuple[str, int, int, int, bool, bool, bool], list[int]] = {}
        for number, (part, own, n, most) in enumerate(zip(parts, components, counts, categories, strict=True)):
            states = part.states
            key = (states.name, states.n_states, own.n_states, n, own.is_reversible, most > 0, by_site[number])
            members.setdefault(key, []).append(number)
        return tuple(
            PartsShard(
                *(tuple(some), tuple(parts[number] for number in some), components[some[0]]),
                sum(sizes[number] * counts[number] for number in some) / total,
                tuple(categories[number] for number in some if categories[number]),
                by_site[some[0]],
                tuple(corrections[number] for number in some) if is_corrected else (),
            )
            for some in members.values()
        )

    engine = shards(n_components, site_categories)
    if not screening:
        return ShardPlan(engine)
    in_screen = [most or n for most, n in zip(site_categories, n_components, strict=True)]
    return ShardPlan(engine, shards([1] * len(parts), in_screen))


def open_engine(
    parts: Sequence[Patterns],
    models: Sequence[Model],
    slots: Slots,
    hardware: Hardware,
    profile: bool = False,
    screening: bool = False,
) -> tuple[Holder, str]:
    """An engine for all parts, and why its device was chosen; `profile` and errors as in `make_engine`.

    With `screening` it can open a screen, see `TreeLikelihood.screen`. Several devices divide the patterns of each
    shape of parts, see `settle_share`.
    """
    hardware = settle_share(parts, models, hardware)
    plan = plan_shards(parts, models, screening)
    devices = several.Devices(several.find_used_devices(hardware)) if hardware.is_several else None
    opening = Opening(slots, hardware, profile, devices)
    engine = opening.open_all(plan.engine)
    if plan.screen:
        cuts = np.cumsum([part.n_patterns for part in parts])[:-1]
        rough = replace(opening, rough=True)
        engine.make_screen = lambda category_of: rough.open_all(plan.screen, np.split(category_of, cuts))
    shares = [f"patterns are divided {format_share(hardware.share)}"] if hardware.share else []
    return engine, "; ".join([*dict.fromkeys(opening.reasons), *shares])


@dataclass(frozen=True)
class Opening:
    """How the engines of a run are opened: on `devices` that divide the patterns, or on one, with its `reasons`.

    Those of a screen are `rough`, see `plan_engine`.
    """

    slots: Slots
    hardware: Hardware
    profile: bool
    devices: several.Devices | None
    rough: bool = False
    reasons: list[str] = field(default_factory=list)

    def open_all(self, shards: Sequence[PartsShard], categories: Sequence[IndexArray] = ()) -> Holder:
        """An engine for the parts of all shards; `categories` are the first ones of the patterns of each part."""
        engines: list[Holder] = []
        for shard in shards:
            open_patterns = partial(self._open_patterns, shard)
            if shard.categories:
                first = np.concatenate([categories[part] for part in shard.members]) if categories else None
                engines.append(CategoryEngine(open_patterns, shard.data, shard.sizes, first))
            else:
                engine = open_patterns(shard.data, shard.engine_sizes)
                engines.append(AscertainedEngine(engine, shard.corrections) if shard.corrected else engine)
        return engines[0] if len(engines) == 1 else Composite.of_whole_parts(engines, [own.members for own in shards])

    def _open_patterns(self, shard: PartsShard, data: EngineData, part_patterns: tuple[int, ...]) -> Holder:
        """An engine for patterns, which ranks or devices divide."""
        make, ranks = partial(self._open_one, shard), current()
        if ranks is not None:
            share = several.rank_memory(ranks, self.hardware)
            make = partial(make, hardware=self.hardware, memory_share=share)
            return several.RankShards(ranks, data, part_patterns, make)
        if self.devices is not None:
            return self.devices.open(data, part_patterns, make)
        return make(data, part_patterns, self.hardware, 1.0)

    def _open_one(
        self, shard: PartsShard, data: EngineData, sizes: tuple[int, ...], hardware: Hardware, memory_share: float
    ) -> Engine:
        share = memory_share * shard.share
        shape = shard.shape_of(sizes)
        if shard.by_site:
            engine, reason = make_site_engine(data, shape, self.slots, hardware, share)
        else:
            engine, reason = make_engine(data, shape, self.slots, hardware, share, self.profile, self.rough)
        self.reasons.append(reason)
        return engine


def settle_share(
    parts: Sequence[Patterns], models: Sequence[Model], hardware: Hardware, checkpoint: FileName | None = None
) -> Hardware:
    """The same hardware; several devices have names, and shares by which they divide the patterns.

    Where the user gives no shares, they are those of the run that a checkpoint continues, or else in proportion to how
    fast each device is with the largest shape of parts, see `measure_speed`. They are measured once in a process. A
    rank of an MPI job has one device, see `of_rank`. Raises DeviceError if one of the devices cannot be used.
    """
    hardware, ranks = several.name_devices(hardware), current()
    if ranks is not None:
        return several.of_rank(ranks, hardware)
    if not hardware.is_several or hardware.share is not None:
        return hardware
    recorded = recorded_item(checkpoint, "share")
    if recorded is not None and len(recorded) == len(hardware.words):
        return replace(hardware, share=tuple(recorded))
    shard = max(plan_shards(parts, models).engine, key=lambda shard: shard.share)
    measured = (replace(hardware, memory=None), shard.components.n_states)
    if measured not in _MEASURED:
        components = shard.components.category(0) if shard.categories else shard.components
        measure = partial(several.measure_speed, shard.data, shard.shape, components)
        _MEASURED[measured] = several.measure_shares(several.find_used_devices(hardware), measure)
    return replace(hardware, share=_MEASURED[measured])
