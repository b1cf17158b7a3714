"""Throughput of an engine: what it does a second, and how much of what its device can do at most that is.

A row is one *item* on one shape of data:

=============  =====================================================================================================
newview        lnL of a tree: a post-order traversal, n_taxa - 2 newviews and one evaluation
evaluate       lnL across one branch whose CLAs are there
derivatives    an all-branch round: P matrices, post-order, pre-order, lnL and both derivatives at every branch
scan           insertions of SCANNED_JOINTS nodes' subtrees within SCAN_RADIUS, without the P matrices
=============  =====================================================================================================

Programs are recorded once, as `TreeLikelihood` and `scan` build them, and run again and again: a time includes
launches and what goes down and comes back, but no building of programs in Python. All items and both peaks of a shape
take turns; a sample is the mean of as many calls as fill SAMPLE_SECONDS, a figure the median over the repetitions.

What is counted:

- *pattern-nodes*: one instruction on one pattern, all components.
- *bytes*: of CLAs with their scaling counts, each read or written once per instruction; tips, P matrices, programs and
  sums are left out.
- *floating-point operations*: a multiply-add is two; of the matrix products, S^2 multiply-adds each whether or not one
  side is a tip, and the sums over states; no logarithm, no maximum, no division.
- *bound*: newviews between inner nodes at the device's peak. One takes ``C (2 S^2 + 2 S)`` lane operations a pattern
  (S^2 multiply-adds for each side, S products, S maxima), 160 for 4 states and 4 rates: as many vector operations for
  VW patterns. With V vector multiply-adds a second and core, that is ``V * VW / 160`` pattern-nodes a second and core,
  V / 20 at VW 8. Tips need less work, so more than the bound is possible.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import index
from os import PathLike
from typing import Any, cast

import numpy as np

from plltool.analyses.machine.bench import items
from plltool.analyses.machine.bench.items import Item, Shape
from plltool.engine.base import EngineData, Peak
from plltool.engine.layout import DataShape, Layout
from plltool.engine.select import make_engine
from plltool.engine.storage import Slots
from plltool.errors import InputError, check_kind, check_least, show_object
from plltool.hardware import Hardware
from plltool.io.files import Recorded, read_object
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.progress import log
from plltool.run.messages import announce_engine
from plltool.schema import Keys

BENCHMARK_KEYS = ("benchmark", "version", "date", "device", "driver", "rows")
KEY = ("item", "states", "components", "precision", "taxa", "patterns")
RATE = "pattern_nodes_per_second"
SHARES = ("copy_share", "multiply_add_share", "bound_share")
ABOVE_ALL = "above 100 %: the data stay in the caches of the CPU, or other work slowed the measurement of copy and peak"
SAMPLE_SECONDS = 0.02
MAX_CLA_BYTES = 4 << 30  # of a default shape; larger ones are left out


def read_benchmark(path: str | PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a file that `plltool bench` wrote; InputError if it cannot be read or is no such file."""
    rows = read_object(path, BENCHMARK_KEYS, "the output of `plltool bench`")["rows"]
    if not isinstance(rows, list):
        raise InputError(f"{path}: rows: found a JSON {type(rows).__name__}, expected a list")
    for number, row in enumerate(rows, start=1):
        lacking = [key for key in (*KEY, RATE) if not isinstance(row, dict) or key not in row]
        if lacking:
            raise InputError(f"{path}: row {number} lacks {', '.join(lacking)}")
        if not (isinstance(row[RATE], (int, float)) and row[RATE] > 0):
            raise InputError(f"{path}: row {number}: found {RATE} {row[RATE]!r}, expected a number above 0")
    return rows


def describe_rows(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The table, a block of rows for each shape."""
    lines, previous = [], None
    head = f"{'':<12}{'ms':>10}{'Mnodes/s':>10}{'GB/s':>8}{'GFLOP/s':>9}{'of copy':>9}{'of peak':>9}{'of bound':>9}"
    for row in rows:
        if (row["taxa"], row["patterns"]) != previous:
            previous = row["taxa"], row["patterns"]
            lines += ["", _describe_shape(row), head]
        lines.append(_describe_row(row))
    if any((row[name] or 0.0) > 1.0 for row in rows for name in SHARES):
        lines += ["", ABOVE_ALL]
    return lines


def _describe_shape(row: dict[str, Any]) -> str:
    title = f"{row['taxa']} taxa, {row['patterns']} patterns, {row['states']} states, {row['precision']}"
    title += f", VW {row['layout']['vw']}: "
    rescaled = f"{100 * row['rescaled_patterns'] / row['patterns']:.0f} % of the patterns rescaled"
    if row["copy_bytes_per_second"] is None:
        return title + rescaled
    peaks = f"copy {row['copy_bytes_per_second'] / 1e9:.1f} GB/s, peak {2 * row['multiply_adds_per_second'] / 1e9:.1f}"
    return f"{title}{peaks} GFLOP/s, {rescaled}"


def _describe_row(row: dict[str, Any]) -> str:
    shares = (row[name] for name in SHARES)
    percents = "".join(f"{'-':>9}" if share is None else f"{100 * share:>7.1f} %" for share in shares)
    return (
        f"{row['item']:<12}{1e3 * row['seconds']:>10.3f}{row['pattern_nodes_per_second'] / 1e6:>10.1f}"
        f"{row['bytes_per_second'] / 1e9:>8.2f}{row['flops'] / 1e9:>9.2f}{percents}"
    )


def _name(row: dict[str, Any]) -> str:
    """What was measured: the fields of `KEY`."""
    return (
        f"{row['item']}, {row['taxa']} taxa, {row['patterns']} patterns, {row['states']} states x {row['components']}, "
        f"{row['precision']}"
    )


@dataclass(frozen=True)
class Benchmark(Recorded):
    """The rows of a run, of which `KEY` names the fields that say what was measured, and where it ran."""

    device: str
    driver: str
    reason: str
    rows: tuple[dict[str, Any], ...]

    @Keys("benchmark:str version:str date:str command:str? device driver reason rows")
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        return {"benchmark": "plltool bench", "date": datetime.now(UTC).isoformat(timespec="seconds")}

    def describe(self) -> list[str]:
        """Lines for people: a table with a block of rows for each shape."""
        return [f"device: {self.device}", f"driver: {self.driver}", *describe_rows(self.rows)]

    def describe_ratios(self, old: Sequence[dict[str, Any]], name: str) -> list[str]:
        """Lines for people: the throughput over the one in `old`, the rows of the file `name`."""
        names, before = [_name(row) for row in self.rows], {_name(row): row[RATE] for row in old}
        shared = [(row, key) for row, key in zip(self.rows, names, strict=True) if key in before]
        told = [f"{key:<60}{row[RATE] / before[key]:>8.3f}" for row, key in shared]
        told += [f"{key:<60}not in the file" for key in names if key not in before]
        told += [f"{key:<60}in the file only" for key in map(_name, old) if key not in names]
        return ["", f"pattern-nodes per second over those in {name}", *told]


def bench(
    hardware: Hardware,
    n_states: int = 4,
    shapes: Sequence[tuple[int, int]] | None = None,
    repetitions: int = 5,
    seed: int = 1,
    quick: bool = False,
) -> Benchmark:
    """Measure every item on every shape, one after the other.

    Parameters
    ----------
    n_states : of a random reversible model with 4 gamma rates
    shapes : taxa and patterns of each; None for those of DEFAULT_SHAPES that fit MAX_CLA_BYTES
    repetitions : samples of each item
    seed : of tree, model and data
    quick : take a few small shapes by default

    Raises DeviceError if the device cannot be used, or not for one of the `shapes`, and InputError if the engine cannot
    hold the number of states.
    """
    check_kind("hardware", hardware, Hardware, "a plltool.Hardware")
    for what, found, least in (("n_states", n_states, 2), ("repetitions", repetitions, 1), ("seed", seed, 0)):
        check_least(what, found, least)
    rows: list[dict[str, Any]] = []
    n_states, seed = int(n_states), int(seed)
    fitting: tuple[Shape, ...] = items.QUICK_SHAPES
    if shapes is not None:
        try:
            fitting = tuple(Shape(*map(index, shape)) for shape in shapes)
        except TypeError:  # also of a pair that is none
            raise InputError(f"shapes: found {show_object(shapes)}, expected pairs of whole numbers") from None
    if shapes is None and not quick:
        layouts = {
            own: Layout(n_states, items.N_COMPONENTS, own.n_taxa, (own.n_patterns,), vw=1, precision=hardware.precision)
            for own in items.DEFAULT_SHAPES
        }
        fitting = tuple(own for own, made in layouts.items() if items.n_slots(own) * made.slot_bytes <= MAX_CLA_BYTES)
        for shape in sorted(set(items.DEFAULT_SHAPES) - set(fitting)):
            log.info("%d taxa, %d patterns: left out, its CLAs need more than %d GiB", *shape, MAX_CLA_BYTES >> 30)
    for number, shape in enumerate(fitting, start=1):
        log.info("shape %d of %d: %d taxa, %d patterns", number, len(fitting), *shape)
        components, tree, states = items.make_data(shape, n_states, np.random.default_rng([seed, n_states, *shape]))
        codes, sets = items.encode_states(states, n_states)
        data = EngineData(codes, np.ones(shape.n_patterns), sets)
        data_shape = DataShape(n_states, items.N_COMPONENTS, shape.n_taxa, (shape.n_patterns,), data.n_codes)
        engine, reason = make_engine(data, data_shape, Slots(items.n_slots(shape)), hardware)
        with engine:
            if number == 1:
                announce_engine(engine, reason, hardware)
            rows += _measure(TreeLikelihood(tree, [cast(Model, items.FixedModel(components))], engine), repetitions)
            facts = engine.device_name, engine.driver, reason
    return Benchmark(*facts, tuple(rows))


def time_in_turn(works: Mapping[str, Item | Peak], repetitions: int) -> dict[str, float]:
    """Median seconds of one call of each; every repetition goes through all of them."""
    calls, samples = {}, {name: np.empty(repetitions) for name in works}
    for name, work in works.items():
        _get_ready(work)
        calls[name] = max(1, math.ceil(SAMPLE_SECONDS / _seconds(work.run, 1)))
    for repetition in range(repetitions):
        for name, work in works.items():
            _get_ready(work)
            samples[name][repetition] = _seconds(work.run, calls[name])
    return {name: float(np.median(sample)) for name, sample in samples.items()}


def _get_ready(work: Item | Peak) -> None:
    """What does not count: what others left behind is made good, and what happens once, such as compiling, happens."""
    if isinstance(work, Item):
        work.prepare()
    work.run()


def _seconds(work: Callable[[], None], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - began) / calls


def _measure(likelihood: TreeLikelihood, repetitions: int) -> list[dict[str, Any]]:
    engine = items.engine_of(likelihood)
    layout = engine.layout
    rescaled = items.count_rescaled(likelihood)
    made, peaks = items.make_items(likelihood), engine.peaks()
    seconds = time_in_turn({**made, **peaks}, repetitions)
    at_most = {name: peak.amount / seconds[name] for name, peak in peaks.items()}
    shape = {"states": layout.n_states, "components": layout.n_components, "precision": layout.precision}
    shape |= {"taxa": layout.n_taxa, "patterns": layout.n_patterns}
    facts = {
        "rescaled_patterns": rescaled,
        "copy_bytes_per_second": at_most.get("copy"),
        "multiply_adds_per_second": at_most.get("multiply_adds"),
        "layout": layout.describe(),
    }
    return [
        {"item": name} | shape | _rates(name, item, seconds[name], layout, at_most) | facts
        for name, item in made.items()
    ]


def _rates(name: str, item: Item, seconds: float, layout: Layout, at_most: dict[str, float]) -> dict[str, float | None]:
    """What one call of an item comes to, and its shares of what is possible, None where that is not known."""
    patterns = layout.n_patterns / seconds
    moved = item.cla_moves * layout.block_bytes / layout.vw * patterns
    rates: dict[str, float | None] = {
        "seconds": seconds,
        RATE: item.nodes * patterns,
        "bytes_per_second": moved,
        "flops": item.flops * patterns,
    }
    shares: dict[str, float | None] = dict.fromkeys(SHARES)
    if at_most:
        shares["copy_share"] = moved / at_most["copy"]
        shares["multiply_add_share"] = item.flops * patterns / (2 * at_most["multiply_adds"])
        if name == "newview":
            bound = newview_bound(layout.n_states, layout.n_components, at_most["multiply_adds"])
            shares["bound_share"] = item.nodes * patterns / bound
    return rates | shares


def newview_bound(n_states: int, n_components: int, multiply_adds_per_second: float) -> float:
    """Pattern-nodes a second of newviews between inner nodes on a device with this rate of multiply-adds.

    See *bound* at the head of the module; each lane counts, VW to a vector operation.
    """
    return multiply_adds_per_second / (n_components * (2 * n_states**2 + 2 * n_states))
