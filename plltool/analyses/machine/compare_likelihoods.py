"""One tree on several devices: lnL, the lnL of sites and slopes of lnL, and where they differ most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from plltool.analyses.machine.devices import devices
from plltool.arrays import FloatArray
from plltool.constants import COMPARE_TOLERANCE, DEFAULT_LINKAGE, PRECISIONS
from plltool.errors import DeviceError, InputError, check_kind, show_name
from plltool.hardware import Hardware, parse_hardware
from plltool.io.files import Recorded
from plltool.progress import Listener, ignore, log
from plltool.reports.blocks import Row
from plltool.reports.shown import Shown
from plltool.run.evaluation import evaluate
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.results import EvaluationResult
from plltool.schema import Keys
from plltool.tree.splits import smaller_sides
from plltool.tree.topology import Tree

NUMPY_WIDTHS = 1, 2, 4
ROUNDING = 1e-6  # of lnL: how far anything may be from double in mixed or single precision; benchmarks measure 1e-7
SHOWN_TAXA = 2  # of the smaller side of a branch


@dataclass(frozen=True, eq=False)
class Answers:
    """What one device says of the tree."""

    label: str  # how the device was asked for
    device: str  # what it is
    precision: str  # "double", "mixed" or "single"
    lnl: float
    site_lnl: FloatArray  # (n_sites,) lnL of each site; NaN for sites that are in no part
    slopes: FloatArray  # (n,) of lnL in the elements of `Likelihood.vector`: logarithms of lengths and parameters


def _compare_pair(a: Answers, b: Answers, slopes_in: Sequence[str], tolerance: float) -> dict[str, Any]:
    """The row of two devices: b minus a of lnL, and of the site and the slope that differ most; and if they agree."""
    in_no_part = np.isnan(a.site_lnl) & np.isnan(b.site_lnl)
    sites, slopes = np.where(in_no_part, 0.0, b.site_lnl - a.site_lnl), b.slopes - a.slopes
    site, slope = int(np.abs(sites).argmax()), int(np.abs(slopes).argmax())
    found = {"lnl": b.lnl - a.lnl, "site_lnl": float(sites[site]), "slope": float(slopes[slope])}
    allowed = tolerance if {a.precision, b.precision} == {"double"} else max(tolerance, ROUNDING * abs(a.lnl))
    agree = all(abs(value) <= allowed for value in found.values())
    return {"a": a.label, "b": b.label, **found, "site": site + 1, "slope_in": slopes_in[slope], "agree": agree}


_PAIR = Keys("a:str b:str lnl:float site_lnl:float slope:float site:int slope_in:str agree:bool")
_DEVICE = Keys("label:str device:str precision:str lnl:float")
COMPARED = Keys("agree:bool tolerance:float failures:str[]", devices=[_DEVICE], pairs=[_PAIR])


@dataclass(frozen=True, eq=False)
class ComparedLikelihoods(Recorded, Shown):
    """The likelihood of one tree on several devices, with the same lengths and parameters on all.

    The columns of its table are a, b, lnl, site, site_lnl, slope_in, slope and agree, of each pair of devices.

    Attributes
    ----------
    evaluation : of the tree, on the first device
    answers : what each device says of the tree
    slopes_in : (n,) what the slopes are in, such as ``length of branch 12 (Homo_sapiens | others)`` or ``rates 0``
    tolerance : the largest difference that counts as agreement in double precision; mixed and single precision may
        differ by 1e-6 of lnL if that is more
    failures : a line for each device that could not answer
    """

    evaluation: EvaluationResult
    answers: tuple[Answers, ...]
    slopes_in: tuple[str, ...]
    tolerance: float
    failures: tuple[str, ...] = ()

    def __repr__(self) -> str:
        found = "agree" if self.agree else "differ"
        return f"<ComparedLikelihoods: {len(self.answers)} devices {found}, lnL {self.evaluation.lnl:.4f}>"

    @property
    def agree(self) -> bool:
        """Whether all devices answered, and all pairs agree."""
        return not self.failures and all(row["agree"] for row in self._rows())

    def _rows(self) -> Sequence[Row]:
        pairs = combinations(self.answers, 2)
        return [_compare_pair(*pair, self.slopes_in, self.tolerance) for pair in pairs]

    @Keys(like=EvaluationResult, comparison=COMPARED)
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The comparison as strings, numbers, lists and dictionaries, with the record of the evaluation."""
        names = "label", "device", "precision", "lnl"
        devices = [{name: getattr(own, name) for name in names} for own in self.answers]
        found = {"agree": self.agree, "tolerance": self.tolerance, "failures": list(self.failures)}
        return self.evaluation.as_record(command) | {"comparison": {**found, "devices": devices, "pairs": self._rows()}}

    def describe(self) -> list[str]:
        """Lines for people."""
        lines = [f"lnL on {own.label}: {own.lnl:.6f}  {own.device}" for own in self.answers]
        pairs = self.largest() if len(self.answers) == 2 else ["", *self._describe_pairs(), ""]
        return [*lines, *self.failures, *pairs, "the likelihoods agree" if self.agree else "the likelihoods DIFFER"]

    def largest(self) -> list[str]:
        """Where the first two devices differ most."""
        row = self._rows()[0]
        return [
            f"difference of lnL: {row['lnl']:.1e}",
            f"largest difference in the lnL of a site: {row['site_lnl']:.1e}, site {row['site']}",
            f"largest difference of a slope: {row['slope']:.1e}, {row['slope_in']}",
        ]

    def _describe_pairs(self) -> Iterator[str]:
        width = max(len(own.label) for own in self.answers)
        yield f"{'a':<{width}}  {'b':<{width}}       lnL      site     slope"
        for row in self._rows():
            values = "".join(f"{abs(row[name]):10.1e}" for name in ("lnl", "site_lnl", "slope"))
            yield f"{row['a']:<{width}}  {row['b']:<{width}}{values}{'' if row['agree'] else '  DIFFER'}"


def every_hardware() -> dict[str, Hardware]:
    """numpy in all widths, numpy and each OpenCL device that passes its test in all their precisions, by their text."""
    specs = [*(f"numpy:vw={width}" for width in NUMPY_WIDTHS), *(f"numpy:precision={own}" for own in PRECISIONS[1:])]
    for device in devices()["devices"]:
        if device["problem"] is not None:
            log.warning("%s %s is left out: %s", device["index"], device["name"], device["problem"])
        else:
            precisions = PRECISIONS if device["double"] else PRECISIONS[-1:]
            specs += [f"{device['index']}:precision={precision}" for precision in precisions]
    return {spec: parse_hardware(spec) for spec in specs}


def compare_likelihoods(
    alignment: AlignmentLike,
    tree: TreeLike,
    hardware: Mapping[str, Hardware],
    *,
    model: ModelLike | None = None,
    brlen: str = DEFAULT_LINKAGE,
    fixed: bool = False,
    tolerance: float = COMPARE_TOLERANCE,
    listener: Listener = ignore,
) -> ComparedLikelihoods:
    """Compare the likelihood of one tree, and its slopes, on several devices or engines.

    Parameters
    ----------
    hardware : the devices, by the names that they have in the result. The first one optimises lengths and parameters
    tolerance : see `ComparedLikelihoods`
    alignment, tree, model, brlen, fixed, listener : as for `plltool.evaluate`, also for errors

    Raises InputError if fewer than two devices are given, or alignment, tree or model cannot be used, and DeviceError
    if the first device cannot be used, or only one can. Others that cannot are among the `failures` of the result.
    """
    check_kind("hardware", hardware, Mapping, "a mapping of names to plltool.Hardware")
    for label, own in hardware.items():
        check_kind(label, own, Hardware, "a plltool.Hardware")
    if len(hardware) < 2:
        raise InputError(f"hardware: found {len(hardware)}, expected at least two devices to compare")
    data, models = resolve_inputs(alignment, model, brlen, rooted=True)
    settings = asdict(next(iter(hardware.values())))
    first = evaluate(data, tree, models, brlen=brlen, fixed=fixed, listener=listener, **settings)
    answers: list[Answers] = []
    failures: list[DeviceError] = []
    names: tuple[str, ...] = ()
    for label, own in hardware.items():
        try:
            with Likelihood(data, first.tree, list(first.models), brlen=brlen, **asdict(own)) as likelihood:
                values = likelihood.lnl(), likelihood.site_lnl(), likelihood.gradient()
                answers.append(Answers(label, likelihood.engine.device_name, own.precision, *values))
                names = names or tuple(_name_slopes(likelihood.vector_names(), likelihood.tree))
        except DeviceError as error:
            failures.append(DeviceError(f"{label}: {error}"))
    if len(answers) < 2:
        raise failures[0]
    return ComparedLikelihoods(first, tuple(answers), names, tolerance, tuple(map(str, failures)))


def _name_slopes(names: Sequence[str], tree: Tree) -> Iterator[str]:
    """The names of a vector's elements, where lengths tell of their branch."""
    sides = smaller_sides(tree, range(tree.n_edges))
    for name in names:
        kind, number, *part = name.split()
        if kind != "length":
            yield name
            continue
        taxa = sides[int(number)]
        shown = [show_name(taxon) for taxon in taxa[:SHOWN_TAXA]]
        shown += [f"{len(taxa) - SHOWN_TAXA} more"] * (len(taxa) > SHOWN_TAXA)
        yield " ".join([f"length of branch {number} ({', '.join(shown)} | others)", *part])
