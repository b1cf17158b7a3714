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

import itertools
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from os import PathLike
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from plltool import __version__
from plltool.engine import program as prog
from plltool.engine.base import Engine, Peak
from plltool.engine.codes import MASK_STATES
from plltool.engine.layout import Layout
from plltool.engine.program import Request
from plltool.engine.select import make_engine
from plltool.engine.storage import Slots
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.io.record import read_object
from plltool.model.components import Components
from plltool.model.model import Model
from plltool.model.rates import gamma_means
from plltool.model.substitution import eigensystem
from plltool.optimise.likelihood import TreeLikelihood
from plltool.search.scan import all_prunes, scan
from plltool.tree.operations import ROOT, directed_slots
from plltool.tree.random_tree import random_tree
from plltool.tree.topology import FloatArray, Tree

N_COMPONENTS = 4  # rate categories
ALPHA = 0.5  # of the gamma distribution of rates
MEAN_LENGTH = 0.05  # of branches, beyond SHORTEST_LENGTH; exponentially distributed
SHORTEST_LENGTH = 0.01
SCANNED_JOINTS = 4
SCAN_RADIUS = 5
SAMPLE_SECONDS = 0.02
MAX_CLA_BYTES = 4 << 30  # of a default shape; larger ones are left out
RESCALED_MARGIN = 32  # bits, see `count_rescaled`
MAX_STATES = 128  # that the engines are tested with

BENCHMARK_KEYS = ("benchmark", "version", "date", "device", "driver", "rows")
KEY = ("item", "states", "components", "precision", "taxa", "patterns")
RATE = "pattern_nodes_per_second"

_log = logging.getLogger("plltool")


class Shape(NamedTuple):
    """Size of the data of a row."""

    n_taxa: int
    n_patterns: int


# The last one of each list is deep enough to rescale in double precision.
DEFAULT_SHAPES = (
    Shape(32, 1_000),
    Shape(32, 10_000),
    Shape(32, 100_000),
    Shape(8, 1_000_000),
    Shape(200, 1_000),
    Shape(2_000, 1_000),
)
QUICK_SHAPES = (Shape(32, 1_000), Shape(32, 10_000), Shape(1_000, 500))


@dataclass(frozen=True)
class Benchmark:
    """The rows of a run, and where it ran.

    Attributes
    ----------
    device, driver, reason : what did the arithmetic, by way of what, and why it was chosen
    rows : a dictionary each; `KEY` names the fields that say what was measured
    """

    device: str
    driver: str
    reason: str
    rows: tuple[dict[str, Any], ...]

    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """Everything as strings, numbers, lists and dictionaries."""
        return {
            "benchmark": "plltool bench",
            "version": __version__,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": command,
            "device": self.device,
            "driver": self.driver,
            "reason": self.reason,
            "rows": list(self.rows),
        }


def run_benchmark(
    hardware: Hardware, n_states: int = 4, shapes: Sequence[Shape] | None = None, repetitions: int = 5, seed: int = 1
) -> Benchmark:
    """Measure every item on every shape, one after the other.

    Parameters
    ----------
    n_states : of a random reversible model with 4 gamma rates
    shapes : None for DEFAULT_SHAPES, as far as they fit MAX_CLA_BYTES
    repetitions : samples of each item
    seed : of tree, model and data

    Raises
    ------
    DeviceError
        If the device cannot be used, or not for one of the `shapes`.
    InputError
        If the engine cannot hold so many states.
    """
    rows: list[dict[str, Any]] = []
    fitting = DEFAULT_SHAPES if shapes is None else shapes
    if shapes is None:
        fitting = tuple(shape for shape in fitting if _cla_bytes(shape, n_states, hardware) <= MAX_CLA_BYTES)
        for shape in sorted(set(DEFAULT_SHAPES) - set(fitting)):
            _log.info("%d taxa, %d patterns: left out, its CLAs need more than %d GiB", *shape, MAX_CLA_BYTES >> 30)
    for number, shape in enumerate(fitting, start=1):
        _log.info("shape %d of %d: %d taxa, %d patterns", number, len(fitting), *shape)
        components, tree, states = make_data(shape, n_states, np.random.default_rng([seed, n_states, *shape]))
        codes, sets = encode_states(states, n_states)
        layout, slots = (n_states, N_COMPONENTS, shape.n_taxa, (shape.n_patterns,)), Slots(n_slots(shape))
        weights = np.ones(shape.n_patterns)
        engine, reason = make_engine(codes, weights, *layout, slots, state_sets=sets, **asdict(hardware))
        with engine:
            if number == 1:
                _log.info("device: %s", reason)
            rows += _measure(TreeLikelihood(tree, [cast(Model, _Fixed(components))], engine), repetitions)
            facts = engine.device_name, engine.driver, reason
    return Benchmark(*facts, tuple(rows))


# --- data -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fixed:
    """What `TreeLikelihood` asks of a model."""

    made_of: Components

    def components(self) -> Components:
        return self.made_of


def make_data(
    shape: Shape, n_states: int, rng: np.random.Generator
) -> tuple[Components, Tree, npt.NDArray[np.int16]]:
    """A random model, a random tree, and states (n_taxa, n_patterns) of columns that evolved along it."""
    components = random_components(n_states, rng)
    tree = random_tree([f"t{k}" for k in range(shape.n_taxa)], rng)
    tree.lengths[:] = SHORTEST_LENGTH + rng.exponential(MEAN_LENGTH, tree.n_edges)
    return components, tree, evolve(tree, n_states, components.rates, shape.n_patterns, rng)


def random_components(n_states: int, rng: np.random.Generator) -> Components:
    """A random reversible model with N_COMPONENTS gamma rates."""
    frequencies = rng.dirichlet(np.full(n_states, 5.0))
    exchangeabilities = rng.random((n_states, n_states)) + 0.1
    eigenvalues, right, left = eigensystem(exchangeabilities + exchangeabilities.T, frequencies)

    def repeat(array: FloatArray) -> FloatArray:
        return np.repeat(array[None], N_COMPONENTS, axis=0)

    weights = np.full(N_COMPONENTS, 1 / N_COMPONENTS)
    rates = gamma_means(ALPHA, N_COMPONENTS)
    return Components(repeat(eigenvalues), repeat(right), repeat(left), repeat(frequencies), rates, weights)


def evolve(
    tree: Tree, n_states: int, rates: FloatArray, n_patterns: int, rng: np.random.Generator
) -> npt.NDArray[np.int16]:
    """States (n_taxa, n_patterns) of columns that change along the tree's branches, all changes equally likely.

    Each column has one of `rates`. After length t a state is a random one of the others with probability
    ``(S - 1) / S (1 - exp(-S t / (S - 1)))`` (Jukes and Cantor 1969, for S states).
    """
    states = np.zeros((tree.n_nodes, n_patterns), dtype=np.int16)
    states[0] = rng.integers(0, n_states, n_patterns)
    rate = rng.choice(rates, n_patterns)
    share = (n_states - 1) / n_states
    for node, parent, edge in tree.directed_from(0):
        changes = rng.random(n_patterns) < -share * np.expm1(-tree.lengths[edge] * rate / share)
        others = (states[parent] + rng.integers(1, n_states, n_patterns)) % n_states
        states[node] = np.where(changes, others, states[parent])
    return states[: tree.n_taxa]


def encode_states(
    states: npt.NDArray[np.int16], n_states: int
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.uint8] | None]:
    """Tip codes of known states as the engines take them, and the table of state sets that goes with them, if any.

    Raises InputError if they cannot hold so many states.
    """
    if n_states > MAX_STATES:
        raise InputError(f"found {n_states} states, expected at most {MAX_STATES}, which is what the engines hold")
    if n_states <= MASK_STATES:
        return np.left_shift(1, states), None
    return states, np.eye(n_states, dtype=np.uint8)


def n_slots(shape: Shape) -> int:
    """CLAs that the items need: all directed ones, and the scan's scratch."""
    return directed_slots(shape.n_taxa) + SCAN_RADIUS + 1


def _cla_bytes(shape: Shape, n_states: int, hardware: Hardware) -> int:
    """Of all of them, padding aside."""
    parts = (shape.n_patterns,)
    layout = Layout(n_states, N_COMPONENTS, shape.n_taxa, parts, vw=1, precision=hardware.precision)
    return n_slots(shape) * layout.slot_bytes


# --- items ------------------------------------------------------------------------------------------------------------

# Of each instruction: the columns of the CLAs that it reads, the values that it makes.
_READS = {
    prog.PROPAGATE: [2],
    prog.NEWVIEW: [2, 4],
    prog.EVALUATE: [2, 4],
    prog.DERIVATIVE: [2, 4],
    prog.INSERT: [2, 4, 6],
}
_VALUES = {prog.EVALUATE: 1, prog.DERIVATIVE: prog.DERIVATIVE_VALUES, prog.INSERT: 1}
_WRITES = (prog.PROPAGATE, prog.NEWVIEW)


def instruction_flops(opcode: int, n_states: int) -> int:
    """Floating-point operations of one instruction on one pattern and component, see the head of the module."""
    square, s = 2 * n_states**2, n_states
    return {
        prog.PROPAGATE: square,
        prog.NEWVIEW: 2 * square + s,
        prog.EVALUATE: square + 3 * s,
        prog.DERIVATIVE: 2 * square + 3 * s + 7 * (s - 1),  # both sides to the eigenbasis; lnL and two slopes there
        prog.INSERT: 2 * square + 4 * s,
    }[opcode]


@dataclass(frozen=True)
class Item:
    """Something to time: `run` does it once, after `prepare`; the rest is how much that is, on one pattern."""

    run: Callable[[], None]
    prepare: Callable[[], None]
    nodes: int
    cla_moves: int
    flops: int


class Execution(NamedTuple):
    """What an engine was asked to execute."""

    request: Request
    lengths: FloatArray


def record(engine: Engine, work: Callable[[], object]) -> list[Execution]:
    """What `work` has the engine execute."""
    executions: list[Execution] = []
    execute = engine.execute

    def recorder(request: Request, lengths: FloatArray) -> FloatArray:
        executions.append(Execution(request, np.array(lengths)))
        return execute(request, lengths)

    engine.execute = recorder  # type: ignore[method-assign]
    try:
        work()
    finally:
        del engine.execute
    return executions


def replay(engine: Engine, executions: Sequence[Execution]) -> None:
    """Execute it once more."""
    for execution in executions:
        engine.execute(*execution)


def make_item(
    engine: Engine, executions: Sequence[Execution], preparations: Sequence[Execution] = (), changing: bool = False
) -> Item:
    """Replays `executions`; with `changing`, at other lengths every time, so that P matrices are made anew."""
    longer = [execution._replace(lengths=execution.lengths * 1.01) for execution in executions]
    turns = itertools.cycle([executions, longer] if changing else [executions])
    every = np.concatenate([execution.request.program for execution in executions])
    rows = {opcode: every[every[:, 0] == opcode] for opcode in _READS}
    reads = sum(int(np.count_nonzero(rows[opcode][:, columns] >= 0)) for opcode, columns in _READS.items())
    writes = sum(len(rows[opcode]) for opcode in _WRITES)
    flops = sum(len(rows[opcode]) * instruction_flops(opcode, engine.layout.n_states) for opcode in _READS)
    return Item(
        lambda: replay(engine, next(turns)),
        lambda: replay(engine, preparations),
        len(every),
        reads + writes,
        flops * engine.layout.n_components,
    )


def make_items(likelihood: TreeLikelihood) -> dict[str, Item]:
    """The items of the table."""
    engine, tree = likelihood.engine, likelihood.tree
    lnl, _ = likelihood.all_derivatives()
    directed = record(engine, likelihood.directed)
    prunes = all_prunes(likelihood, np.arange(tree.n_taxa, min(tree.n_nodes, tree.n_taxa + SCANNED_JOINTS)))
    across_root = prog.evaluate(0, ~ROOT, likelihood.view.facing[ROOT, 0], tree.edges[ROOT, 0])

    def on_directed(work: Callable[[], object]) -> Item:
        likelihood.directed()
        return make_item(engine, record(engine, work), directed)

    return {
        "newview": make_item(engine, record(engine, likelihood.lnl)),
        "evaluate": on_directed(lambda: likelihood.directed().execute(Request(across_root, 1), tree.lengths)),
        "derivatives": make_item(engine, record(engine, likelihood.all_derivatives), changing=True),
        "scan": on_directed(lambda: scan(likelihood, prunes, SCAN_RADIUS, lnl)),
    }


def count_rescaled(likelihood: TreeLikelihood) -> int:
    """Patterns that were rescaled for certain.

    Without rescaling the CLA next to the root tip has an entry of at least 2^-SCALE_BITS, and lnL takes that times a
    frequency, a weight and an entry of P: none of these data makes the product of the three smaller than
    2^-RESCALED_MARGIN. A pattern below both was rescaled on the way.
    """
    least = -(likelihood.engine.layout.scale_bits + RESCALED_MARGIN) * math.log(2)
    return int(np.count_nonzero(likelihood.site_lnl() < least))


# --- measuring --------------------------------------------------------------------------------------------------------


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
    """Mean wall-clock seconds of one call."""
    began = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - began) / calls


def _measure(likelihood: TreeLikelihood, repetitions: int) -> list[dict[str, Any]]:
    """The rows of one shape."""
    engine, layout = likelihood.engine, likelihood.engine.layout
    rescaled = count_rescaled(likelihood)
    items, peaks = make_items(likelihood), engine.peaks()
    seconds = time_in_turn({**items, **peaks}, repetitions)
    at_most = {name: peak.amount / seconds[name] for name, peak in peaks.items()}
    shape = {
        "states": layout.n_states,
        "components": layout.n_components,
        "precision": layout.precision,
        "taxa": layout.n_taxa,
        "patterns": layout.n_patterns,
    }
    facts = {
        "rescaled_patterns": rescaled,
        "copy_bytes_per_second": at_most.get("copy"),
        "multiply_adds_per_second": at_most.get("multiply_adds"),
        "layout": layout.describe(),
    }
    return [
        {"item": name} | shape | _rates(name, item, seconds[name], layout, at_most) | facts
        for name, item in items.items()
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
    shares: dict[str, float | None] = dict.fromkeys(("copy_share", "multiply_add_share", "bound_share"))
    if at_most:
        shares["copy_share"] = moved / at_most["copy"]
        shares["multiply_add_share"] = item.flops * patterns / (2 * at_most["multiply_adds"])
        if name == "newview":
            bound = newview_bound(layout.n_states, layout.n_components, at_most["multiply_adds"])
            shares["bound_share"] = item.nodes * patterns / bound
    return rates | shares


def newview_bound(n_states: int, n_components: int, multiply_adds_per_second: float) -> float:
    """Pattern-nodes a second of newviews between inner nodes on a device that does so many lanes' multiply-adds.

    See *bound* at the head of the module; lanes' operations are VW times those of vectors.
    """
    return multiply_adds_per_second / (n_components * (2 * n_states**2 + 2 * n_states))


# --- two runs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratios:
    """A run beside an older one.

    Attributes
    ----------
    matched : (row, pattern-nodes per second over those of the older run)
    only_new, only_old : rows of one run only
    """

    matched: tuple[tuple[dict[str, Any], float], ...]
    only_new: tuple[dict[str, Any], ...]
    only_old: tuple[dict[str, Any], ...]


def read_benchmark(path: str | PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a file that `plltool bench` wrote.

    Raises
    ------
    InputError
        If the file cannot be read or is no such file.
    """
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


def compare_rows(new: Sequence[dict[str, Any]], old: Sequence[dict[str, Any]]) -> Ratios:
    """Rows of the same `KEY` side by side, in the order of `new`."""
    before = {row_key(row): row for row in old}
    after = {row_key(row) for row in new}
    return Ratios(
        tuple((row, row[RATE] / before[row_key(row)][RATE]) for row in new if row_key(row) in before),
        tuple(row for row in new if row_key(row) not in before),
        tuple(row for row in old if row_key(row) not in after),
    )


def row_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row measured."""
    return tuple(row[name] for name in KEY)
