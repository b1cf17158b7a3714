"""Messages that runs share: the device, warnings, and tests of data: what models and their assumptions ask of them."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from plltool.alignment import facts
from plltool.alignment.alignment import Alignment
from plltool.alignment.states import DNA, MIN_STATES, MULTISTATE
from plltool.arrays import FloatArray
from plltool.constants import DEFAULT_BRANCH_LENGTH, MIN_BRANCH_LENGTH, SIGNIFICANCE, UNLINKED
from plltool.engine.select import NUMPY_REASON
from plltool.errors import InputError, count, show_name
from plltool.hardware import Hardware
from plltool.io.files import nan_to_null
from plltool.model.describe import describe_parameters, shorten_model
from plltool.model.model import SCALER, Model
from plltool.model.partition import Dataset, Part
from plltool.model.rates import gamma_quantile
from plltool.model.spec import ModelSpec
from plltool.optimise.polish import Other
from plltool.progress import log
from plltool.tree.topology import Tree


class Announced(Protocol):
    """An engine, or what is known of one in another process."""

    @property
    def device_name(self) -> str: ...

    @property
    def driver(self) -> str: ...

    @property
    def launch_share(self) -> float: ...


def announce_engine(engine: Announced, reason: str, hardware: Hardware) -> list[str]:
    """Log the device, and whether its memory is short.

    Returns the reason if numpy replaces an OpenCL device. It is not logged, because a `PlltoolWarning` has said it.
    """
    fallback = [reason] if hardware.is_auto and reason.startswith(NUMPY_REASON) else []
    if not fallback:
        log.info("device: %s", reason)
    if engine.launch_share < 1.0:
        share = 100 * engine.launch_share
        log.info("memory: the patterns do not all fit; %.2g %% of them are processed at a time", share)
    return fallback


def remarks_on_optima(lnl: float, tree: Tree, other: Other) -> list[str]:
    """A warning if another start led to an optimum with lengths of another sum, see `plltool.optimise.polish`."""
    if np.isnan(other.lnl):
        return []
    return [
        f"lnL has two optima in the branch lengths: {lnl:.2f} with a sum of {tree.lengths.sum():.4g}, which is kept,"
        f" and about {other.lnl:.2f} with a sum of {other.length:.4g}"
    ]


def remarks_on_lengths(tree: Tree) -> list[str]:
    """A warning if all branches have the default length; branches that resolve a multifurcation do not count."""
    own = tree.lengths[tree.lengths != MIN_BRANCH_LENGTH]
    if not own.size or np.any(own != DEFAULT_BRANCH_LENGTH):
        return []
    return [f"all branch lengths are {DEFAULT_BRANCH_LENGTH}, the default; the tree may have no branch lengths"]


def remarks_on_values(models: Sequence[Model]) -> list[str]:
    """A warning for each model whose free parameters have no values, for runs that optimise none."""
    remarks = []
    for model in models:
        free = [group for group in model.free_parameters if group != SCALER]
        if free:
            listed = " and ".join(filter(None, (", ".join(free[:-1]), free[-1])))
            used = shorten_model(model.to_string())
            remarks.append(f"{model.spec.shown} has no values for {listed}; it is used as {used}")
    if any(SCALER in model.free_parameters for model in models):
        remarks.append("scalers of the branch lengths of partitions have no values; 1 is used")
    return list(dict.fromkeys(remarks))


MAX_SYMMETRY_TAXA = 1000  # whose pairs are tested for symmetry
MAX_SYMMETRY_WORK = 10**12  # products of indicators that the tests may take, about ten seconds on one core
SATURATED_SHARE = 0.9  # of the differences between unrelated sequences, from which on data are saturated
FEW_SITES = 20  # all of which may vary by chance
TESTS = ("symmetry", "marginal symmetry", "internal symmetry")  # of `compare_pairs`

_TAXON_CHUNK, _SITE_CHUNK = 32, 4096  # whose pairs of states are counted together


def compare_pairs(alignment: Alignment) -> tuple[dict[str, dict[str, Any]], float | None] | None:
    """Matched-pairs tests of all pairs of sequences, on the sites where both have one state, and saturation.

    The tests are those of symmetry, marginal and internal symmetry (Naser-Khdour et al. 2019): the numbers of pairs
    with a p-value below 5 % and with another one, and the p-value of the pair that differs most, None if the test
    cannot be made. Saturation is the median share of sites in which sequences differ, relative to unrelated sequences;
    None without any. There is neither for fewer than two taxa, and where it would take long: see MAX_SYMMETRY_TAXA and
    MAX_SYMMETRY_WORK.
    """
    n_taxa, n_states = alignment.n_taxa, alignment.states.n_states
    work = n_taxa**2 * n_states**2 * alignment.n_sites
    if not 2 <= n_taxa <= MAX_SYMMETRY_TAXA or work > MAX_SYMMETRY_WORK:
        return None
    found, differing = [], []
    for pairs in _count_pairs(alignment):
        found.append(facts.p_values(*facts.symmetry_statistics(pairs)))
        n_both, n_same = pairs.sum(axis=(1, 2)), np.trace(pairs, axis1=1, axis2=2)
        differing.append(np.where(n_both > 0, 1.0 - n_same / np.maximum(n_both, 1.0), np.nan))
    values, shares = np.concatenate(found), np.concatenate(differing)
    known = shares[np.isfinite(shares)]
    most = values[np.nanargmax(shares)] if len(known) else np.full(3, np.nan)
    columns = np.sum(values < SIGNIFICANCE, axis=0), np.sum(values >= SIGNIFICANCE, axis=0), most
    rows = zip(*(nan_to_null(column.tolist()) for column in columns), strict=True)
    keys = ("significant", "others", "p_value")
    tests = {name: dict(zip(keys, row, strict=True)) for name, row in zip(TESTS, rows, strict=True)}
    frequencies = facts.shared_frequencies(alignment)
    unrelated = 1.0 - frequencies @ frequencies
    return tests, float(np.median(known) / unrelated) if len(known) and unrelated > 0 else None


def remarks_on_saturation(name: str, share: float) -> list[str]:
    """A warning if sequences are almost as different as unrelated ones."""
    if not share >= SATURATED_SHARE:
        return []
    found = f"most sequences differ in {100 * share:.0f} % as many sites as unrelated ones"
    return [f"{name}{found}: the data are saturated, and deep branches are uncertain"]


def remarks_on_data(data: Dataset, models: Sequence[Model], brlen: str) -> list[str]:
    """Warnings of too few or too many sites, of a lack of constant sites, and of composition; a line each."""
    n_sites = sum(part.n_sites for part in data.parts)
    n_lengths = (2 * data.n_sequences - 3) * (len(models) if brlen == UNLINKED else 1)
    n_parameters = n_lengths + describe_parameters(models)["n_free_parameters"]
    remarks = []
    if n_parameters > n_sites:
        found = f"found {n_parameters} free parameters, branch lengths included, for {count(n_sites, 'site')}"
        remarks.append(f"{data.source}: {found}; lengths and models will be uncertain")
    if n_sites * MIN_BRANCH_LENGTH > 1:
        found = f"one change at {n_sites} sites is a length of {1 / n_sites:.2g}, below the least length"
        remarks.append(f"{data.source}: {found} {MIN_BRANCH_LENGTH:g}; such branches are too long")
    for part, model in zip(data.parts, models, strict=True):
        if not data.constant_sites:
            remarks += _remarks_on_constant_sites(part, model)
        remarks += _remarks_on_states(part)
    for part in data.parts:
        remarks += _remarks_on_composition(facts.without_root(part.alignment), part.name)
    return remarks


def refuse_invariable(spec: ModelSpec, part: Part, added: Sequence[int]) -> None:
    """Raise InputError for a column that may be invariable where the model says that all of them vary.

    `added` are the numbers of constant sites that were added, if there are any.
    """
    if spec.ascertainment is not None and added:
        found = f"found constant sites to add under model {spec}, whose +ASC says that all sites vary"
        raise InputError(f"{part.alignment.source}: {found}; expected one of the two")
    if spec.ascertainment is None or spec.ascertainment.kind != "lewis":
        return
    columns = part.sites[facts.may_be_invariable(part.alignment)]
    if len(columns):
        found = f"found {count(len(columns), 'column')} in which all taxa have or may have the same state"
        where = f"{_where(part.alignment, part.name and show_name(part.name))}{found}, first column {columns.min() + 1}"
        raise InputError(f"{where}; expected variable columns only for model {spec.shown}")


def _remarks_on_constant_sites(part: Part, model: Model) -> list[str]:
    """A hint at --constant-sites and +ASC for SNPs and morphology of which only variable sites were taken."""
    kind = part.alignment.states.name
    if model.spec.ascertainment is not None or kind not in (DNA.name, MULTISTATE) or part.n_sites < FEW_SITES:
        return []
    if facts.may_be_invariable(part.alignment).any():
        return []
    hint = "if they are variable characters only, +ASC_LEWIS in the model corrects the lengths for it"
    if kind == DNA.name:
        adds = "" if part.name else "--constant-sites A,C,G,T adds the other sites, or "
        hint = f"if they are SNPs only, {adds}+ASC_LEWIS in the model corrects the lengths for it"
    return [f"{_where(part.alignment, part.name)}no site is constant; {hint}"]


def _remarks_on_states(part: Part) -> list[str]:
    """A hint at MULTI*_MK for characters that differ in their numbers of states."""
    if part.alignment.states.name != MULTISTATE:
        return []
    sets = part.alignment.states.state_sets
    told = sets & ~sets.all(axis=1, keepdims=True)  # an undetermined cell tells nothing
    highest = np.where(told.any(axis=1), sets.shape[1] - told[:, ::-1].argmax(axis=1), MIN_STATES)
    numbers = np.maximum(highest[part.alignment.codes].max(axis=0), MIN_STATES)
    if numbers.min() == numbers.max():
        return []
    found = f"characters of {numbers.min()} to {numbers.max()} states share one model"
    return [f"{_where(part.alignment, part.name)}{found}; MULTI*_MK gives each number of states a model of its own"]


def _where(alignment: Alignment, part: str) -> str:
    return f"{alignment.source}: {f'partition {part}: ' if part else ''}"


def _remarks_on_composition(alignment: Alignment, name: str) -> list[str]:
    """A warning of taxa whose composition differs at 5 %, corrected for the number of taxa (Bonferroni)."""
    shape = (alignment.states.n_states - 1) / 2
    critical = 2 * gamma_quantile(shape, 1 - SIGNIFICANCE / alignment.n_taxa)
    values = facts.composition(alignment)
    n_deviating = int(np.sum(values > critical))
    if not n_deviating:
        return []
    taxa, which = ("1 taxon differs", ":") if n_deviating == 1 else (f"{n_deviating} taxa differ", ", most of all")
    most = f"{which} {alignment.names[int(np.argmax(values))]}"
    what = "base composition" if alignment.states.name == DNA.name else "composition"
    found = f"{taxa} from the average in {what}{most}"
    return [f"{_where(alignment, name)}{found}; standard models assume that none does (details: plltool check)"]


def _count_pairs(alignment: Alignment) -> Iterator[FloatArray]:
    """For each taxon but the last the sites with each pair of states, beside each later one (later, states, states)."""
    n_taxa, n_sites, n_states = alignment.n_taxa, alignment.n_sites, alignment.states.n_states
    sets = alignment.states.state_sets
    single = np.where((sets.sum(axis=1) == 1)[:, None], sets, False).astype(np.float32)
    for first in range(0, n_taxa - 1, _TAXON_CHUNK):
        rows = alignment.codes[first:]
        n_rows = min(_TAXON_CHUNK, n_taxa - first)
        counts = np.zeros((n_rows * n_states, len(rows) * n_states))
        for start in range(0, n_sites, _SITE_CHUNK):
            codes = rows[:, start : start + _SITE_CHUNK]
            # (taxa * states, sites) 1 where a taxon has this one state; sums below 2^24 are exact
            tables = single[codes].swapaxes(1, 2).reshape(-1, codes.shape[1])
            own = tables[: n_rows * n_states]
            weighted = own if alignment.weights is None else own * alignment.weights[start : start + _SITE_CHUNK]
            counts += weighted @ tables.T
        met = counts.reshape(n_rows, n_states, len(rows), n_states)
        for taxon in range(min(n_rows, len(rows) - 1)):
            yield met[taxon, :, taxon + 1 :].swapaxes(0, 1)
