"""What several engines that answer as one have together, whatever they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from plltool.engine.base import Engine
from plltool.engine.counters import Counters
from plltool.engine.layout import Layout
from plltool.engine.requests import Holder

Member = TypeVar("Member", bound="Engine | EngineGroup[Any]")


class EngineGroup(Holder, Generic[Member]):
    """Base of what looks like one engine from the outside.

    Attributes
    ----------
    engines : the engines within; they hold all memory and do all work
    """

    def __init__(self, engines: Sequence[Member]):
        self.engines = list(engines)

    @property
    def n_patterns(self) -> int:
        """Patterns of all parts."""
        return sum(engine.n_patterns for engine in self.engines)

    @property
    def layout(self) -> Layout:
        """The layout of the first engine; where all parts have one shape, programs for it are those for all."""
        first: Engine | EngineGroup[Any] = self.engines[0]
        return first.layout

    @property
    def n_slots(self) -> int:
        return min(engine.n_slots for engine in self.engines)

    @property
    def n_groups(self) -> int:
        """Work-groups of the engine that has the most; see `Engine`."""
        return max(engine.n_groups for engine in self.engines)

    @property
    def resident(self) -> bool:
        """Whether CLAs of all engines outlive the launch that makes them."""
        return all(engine.resident for engine in self.engines)

    @property
    def launch_share(self) -> float:
        """The share of the engine that takes least at a time; see `Engine`."""
        return min(engine.launch_share for engine in self.engines)

    @property
    def cla_bytes(self) -> int:
        return sum(engine.cla_bytes for engine in self.engines)

    @property
    def device_name(self) -> str:
        """See `Engine`; each name once."""
        return ", ".join(dict.fromkeys(engine.device_name for engine in self.engines))

    @property
    def driver(self) -> str:
        """See `Engine`; each driver once."""
        return ", ".join(dict.fromkeys(engine.driver for engine in self.engines))

    @property
    def counters(self) -> Counters:
        """The work of all engines together."""
        total = Counters()
        for engine in self.engines:
            total.add(engine.counters)
        return total

    def add_closed(self, work: Counters) -> None:
        """Count the work of other engines, which are closed by now, as work of the first one."""
        self.engines[0].add_closed(work)

    def add_earlier(self, work: Counters) -> None:
        """Count the work of engines that were closed before these were opened, as work of the first one."""
        self.engines[0].add_earlier(work)

    def _release_clas(self) -> None:
        for engine in self.engines:
            engine.release_clas()

    def _close(self) -> None:
        for engine in self.engines:
            engine.close()
