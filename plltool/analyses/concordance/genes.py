"""Trees of many genes, the tree of all of them together, and how far they agree: `genes`.

import plltool
found = plltool.genes("alignments/", "GTR+F+G4", seed=1)
print(found.search.newick, found.concordance.newick())
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike, fspath
from typing import Any, Unpack

from plltool.alignment.alignment import Sequences
from plltool.analyses.concordance.analysis import Concordance, concordance
from plltool.analyses.search.analysis import search
from plltool.analyses.selection.analysis import AUTOMATIC
from plltool.codec import saved
from plltool.constants import DEFAULT_LINKAGE, DEFAULT_SEED, GENE_STAGE, SITE_QUARTETS, VERSION
from plltool.engine.opencl.environment import child_environment
from plltool.errors import CheckpointError, InputError, check_kind, check_least
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.alignment_formats import format_fasta
from plltool.io.alignment_reader import join_alignments, read_folder
from plltool.io.checkpoint import Checkpoint
from plltool.io.files import Recorded, tabbed
from plltool.io.model_reader import read_model
from plltool.io.newick_writer import write_newick
from plltool.model.scheme import PartSpec, SiteRange
from plltool.processes.workers import Workers
from plltool.progress import Listener, Progress, announce, ignore, log
from plltool.reports.blocks import Row
from plltool.reports.shown import Shown
from plltool.reports.tree_blocks import Drawn
from plltool.run.inputs import AlignmentLike, as_data, resolve_inputs, resolve_scheme
from plltool.run.memory import plan_memory, share_hardware
from plltool.run.results import SearchResult
from plltool.run.rooting import OutgroupLike
from plltool.schema import Keys
from plltool.settings import takes_keywords
from plltool.tree.rooted import drop_root
from plltool.tree.topology import Tree
from plltool.tree_search.effort import SearchOptions

NAME = "gene-"  # and the number, from 1: what a gene is called in a checkpoint


@saved()
@dataclass(frozen=True, eq=False)
class Gene:
    """The tree of one gene.

    Attributes
    ----------
    tree : with the taxa that the gene has
    model, spec : the model with the values of its parameters, and without
    kept : whether it comes from a checkpoint
    """

    name: str
    source: str
    tree: Tree
    lnl: float
    model: str
    spec: str
    n_sites: int
    n_patterns: int
    kept: bool = False

    @property
    def n_taxa(self) -> int:
        return self.tree.n_taxa - self.tree.is_rooted


_GENE = Keys("name:str source:str n_taxa:int n_sites:int n_patterns:int lnl:float spec:str model:str tree:str")


@dataclass(frozen=True, eq=False, repr=False)
class GenesResult(Recorded, Shown):
    """Trees of genes, and the tree of all of them together.

    The columns of its table are name, source, n_taxa, n_sites, n_patterns, lnl, spec and model, of each gene.

    Attributes
    ----------
    genes : the genes, in the order of their names
    alignment : all genes side by side
    partitions : the columns of each gene and its model, as a partition file
    search : the search of the tree of the whole alignment, each gene being a part with a model of its own
    concordance : how far the gene trees and the sites agree with that tree
    seconds : wall time
    """

    genes: tuple[Gene, ...]
    alignment: Sequences
    partitions: str
    search: SearchResult
    concordance: Concordance
    seconds: float

    def __repr__(self) -> str:
        return f"<GenesResult: {len(self.genes)} genes, {self.alignment.n_taxa} taxa, lnL {self.search.lnl:.3f}>"

    def _drawn(self) -> Drawn | None:
        return self.concordance._drawn()

    def _rows(self) -> Sequence[Row]:
        names = "name", "source", "n_taxa", "n_sites", "n_patterns", "lnl", "spec", "model"
        return [{name: getattr(gene, name) for name in names} for gene in self.genes]

    def format_table(self) -> str:
        """A table separated by tabs, with a row for each gene in the order of the gene trees."""
        rows = [["Gene", "File", "Taxa", "Sites", "Patterns", "lnL", "Model"]]
        for own in self.genes:
            sizes = map(str, (own.n_taxa, own.n_sites, own.n_patterns))
            rows.append([own.name, own.source, *sizes, f"{own.lnl:.6f}", own.model])
        return tabbed(rows)

    @Keys("genes search concordance seconds version:str command:str?", genes=[_GENE])
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The genes, and the records of the search and of the concordance factors; `command` is the command line."""
        return {
            "genes": [
                {**row, "tree": write_newick(own.tree)} for row, own in zip(self._rows(), self.genes, strict=True)
            ],
            "search": self.search.as_record(command),
            "concordance": self.concordance.as_record(command),
        }

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool genes` writes, by the ends of their names; `command` is the command line."""
        rows = [row.decode("ascii") for row in self.alignment.rows]
        return {
            "genes.nwk": "".join(write_newick(gene.tree) + "\n" for gene in self.genes),
            "genes.tsv": self.format_table(),
            "genes.fasta": format_fasta(self.alignment.names, rows),
            "genes.part": self.partitions,
            **self.search.texts(command),
            **self.concordance.texts(command),
        }


@takes_keywords(HardwareSettings)
def genes(
    alignments: str | PathLike[str] | Mapping[str, AlignmentLike],
    model: str | None = None,
    *,
    data_type: str | None = None,
    names: str | None = None,
    seed: int = DEFAULT_SEED,
    options: SearchOptions | None = None,
    brlen: str = DEFAULT_LINKAGE,
    outgroup: OutgroupLike | None = None,
    quartets: int = SITE_QUARTETS,
    likelihood: bool = False,
    workers: int | None = None,
    listener: Listener = ignore,
    checkpoint: str | PathLike[str] | None = None,
    search_checkpoint: str | PathLike[str] | None = None,
    **hardware: Unpack[HardwareSettings],
) -> GenesResult:
    """Find the tree of each gene and the tree of all genes together, and compare them.

    The genes are searched side by side, each in a process of its own. The whole alignment has a part for each gene,
    with gaps for the taxa that the gene lacks. Its tree gets gene and site concordance factors.

    Parameters
    ----------
    alignments : a folder with an alignment of each gene in a file of its own, or alignments by the names of the genes
    model : of each gene, see `plltool.search`; "auto" chooses one for each. The parts have the models of the genes
    data_type, names : of the files, see `plltool.read_alignment`
    seed, options : of every search
    brlen, outgroup : of the search of the whole alignment, see `plltool.search`
    quartets, likelihood : how to compute site concordance factors, see `plltool.concordance`; `likelihood` needs a
        time-reversible model. Under others gene trees have roots, which play no part in concordance
    workers : number of genes that are searched at the same time; by default the number of threads, on a GPU 1
    listener : is called after every gene, and after every round of the last search
    checkpoint, search_checkpoint : folders that keep the genes that are done and the state of the last search. The same
        call continues from there. Remove them with `plltool.remove_checkpoint`. None keeps nothing
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Raises InputError if a file or the model cannot be used, or a checkpoint belongs to another run. It names the file.
    Raises DeviceError if the device cannot be used.
    """
    began = time.perf_counter()
    check_least("seed", seed, 0)
    asked = Hardware.of(**hardware)
    data = _read(alignments, data_type, names)
    source = fspath(alignments) if isinstance(alignments, (str, PathLike)) else "all genes"
    whole, ranges = join_alignments(data, source)
    log.info("genes: %d, with %d taxa and %d sites in all", len(data), whole.n_taxa, whole.n_sites)
    found = _find_genes(data, model, seed, options or SearchOptions(), likelihood, workers, asked, checkpoint, listener)
    scheme = tuple(
        PartSpec(read_model(gene.spec), gene.name, (SiteRange(*columns),), gene.source)
        for gene, columns in zip(found, ranges, strict=True)
    )
    cut, models = resolve_scheme(whole, scheme, brlen)
    shared: dict[str, Any] = {"seed": seed, "brlen": brlen, "outgroup": outgroup, "listener": listener, **hardware}
    result = search(cut, models, options=options, workers=workers, checkpoint=search_checkpoint, **shared)
    trees, shared = [drop_root(gene.tree) for gene in found], shared | {"quartets": quartets, "likelihood": likelihood}
    agreement = concordance(result.tree, trees, cut, list(result.models), **shared)
    lines = [f"{part.model}, {part.name} = {part.ranges[0]}\n" for part in scheme]
    return GenesResult(tuple(found), whole, "".join(lines), result, agreement, time.perf_counter() - began)


def _read(
    alignments: str | PathLike[str] | Mapping[str, AlignmentLike], data_type: str | None, names: str | None
) -> dict[str, Sequences]:
    if isinstance(alignments, (str, PathLike)):
        return read_folder(alignments, data_type, names)
    check_kind("alignments", alignments, Mapping, "a folder, or alignments by the names of the genes")
    found = {}
    for name in sorted(alignments):
        check_kind("gene", name, str, "the name of a gene")
        own = as_data(alignments[name])
        if not isinstance(own, Sequences):
            raise InputError(f"gene {name!r}: found an encoded alignment, expected a file, a mapping, or Sequences")
        if own.column_weights is not None:
            what = "found constant sites added, or weights of columns"
            raise InputError(f"gene {name!r}: {what}, expected none where each gene is a part")
        found[name] = own
    if not found:
        raise InputError("genes: found no alignments, expected at least one")
    return found


def search_gene(
    model: str | None, likelihood: bool, settings: dict[str, Any], name: str, data: Sequences, report: object
) -> Gene:
    """The tree of a gene, in another process; it depends only on the gene and on the settings."""
    found = search(data, model, workers=1, **settings)
    spec = found.models[0].spec
    if found.tree.is_rooted and likelihood:
        wrong = f"{data.source}: model {spec.shown} is not time-reversible"
        raise InputError(f"{wrong}, but site concordance by likelihood needs a time-reversible model")
    return Gene(name, data.source, found.tree, found.lnl, found.model, str(spec), data.n_sites, found.n_patterns)


def _find_genes(
    data: Mapping[str, Sequences],
    model: str | None,
    seed: int,
    options: SearchOptions,
    likelihood: bool,
    workers: int | None,
    hardware: Hardware,
    checkpoint: str | PathLike[str] | None,
    listener: Listener,
) -> list[Gene]:
    """The trees of all genes: those that the checkpoint keeps, and new ones, which are saved there."""
    is_given = model is not None and model.upper().partition("+")[0] not in AUTOMATIC
    # all of them, so that no gene is refused after others were searched
    resolved = (resolve_inputs(own, model if is_given else None, rooted=True) for own in data.values())
    cut, models = max(resolved, key=lambda own: own[0].n_taxa * own[0].n_sites)
    shares = share_hardware(workers, len(data), cut.patterns, models, hardware)
    store = None
    if checkpoint is not None:
        place = plan_memory(cut.patterns, models, hardware)
        names = ", ".join(dict.fromkeys(own.names_are for own in data.values()))
        digest = hashlib.sha256()
        for name, own in data.items():
            digest.update("\0".join([name, *own.names]).encode("utf-8", "surrogateescape"))
            digest.update(b"\0".join(own.rows))
        identity = {"model": model, "seed": seed, "device": place.device_name, "options": asdict(options)}
        store = Checkpoint(checkpoint, {"version": VERSION, "names": names, "genes": digest.hexdigest(), **identity})
    announce(GENE_STAGE)
    began = time.perf_counter()
    found: list[Gene] = []
    shared = {"seed": seed, "options": options}
    searchers = [(search_gene, model, likelihood, shared | asdict(share)) for share in shares]
    environment = {} if shares[0].threads is None else child_environment(shares[0].threads)
    with store or nullcontext():
        for gene in _in_order(data, store, searchers, environment):
            found.append(gene)
            seconds, n_left = time.perf_counter() - began, len(data) - len(found)
            log.info("gene %s: %d taxa, lnL %.6f%s", gene.name, gene.n_taxa, gene.lnl, ", kept" * gene.kept)
            left = seconds / len(found) * n_left
            listener(Progress(GENE_STAGE, len(found), gene.lnl, 0, 0, seconds, len(data), left, None))
    return found


def _in_order(
    data: Mapping[str, Sequences],
    store: Checkpoint | None,
    searchers: Sequence[tuple[Any, ...]],
    environment: Mapping[str, str],
) -> Iterator[Gene]:
    """The genes in order; what is new is saved as soon as it and those before it are there.

    There is a process for each of the searchers.
    """
    places = {name: f"{NAME}{number}" for number, name in enumerate(data, start=1)}
    kept: dict[str, Gene] = {}
    for name, place in places.items():
        with suppress(CheckpointError):  # a warning tells of a damaged state; the gene is searched again
            if store is not None and (own := store.load(place, Gene)) is not None:
                kept[name] = replace(own, name=name, source=data[name].source, kept=True)
    new = [name for name in data if name not in kept]
    with Workers(partial, searchers[: len(new)], environment) as workers:
        made = workers.map(((name, data[name]) for name in new), lambda *_: None)
        for name, place in places.items():
            gene = kept.get(name) or next(made)
            if store is not None and not gene.kept:
                store.save(place, gene)
            yield gene
