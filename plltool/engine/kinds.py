"""All kinds of engines and of their CLAs, as one type."""

from __future__ import annotations

from typing import TypeAlias, cast

from plltool.engine.ascertained import AscertainedClas, AscertainedEngine
from plltool.engine.categories import CategoryClas, CategoryEngine
from plltool.engine.counters import Counters
from plltool.engine.shards import ClasOfPatterns, PatternEngine

AnyEngine: TypeAlias = PatternEngine | CategoryEngine | AscertainedEngine
AnyClas: TypeAlias = ClasOfPatterns | CategoryClas | AscertainedClas


def work_of(engine: AnyEngine) -> Counters:
    """The work of an engine and its screen."""
    total = Counters()
    total.add(engine.counters)
    if engine.screen is not None:
        total.add(cast(AnyEngine, engine.screen).counters)
    return total
