"""The results of searches and evaluations, and their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Annotated, Any

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import COLLAPSE_LENGTH, CRITERIA, ROOT_NAME, UNLINKED
from plltool.engine.requests import Counters
from plltool.errors import InputError, shorten
from plltool.io.files import nan_to_null
from plltool.io.newick_writer import collapse_newick, write_nexus
from plltool.io.table_reader import format_for, format_frequencies, format_sites, site_rows
from plltool.model import describe
from plltool.model.candidates import information_score
from plltool.model.model import Model
from plltool.optimise.polish import Other
from plltool.progress import Progress
from plltool.reports.blocks import Row
from plltool.reports.tree_blocks import Drawn
from plltool.run.inputs import TreeLike
from plltool.run.model_choice import ModelChoice, SchemeChoice
from plltool.run.run_result import RunResult
from plltool.run.site_rates import PerSiteRates
from plltool.schema import Keys
from plltool.tree.splits import smaller_sides
from plltool.tree.topology import Tree
from plltool.tree_search.climb import RootPlace
from plltool.tree_search.effort import SearchOptions

_PROFILE = Keys("device_seconds:float host_share:float launches_per_second:float", mean_batch=dict[str, float])
_BRANCH = Keys("taxa:str[]", length=(float, [float]), error=(float, None, [float | None]))


@dataclass(frozen=True)
class PartResult:
    """The result for one part of the alignment."""

    name: str  # empty if it is the whole alignment and has none
    sites: str  # its columns, as text
    n_sites: int  # number of columns
    n_patterns: int  # number of distinct columns
    model: str  # model string with all parameter values
    scaler: float  # factor of the tree's branch lengths
    lnl: float
    parameters: Annotated[dict[str, Any], describe.describe_model]  # the model as numbers
    newick: str | None  # the tree with the part's own branch lengths if they are unlinked, otherwise None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result(RunResult):
    """A tree with its likelihood, and how both were obtained; see `RunResult` for more attributes.

    The columns of its table are site, lnl and rate, as far as the lnL and the rates of sites were asked for.

    Attributes
    ----------
    lnl : log-likelihood of `tree` under `model`, of the whole alignment
    tree : topology and branch lengths, with tips in the order of their names; means over sites if the parts have
        lengths of their own
    newick : the tree as text, with the outgroup as one clade if there is one
    model : model string with all parameter values; for several parts the lines of a partition file
    parameters : the model as numbers; for several parts the number of free parameters
    parts : the parts of the alignment, one if there was no partition
    brlen : how the branch lengths of parts are linked, one of LINKAGES
    lnl_device : the device that computed lnL of `tree` and of the parts in double precision, if `device` has none
    layout : layout of the engine, see `Layout.describe`
    counters : launches, instructions and bytes over the bus, see `Counters`
    start_lnls : lnL reached from each start tree; for an evaluation, lnL of the tree as it was given
    models : the models of the parts, as they were optimised; another search may start with their values
    site_lnl : (n_sites,) lnL of each site in the alignment's order, if asked for
    outgroup : taxa that `newick` shows as one clade, if they are one
    psr : with +PSR, what was found under it; everything else is then under gamma rates
    other : another optimum of the branch lengths of this tree that was met: lnL and the sum of the lengths, or nan
    """

    no_rows = "found no lnL and no rates of sites, expected a result made with site_lnl=True or site_rates=True"

    lnl: float
    tree: Tree
    newick: str
    model: str
    parameters: dict[str, Any]
    parts: tuple[PartResult, ...]
    brlen: str
    layout: dict[str, object]
    counters: dict[str, Any]
    start_lnls: tuple[float, ...]
    models: tuple[Model, ...]
    lnl_device: str | None = None
    site_lnl: FloatArray | None = None
    outgroup: Sequence[str] | None = None
    psr: PerSiteRates | None = None
    other: Other = field(default=Other())

    def __repr__(self) -> str:
        """One line: what was found, of what data, under which model and where."""
        models = shorten("; ".join(dict.fromkeys(str(model.spec) for model in self.models)))
        size = f"{self.n_taxa} taxa, {self.n_sites} sites"
        return f"<{type(self).__name__}: lnL {self.lnl:.3f}, {size}, {models}, {self.device}>"

    def _drawn(self) -> Drawn | None:
        return self.newick, ()

    def _rows(self) -> Sequence[Row]:
        return site_rows(lnl=self.site_lnl)

    def collapsed(self, threshold: float = COLLAPSE_LENGTH) -> tuple[str, int]:
        """`newick` without the inner branches of at most `threshold`, and the number of these branches."""
        return collapse_newick(self.newick, threshold)

    @Keys(
        "lnl model n_taxa n_sites n_patterns device reason seconds tree=newick seed start_lnls brlen parts parameters"
        " layout counters warnings version driver software command:str? data",
        {"other_optimum": Other, "psr": PerSiteRates, "lnl_device": str},
        parameters=(describe.describe_model, Keys("n_free_parameters:int")),
        counters=Counters,
        data=describe.describe_data,
    )
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The result as strings, numbers, lists and dictionaries, see `plltool.write_record`.

        `command` is the command line that made it, if there was one.
        """
        record: dict[str, Any] = {}
        if not np.isnan(self.other.lnl):
            record["other_optimum"] = self.other._asdict()
        if self.lnl_device is not None:
            record["lnl_device"] = self.lnl_device
        return record if self.psr is None else record | {"psr": self.psr.as_record()}

    @property
    def scores(self) -> dict[str, float]:
        """The number of free parameters, branch lengths among them, and AIC, AICc and BIC; lower is better."""
        sets, n_branches = len(self.parts) if self.brlen == UNLINKED else 1, len(self.tree.own_branches)
        n = (n_branches - self.tree.is_rooted) * sets + int(self.parameters["n_free_parameters"])
        return {"n_parameters": n} | {name: information_score(name, self.lnl, n, self.n_sites) for name in CRITERIA}

    def describe_models(self) -> list[str]:
        """The models for people: lines for each part, before them what was found under +PSR. `model` has all values."""
        lines = [] if self.psr is None else [self.psr.describe()]
        for part, model in zip(self.parts, self.models, strict=True):
            about, of_rates = "model: ", "rates: "
            if part.name:
                of_rates = f"partition {part.name}: "
                about = f"{of_rates}lnL {part.lnl:.6f}, {part.n_sites} sites, model "
            lines.append(about + describe.shorten_model(part.model))
            lines += [of_rates + rates] if (rates := describe.name_rates(model)) else []
        return lines

    def format_site_lnl(self, name: str | PathLike[str] = "") -> str:
        """`site_lnl` as a table, or in TREE-PUZZLE's format if the `name` of the file ends in .sitelh.

        Raises InputError if the lnL of sites was not asked for.
        """
        return format_for(name, self._asked_for("site_lnl"))

    def _asked_for(self, name: str) -> FloatArray:
        values: FloatArray | None = getattr(self, name)
        if values is None:
            raise InputError(f"{name}: found none, expected a result that was made with {name}=True")
        return values

    def _tree_texts(self, best: str, own: str, command: str | None, nexus: bool, collapse: float) -> dict[str, str]:
        """The texts of the tree, of the record and of other views of the tree.

        The endings of files that show the tree itself begin with `best`, those of the others with `own`.
        """
        trees = [part.newick for part in self.parts if part.newick is not None]
        collapsed, n_collapsed = self.collapsed(collapse)
        texts = {f"{best}.nwk": self.newick, f"{own}json": self.to_json(command)}
        if self.parts[0].name:
            texts[f"{best}.model"] = self.model
        if trees:
            texts[f"{own}parts.nwk"] = "\n".join(trees)
        if nexus:
            texts[f"{best}.nex"] = write_nexus(self.newick).rstrip()
        if n_collapsed:
            texts[f"{own}collapsed.nwk"] = collapsed
        return {ending: text + "\n" for ending, text in texts.items()}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SearchResult(Result):
    """The result of a search.

    The columns of its table are start, lnl and distance: where each start tree ended.

    Attributes
    ----------
    interrupted : whether a listener stopped the search; the tree is then the best one so far
    trace : every round, climb by climb in the order of the start trees
    constraint : the tree whose splits the search had to keep, as it was given
    options : how hard the search was
    choice : how the model was chosen, if it was
    start_distances : Robinson-Foulds distance from `tree` to the tree reached from each start tree; identical sequences
        count once
    climbs : the trees reached from the start trees, as Newick
    climb_distances : the distances between these trees, a row for each
    settings : all that the search depends on besides data, seed and device, by name, see `Run.identity`
    """

    interrupted: bool = False
    trace: tuple[Progress, ...] = ()
    constraint: TreeLike | None = None
    options: SearchOptions = field(default=SearchOptions())
    choice: ModelChoice | SchemeChoice | None = None
    start_distances: tuple[int, ...] = ()
    climbs: tuple[str, ...] = ()
    climb_distances: tuple[tuple[int, ...], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def _rows(self) -> Sequence[Row]:
        distances = self.start_distances or (None,) * len(self.start_lnls)
        ends = zip(self.start_lnls, distances, strict=True)
        return [{"start": k, "lnl": lnl, "distance": own} for k, (lnl, own) in enumerate(ends, start=1)]

    @property
    def profile(self) -> dict[str, Any] | None:
        """How the wall time of the run was spent, if the device's time was measured.

        Kernels ran for ``device_seconds``, and for ``host_share`` of the wall time, from the first file read to the
        result, none did. ``mean_batch`` is the number of instructions per request of each kind.
        """
        busy = self.counters["device_seconds"]
        if busy is None:
            return None
        sizes = self.counters["request_instructions"]
        return {
            "device_seconds": busy,
            "host_share": 1.0 - busy / self.seconds,
            "launches_per_second": self.counters["launches"] / self.seconds,
            "mean_batch": {name: sizes[name] / number for name, number in self.counters["requests"].items()},
        }

    @Keys(
        "trace start_distances climb_distances settings",
        {"model_choice": (ModelChoice.summary, SchemeChoice.summary), "profile": _PROFILE},
    )
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The record of any result, with the trace, and what there is of a choice of the model and a profile."""
        record = super().as_record(command)
        if self.choice is not None:
            record["model_choice"] = self.choice.summary()
        return record if self.profile is None else record | {"profile": self.profile}

    def texts(
        self, command: str | None = None, *, nexus: bool = False, collapse: float = COLLAPSE_LENGTH
    ) -> dict[str, str]:
        """The files that `plltool search` writes, by the ends of their names, with `nexus` also the tree as NEXUS.

        `collapse` is the longest inner branch that the collapsed tree lacks, in substitutions per site.
        """
        return self._tree_texts("best", "", command, nexus, collapse)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EvaluationResult(Result):
    """The result of an evaluation.

    Attributes
    ----------
    site_rates : (n_sites,) posterior mean rate of each site in the alignment's order, if asked for
    pmsf : (n_sites, n_states) posterior mean frequencies of each site, likewise
    length_errors : (n_edges,), or unlinked (n_edges, n_parts), standard errors of the branch lengths, if asked for
    root_places : the root on each branch, best first, if asked for
    """

    site_rates: FloatArray | None = None
    pmsf: FloatArray | None = None
    length_errors: FloatArray | None = None
    root_places: tuple[RootPlace, ...] | None = None

    def _rows(self) -> Sequence[Row]:
        return site_rows(lnl=self.site_lnl, rate=self.site_rates)

    @Keys(maybe={"root_places": [RootPlace], "branches": [_BRANCH]})
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The record of any result, with the branches and their lengths' errors if these were asked for."""
        record = super().as_record(command)
        if self.root_places is not None:
            record["root_places"] = [asdict(place) for place in self.root_places]
        if self.length_errors is None:
            return record
        own = self.tree.own_branches
        sides = smaller_sides(self.tree, own)
        if self.tree.is_rooted:
            sides = [[name for name in taxa if name != ROOT_NAME] for taxa in sides]
        errors = nan_to_null(self.length_errors[own].tolist())
        rows = zip(sides, self.tree.lengths[own].tolist(), errors, strict=True)
        return record | {"branches": [{"taxa": t, "length": x, "error": error} for t, x, error in rows if t]}

    def texts(
        self, command: str | None = None, *, nexus: bool = False, collapse: float = COLLAPSE_LENGTH
    ) -> dict[str, str]:
        """The files that `plltool evaluate` writes, by the ends of their names; parameters as for `SearchResult`."""
        return self._tree_texts("evaluate", "evaluate.", command, nexus, collapse)

    def format_site_rates(self) -> str:
        """`site_rates` as a table; InputError if they were not asked for."""
        return format_sites("rate", self._asked_for("site_rates"))

    def format_pmsf(self) -> str:
        """`pmsf` as `--site-frequencies` and IQ-TREE read it; InputError if it was not asked for."""
        return format_frequencies(self._asked_for("pmsf"))
