"""The parsers that `fuzz.py` feeds, each with its first inputs and the tokens of its format."""

import gzip
import json
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from plltool.alignment.patterns import compress
from plltool.analyses.sampling.clock_choice import read_calibrations
from plltool.analyses.sampling.priors import parse_prior
from plltool.analyses.toolbox.report import report
from plltool.hardware import parse_hardware
from plltool.io.alignment_reader import read_alignment
from plltool.io.checkpoint import Checkpoint
from plltool.io.definition_reader import read_definitions
from plltool.io.files import read_record
from plltool.io.model_reader import read_model, read_paml_matrix
from plltool.io.newick import parse_newick
from plltool.io.newick_writer import write_newick
from plltool.io.partition_reader import read_structure
from plltool.io.table_reader import read_dates
from plltool.io.tree_files import read_constraint, read_gene_trees, read_tree, read_tree_set
from plltool.model.model_string import parse_model
from plltool.run.inputs import resolve_inputs
from plltool.run.rooting import as_outgroup

DATA = Path(__file__).resolve().parents[2] / "data"
NAMES = ("a", "b c", "d_e", "it's", "f")
ROWS = dict.fromkeys(NAMES, "ACGTTGCAAC" * 6)
PROTEINS = dict.fromkeys(NAMES, "ARNDCQEGHILKMFPSTWYV" * 3)
DIGITS = dict.fromkeys(NAMES, "0123012" * 6)


def as_bytes(given: Any) -> Any:
    """A text, or a list or a table of texts, each letter of which is a byte."""
    if isinstance(given, dict):
        return {name: as_bytes(own) for name, own in given.items()}
    return given.encode("latin-1") if isinstance(given, str) else list(map(as_bytes, given))


INPUTS = tomllib.loads(Path(__file__).with_name("fuzz_inputs.toml").read_text(encoding="utf-8"))
GIVEN = SimpleNamespace(**as_bytes(INPUTS))
COMMON = [*GIVEN.common, b"9" * 5000]

STATE_SETS = GIVEN.nexus.replace(b"A-?T", b"{AG}-(C,T){A-}").replace(b"interleave", b"missing=x")
STANDARD = GIVEN.nexus.replace(b"datatype=dna", b"datatype=standard symbols='ACGTRYKM'").replace(b"....", b"{AC}(GT)..")
SETS = GIVEN.sets, GIVEN.file_sets, GIVEN.sets.replace(b"mrbayes", b"sets")
RECORD = json.dumps(
    dict.fromkeys(("lnl", "n_taxa", "n_sites", "n_patterns", "seconds", "seed", "brlen", "layout", "counters"), 1)
    | {"model": "GTR+G4", "tree": "(a,b,c);", "start_lnls": [1], "parts": [{"name": "x"}], "parameters": {}}
    | {"warnings": [], "version": "0", "command": None, "device": "numpy", "reason": "", "driver": "", "software": {}}
).encode()

SHOWN_PARAMETERS = {"spec": "GTR+FO+G4", "frequencies": {"A": 0.3}, "rates": {"AC": 1.5}, "alpha": 0.5, "pinv": None}
SHOWN_PARAMETERS |= {"category_rates": [0.5, 1.5], "category_weights": [0.5, 0.5], "n_free_parameters": 9}
SHOWN_PART = {"name": "x", "sites": "1-9", "n_sites": 9, "n_patterns": 5, "model": "GTR", "scaler": 1.0, "lnl": -9.0}
SHOWN_PART |= {"newick": None, "parameters": SHOWN_PARAMETERS}
SHOWN_EVENT = {"stage": "spr", "round": 1, "lnl": -9.5, "moves": 1, "seconds": 0.1, "start": 0}
SHOWN_RECORD = json.dumps(
    json.loads(RECORD)
    | {"tree": "(a:1,b:1,(c:1,d:1):1);", "start_lnls": [-9.0], "lnl": -9.0, "parts": [SHOWN_PART], "n_sites": 9}
    | {"parameters": SHOWN_PARAMETERS, "layout": {}, "trace": [SHOWN_EVENT], "start_distances": [0]}
    | {"climb_distances": [[0]]}
).encode()


class BrokenError(Exception):
    """A value is another one after it has been written and read."""


@dataclass(frozen=True)
class Parser:
    """A parser to be fuzzed."""

    run: Callable[[bytes, Path], object]  # called with the input and the path of a file for it
    seeds: list[bytes]  # the first corpus
    tokens: list[bytes] = field(default_factory=list)  # tokens that mutations insert, in addition to COMMON


def of_file(read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """What reads a file, as a function of its content and its path."""

    def run(content: bytes, path: Path) -> object:
        path.write_bytes(content)
        return read(path)

    return run


def text_of(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


@of_file
def run_alignment(path: Path) -> object:
    data, _ = resolve_inputs(read_alignment(path), None)
    return [compress(part).n_patterns for part in data.alignments]


def run_newick(content: bytes, _path: Path) -> object:
    tree = parse_newick(text_of(content), "the tree", resolve_seed=1)
    again = parse_newick(write_newick(tree), "the same tree", tree.names)
    if write_newick(again) != write_newick(tree):
        raise BrokenError("the tree is another one after it has been written and read")
    return tree.n_taxa


def run_model(content: bytes, _path: Path) -> object:
    spec = parse_model(text_of(content))
    if parse_model(str(spec)) != spec:
        raise BrokenError(f"the model {spec} is another one after it has been written and read")
    own = dict.fromkeys(NAMES, "".join(spec.symbols))
    data = {"DNA": ROWS, "protein": PROTEINS, "multistate": DIGITS}.get(spec.data, own)
    text = f"{spec}, stems = 1:2" if spec.data == "doublet" else spec
    model = resolve_inputs(data, text, rooted=True)[1][0]
    model.components()
    return model.n_free_parameters


@of_file
def run_scheme(path: Path) -> object:
    data, models = resolve_inputs(ROWS, str(path))
    return len(data.parts), [str(model.spec) for model in models]


@of_file
def run_paml(path: Path) -> object:
    return len(resolve_inputs(PROTEINS, f"GTR20{{{path}}}")[1]), len(read_paml_matrix(str(path))[0])


@of_file
def run_structure(path: Path) -> object:
    row = "ACGU" * 25
    n_sites = read_structure(str(path))[2]
    data, _ = resolve_inputs(dict.fromkeys(NAMES, row[:n_sites]), f"S16B, stems = pairs{{{path}}}")
    return data.parts[0].columns.shape


@of_file
def run_matrix(path: Path) -> object:
    spec = read_model(f"MATRIX{{{path}}}")
    if read_model(str(spec)) != spec:
        raise BrokenError(f"the model {spec} is another one after it has been written and read")
    data = dict.fromkeys(NAMES, spec.symbols[0] * 3)
    return resolve_inputs(data, spec, rooted=True)[1][0].components().n_states


@of_file
def run_definitions(path: Path) -> object:
    found = []
    for name, definition in read_definitions(str(path)).items():
        spec = read_model(f"{name}{{{path}}}" if definition.kind == "model" else f"LG+{name}{{{path}}}")
        if read_model(str(spec)) != spec:
            raise BrokenError(f"the model {spec} is another one after it has been written and read")
        data = PROTEINS if spec.data == "protein" else ROWS
        found.append(resolve_inputs(data, spec, rooted=True)[1][0].components().n_states)
    return found


def in_report(ending: str) -> Callable[[bytes, Path], object]:
    """Make a report of a run that left one file; the others of the folder belong to other parsers."""

    def run(content: bytes, path: Path) -> object:
        prefix = path.with_name(f"run-{ending}")
        path.with_name(f"{prefix.name}.{ending}").write_bytes(content)
        return len(report(prefix).html) > 0

    return run


@of_file
def run_table(path: Path) -> object:
    given = read_alignment(path)
    if given.table is None:
        return given.n_sites
    data, _ = resolve_inputs(given, "MATRIX{north|south-west|east}{1/2/3}")
    return [compress(part).n_patterns for part in data.alignments]


@of_file
def run_record(path: Path) -> object:
    read_record(path)
    return resolve_inputs(ROWS, str(path))[0].n_sites


def run_checkpoint(content: bytes, path: Path) -> object:
    """The identity of a run and the state of a climb, from one input."""
    folder = path.parent / "checkpoint"
    folder.mkdir(exist_ok=True)
    run, _, state = content.partition(b"\n--\n")
    (folder / "run.json").write_bytes(run)
    (folder / "climb-1.state").write_bytes(state)
    return sorted(Checkpoint(folder, {"model": "JC"}).load("climb-1", dict) or ())


def checkpoint_seed() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder, {"model": "JC"})
        content = checkpoint._encode({"lengths": np.ones(3), "name": np.array("x")})
        return (Path(folder) / "run.json").read_bytes() + b"\n--\n" + content


def run_outgroup(content: bytes, _path: Path) -> object:
    outgroup = as_outgroup(text_of(content).split("\n"), NAMES)
    tree = parse_newick("((a,'b c'),d_e,('it''s',f));", "the tree", NAMES)
    return write_newick(tree, outgroup=outgroup)


def run_prior(content: bytes, _path: Path) -> object:
    prior = parse_prior(text_of(content), "it", ("exponential", "uniform", "dirichlet", "gammadir"))
    if parse_prior(str(prior), "it", (str(prior).split("(")[0],)) != prior:
        raise BrokenError(f"the prior {prior} is another one after it has been written and read")
    return prior


def paml_seed() -> bytes:
    rows = [" ".join(f"{1 + (i * j) % 7 / 10}" for j in range(i)) for i in range(1, 20)]
    return ("\n".join(rows) + "\n\n" + " ".join(["0.05"] * 20) + "\n").encode()


def data_files(*names: str) -> list[bytes]:
    return [(DATA / name).read_bytes() for name in names]


ALIGNMENTS = [
    GIVEN.fasta,
    GIVEN.phylip,
    GIVEN.nexus,
    gzip.compress(GIVEN.fasta, mtime=0),
    b"4 4\nabcdefghijACGT\nb         ACGT\nc         ACGT\nd         ACGT\n",
]

READERS: dict[str, tuple[Callable[[bytes, Path], object], list[bytes]]] = {  # of each parser, and the first inputs
    "fasta": (run_alignment, [GIVEN.fasta, *data_files("hard.fasta")]),
    "phylip": (run_alignment, [GIVEN.phylip, ALIGNMENTS[4], *data_files("primates.phy")]),
    "nexus": (run_alignment, [GIVEN.nexus, STATE_SETS, GIVEN.mixed, STANDARD]),
    "blocks": (run_alignment, GIVEN.blocks),
    "alignment": (run_alignment, ALIGNMENTS),
    "vcf": (run_alignment, [GIVEN.vcf, gzip.compress(GIVEN.vcf, mtime=0)]),
    "catg": (run_alignment, [GIVEN.catg]),
    "newick": (run_newick, [*GIVEN.trees, *data_files("simulated.nwk")]),
    "named_newick": (
        lambda content, _: parse_newick(text_of(content), "the tree", NAMES).n_edges,
        [GIVEN.trees[0], GIVEN.part_trees[1]],
    ),
    "model": (run_model, GIVEN.models),
    "partition": (run_scheme, [GIVEN.lines, GIVEN.codon_lines, GIVEN.pair_lines, *SETS, RECORD]),
    "paml": (run_paml, [paml_seed()]),
    "structure": (run_structure, GIVEN.structure),
    "matrix": (run_matrix, GIVEN.matrix),
    "definitions": (
        run_definitions,
        [GIVEN.definitions, GIVEN.more_definitions + b"model own = " + paml_seed() + b"; end;"],
    ),
    "report": (in_report("json"), [SHOWN_RECORD]),
    "jplace": (in_report("jplace"), [GIVEN.jplace]),
    "concordance": (in_report("cf.json"), [GIVEN.concordance]),
    "calibrations": (
        of_file(lambda path: [str(own) for own in read_calibrations(path, tuple("abcd"), ((0.0, 0.0),) * 4)]),
        GIVEN.calibrations,
    ),
    "dates": (of_file(lambda path: [row.date for row in read_dates(path)]), GIVEN.dates),
    "table": (run_table, GIVEN.table),
    "record": (run_record, [RECORD]),
    "part_trees": (of_file(lambda path: read_tree(path, NAMES, unlinked=True).lengths.shape), GIVEN.part_trees),
    "tree_files": (
        of_file(lambda path: len(read_tree_set([path]).names)),
        [GIVEN.trees[0], *GIVEN.trees[3:], GIVEN.nexus_trees, GIVEN.sampled_trees],
    ),
    "gene_trees": (
        of_file(lambda path: len(read_gene_trees([path], NAMES)[0].splits)),
        [*GIVEN.trees, b"(a,(b_c,d_e));\n((a,f),b_c);"],
    ),
    "constraint": (of_file(lambda path: read_constraint(path, NAMES) is None), GIVEN.constraints),
    "checkpoint": (run_checkpoint, [checkpoint_seed(), checkpoint_seed().split(b"\n--\n")[0] + b"\n--\n{}\n"]),
    "outgroup": (run_outgroup, GIVEN.outgroup),
    "prior": (run_prior, GIVEN.prior),
    "hardware": (lambda content, _: parse_hardware(text_of(content)), GIVEN.hardware),
}
WORDS = {  # further tokens, which several parsers share
    **dict.fromkeys(("nexus", "alignment"), GIVEN.words),
    **dict.fromkeys(("model", "definitions"), GIVEN.model_words),
    "partition": [*GIVEN.words, *GIVEN.model_words],
}
PARSERS = {
    name: Parser(run, seeds, [*GIVEN.tokens.get(name, ()), *WORDS.get(name, ())])
    for name, (run, seeds) in READERS.items()
}
