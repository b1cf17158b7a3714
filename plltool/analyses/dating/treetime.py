"""Trees in time, by TreeTime (Sagulenko, Puller & Neher 2018): what it is given, and what it finds."""

import contextlib
import io
import math
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from plltool.alignment.states import DNA, PROTEIN
from plltool.arrays import FloatArray
from plltool.constants import DATE_COALESCENTS, DATE_LENGTHS, DATE_ROOTS, NO_NODE, NODE
from plltool.errors import InputError, check_kind, check_one_of
from plltool.io.alignment_formats import format_fasta
from plltool.io.newick_writer import write_nodes
from plltool.io.table_reader import SampleDate
from plltool.model.model import Model
from plltool.model.partition import Dataset
from plltool.model.substitution import exchangeability_matrix
from plltool.schema import Keys
from plltool.tree.rooted_nodes import RootedNodes

DATE_LEVEL = 0.9  # probability that a date lies in its interval: that of the treetime command
DATE_TIP_SLACK = 3.0  # overdispersion of the clock at tips, in mutations: that of the treetime command
DATE_ITERATIONS = 2  # rounds of dating: those of the treetime command
BEST, CONSTANT = DATE_ROOTS[0], DATE_COALESCENTS[0]
AUTO, INPUT = DATE_LENGTHS[:2]
LEAST_DATED = 3  # taxa
ALPHABETS = {DNA.name: "nuc_nogap", PROTEIN.name: "aa_nogap"}  # TreeTime's names; gaps are unknown states


@dataclass(frozen=True)
class ClockSettings:
    """How a tree is dated."""

    root: str = BEST  # one of DATE_ROOTS; without a meaning where the tree comes with a root
    clock_rate: float | None = None  # substitutions per site and year; None finds it
    clock_error: float | None = None  # its standard error
    coalescent: str | None = None  # prior on the times of nodes, one of DATE_COALESCENTS, or None
    # slack and coupling of an autocorrelated clock, or None for a strict one
    relaxed: tuple[float, float] | None = None
    lengths: str = AUTO  # TreeTime's branch-length mode, one of DATE_LENGTHS

    def __post_init__(self) -> None:
        check_one_of("root", self.root, DATE_ROOTS)
        check_one_of("lengths", self.lengths, DATE_LENGTHS)
        if self.coalescent is not None:
            check_one_of("coalescent", self.coalescent, DATE_COALESCENTS)
        for name, value in (("clock_rate", self.clock_rate), ("clock_error", self.clock_error)):
            check_kind(name, value, (Real, type(None)), "a number above 0")
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name}: found {value:g}, expected a number above 0")
        if self.clock_error is not None and self.clock_rate is None:
            raise InputError("clock_error: found no clock_rate, expected one that has this error")
        if self.relaxed is not None and not all(0 <= value < math.inf for value in self.relaxed):
            raise InputError("relaxed: found a negative number, expected slack and coupling of at least 0")


class SiteData(NamedTuple):
    """The sequences of taxa as letters, and their model without rates across sites: frequencies and rates (S, S)."""

    alphabet: str
    rows: Sequence[str]
    frequencies: FloatArray
    exchangeabilities: FloatArray

    @classmethod
    def of(cls, data: Dataset, models: Sequence[Model]) -> Self | None:
        """What TreeTime can use: DNA or proteins in one part, under a model of one class with one rate; else None."""
        block = data.parts[0].alignment.called
        model, states = models[0], block.states
        if len(models) > 1 or states.name not in ALPHABETS:
            return None
        if len(model.mixture()[2]) > 1 or model.switching is not None:
            return None
        letter = np.full(states.n_codes, "?")
        for character in reversed(states.characters):
            letter[states.code_of[ord(character)]] = character
        if states.name == PROTEIN.name:
            letter[states.state_sets.sum(axis=1) > 1] = "X"
        order = np.argsort(states.symbols)
        rates = exchangeability_matrix(model.exchangeabilities)[np.ix_(order, order)]
        rows = ["".join(letter[row]) for row in block.codes]
        return cls(ALPHABETS[states.name], rows, model.frequencies[order], rates)


@dataclass(frozen=True)
class DatedNode:
    """When a node lived: a taxon, or Node1 (the root), Node2, ..."""

    name: str
    year: float
    day: str
    interval: tuple[float, float] | None  # of years, with a probability of DATE_LEVEL; None if TreeTime does not tell
    rate: float  # of the branch above over the mean rate; 1 under a strict clock


class RootToTip(NamedTuple):
    """A tip in the regression of distances on dates: its year, and its distance from the root in substitutions."""

    name: str
    year: float
    distance: float


_TIP = Keys("expected:float", like=RootToTip)


@dataclass(frozen=True)
class Clock:
    """The molecular clock: a line through the distances from the root to the tips over their dates."""

    rate: float  # substitutions per site and year, the slope
    interval: tuple[float, float] | None  # of the rate, likewise; None if it was given without an error
    origin: float  # the year in which the line meets the distance 0
    r_squared: float  # share of the variance of the distances that the line explains
    coalescent_time: float | None  # mean years in which two lineages meet, under a constant coalescent prior

    def expect(self, year: float) -> float:
        return self.rate * (year - self.origin)


@dataclass(frozen=True, eq=False)
class DatedTree:
    """A tree in time."""

    nodes: RootedNodes  # with lengths in years
    dates: tuple[DatedNode, ...]  # of the nodes
    clock: Clock
    tips: tuple[RootToTip, ...]  # those with a known date, in the order of the tree
    lengths: str  # the branch-length mode that was used
    version: str  # of TreeTime

    @Keys("clock nodes=dates root_to_tip lengths level:float treetime=version", root_to_tip=[_TIP])
    def as_record(self) -> dict[str, Any]:
        return {
            "root_to_tip": [tip._asdict() | {"expected": self.clock.expect(tip.year)} for tip in self.tips],
            "level": DATE_LEVEL,
        }


def date_tree(
    nodes: RootedNodes,
    has_root: bool,
    dates: Mapping[str, SampleDate | None],
    n_sites: int,
    sites: SiteData | None,
    settings: ClockSettings,
    seed: int,
) -> DatedTree:
    """Date a tree, whose lengths are in substitutions per site, and whose root is kept if it has one.

    `dates` are those of all taxa, None where one is unknown; `sites` are the sequences in their order, or None to use
    lengths alone. Raises InputError if TreeTime cannot use the sequences that ``settings.lengths`` needs, or finds no
    clock.
    """
    if settings.lengths == INPUT:
        sites = None
    elif settings.lengths != AUTO and sites is None:
        expected = "DNA or proteins in one partition under one matrix, without rates across sites"
        raise InputError(f"lengths: found {settings.lengths!r}, expected {INPUT!r}, or {expected}")
    names = {name: f"t{number}" for number, name in enumerate(dates)}  # TreeTime sees no marks or numbers in names
    years = {names[name]: date.first if date.first == date.last else list(date) for name, date in dates.items() if date}
    nowhere = io.StringIO()  # for what TreeTime prints
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
        warnings.catch_warnings(action="ignore"),  # of numpy and pandas
    ):
        given: dict[str, Any] = {"gtr": "JC69", "seq_len": n_sites}
        if sites is not None:
            path = Path(folder) / "alignment.fasta"
            path.write_text(format_fasta(list(names.values()), sites.rows))
            given = {"gtr": _as_gtr(sites), "aln": str(path)}
        tree = Path(folder) / "tree.nwk"
        labelled = zip(nodes.labels, nodes.children(), strict=True)
        labels = ["" if below else names[label] for label, below in labelled]
        tree.write_text(write_nodes(RootedNodes(nodes.parents, nodes.lengths, labels)))
        fitted = _run_treetime({"tree": str(tree), "dates": years, "rng_seed": seed, **given}, has_root, settings)
    return _read_back(fitted, {short: name for name, short in names.items()}, settings.coalescent == CONSTANT)


def _run_treetime(given: Mapping[str, Any], has_root: bool, settings: ClockSettings) -> Any:
    """TreeTime's own object after its run; `given` are its arguments. InputError if it ends with an error."""
    import treetime

    try:
        run = treetime.TreeTime(verbose=0, **given)
        run.tip_slack = DATE_TIP_SLACK
        run.run(
            root=None if has_root else settings.root.replace("-", "_"),
            infer_gtr=False,
            max_iter=DATE_ITERATIONS,
            branch_length_mode=settings.lengths,
            fixed_clock_rate=settings.clock_rate,
            vary_rate=True if settings.clock_rate is None else settings.clock_error or False,
            use_covariation=True,
            time_marginal="confidence-only",
            Tc=settings.coalescent,
            relaxed_clock=settings.relaxed and dict(zip(("slack", "coupling"), settings.relaxed, strict=True)),
            raise_uncaught_exceptions=True,
        )
    except Exception as error:
        cause = error.__cause__ or error
        if not isinstance(cause, Exception):  # TreeTime also wraps interrupts
            raise cause from None
        reason = " ".join(str(cause).split()) or type(cause).__name__
        expected = "expected dates that tell the rate of a clock; --clock-rate gives the rate"
        raise InputError(f"dates: TreeTime found no dated tree ({reason}), {expected}") from error
    return run


def _as_gtr(sites: SiteData) -> Any:
    """TreeTime's model with a mean rate of 1."""
    from treetime import GTR

    given = {"pi": sites.frequencies, "W": sites.exchangeabilities, "alphabet": sites.alphabet}
    return GTR.custom(mu=1.0 / GTR.custom(mu=1.0, **given).average_rate(), **given)


def _read_back(run: Any, names: Mapping[str, str], has_constant: bool) -> DatedTree:
    """The tree that TreeTime left, with dates and names."""
    made, dates, depths = RootedNodes(), list[DatedNode](), dict[int, float]()
    tips: list[RootToTip | None] = []
    stack = [(run.tree.root, NO_NODE)]
    while stack:
        clade, parent = stack.pop()
        number = made.add(parent)
        depths[number] = 0.0 if parent == NO_NODE else depths[parent] + float(clade.mutation_length)
        is_tip = not clade.clades
        made.labels[number] = names[clade.name] if is_tip else f"{NODE}{number - len(tips) + 1}"
        interval, rate = None, float(clade.branch_length_interpolator.gamma) if clade.up is not None else 1.0
        if not clade.bad_branch and hasattr(clade, "marginal_inverse_cdf"):
            low, high = run.get_max_posterior_region(clade, fraction=DATE_LEVEL)
            interval = float(low), float(high)
        dates.append(DatedNode(made.labels[number], float(clade.numdate), clade.date, interval, rate))
        if parent != NO_NODE:
            made.lengths[number] = max(dates[number].year - dates[parent].year, 0.0)
        if is_tip:
            year = None if clade.bad_branch else float(np.mean(clade.raw_date_constraint))  # the middle of a range
            tips.append(None if year is None else RootToTip(made.labels[number], year, depths[number]))
        stack += [(below, number) for below in reversed(clade.clades)]
    used = tuple(tip for tip in tips if tip is not None)
    clock, version = _read_clock(run, has_constant), metadata.version("phylo-treetime")
    return DatedTree(made, tuple(dates), clock, used, run.branch_length_mode, version)


def _read_clock(run: Any, has_constant: bool) -> Clock:
    clock = run.clock_model
    rate, interval = float(clock["slope"]), None
    if "cov" in clock:
        reach = float(ndtri((1.0 + DATE_LEVEL) / 2.0)) * math.sqrt(float(clock["cov"][0][0]))
        interval = rate - reach, rate + reach
    meeting = float(run.merger_model.Tc.y[0]) / rate if has_constant else None
    return Clock(rate, interval, -float(clock["intercept"]) / rate, float(clock["r_val"]) ** 2, meeting)
