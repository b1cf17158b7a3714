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
    """A text, or a list of texts, each letter of which is a byte."""
    return given.encode("latin-1") if isinstance(given, str) else list(map(as_bytes, given))


INPUTS = tomllib.loads(Path(__file__).with_name("fuzz_inputs.toml").read_text(encoding="utf-8"))
GIVEN = SimpleNamespace(**{name: as_bytes(given) for name, given in INPUTS.items()})
COMMON = [*GIVEN.common, b"9" * 5000]

STATE_SETS = GIVEN.nexus.replace(b"A-?T", b"{AG}-(C,T){A-}").replace(b"interleave", b"missing=x")
STANDARD = GIVEN.nexus.replace(b"datatype=dna", b"datatype=standard symbols='ACGTRYKM'").replace(b"....", b"{AC}(GT)..")
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

PARSERS = {
    "fasta": Parser(run_alignment, [GIVEN.fasta, *data_files("hard.fasta")], [b">", b">a"]),
    "phylip": Parser(
        run_alignment, [GIVEN.phylip, ALIGNMENTS[4], *data_files("primates.phy")], [b"4 8", b"I", b"S", b"."]
    ),
    "nexus": Parser(run_alignment, [GIVEN.nexus, STATE_SETS, GIVEN.mixed, STANDARD], GIVEN.words),
    "blocks": Parser(
        run_alignment, GIVEN.blocks, [b"CLUSTAL\n", b"# STOCKHOLM 1.0\n", b"MSF: 4", b"\n//", b"#=GR", b" 4\n"]
    ),
    "alignment": Parser(run_alignment, ALIGNMENTS, [*GIVEN.words, b">", b"4 8\n", b"\x1f\x8b"]),
    "vcf": Parser(
        run_alignment,
        [GIVEN.vcf, gzip.compress(GIVEN.vcf, mtime=0)],
        [b"0/1", b"1|0", b"./.", b"\tGT", b"\tA\tC,T", b"##"],
    ),
    "catg": Parser(run_alignment, [GIVEN.catg], [b",1", b"0.5", b"1e-300", b"nan", b"\t", b"A"]),
    "newick": Parser(run_newick, [*GIVEN.trees, *data_files("simulated.nwk")], [b"(a,b)", b":1", b":-1", b"''"]),
    "named_newick": Parser(
        lambda content, _: parse_newick(text_of(content), "the tree", NAMES).n_edges,
        [GIVEN.trees[0], GIVEN.part_trees[1]],
        [b"(a,b)", b":1", b"b_c", b"'d e'"],
    ),
    "model": Parser(run_model, GIVEN.models, GIVEN.model_words),
    "partition": Parser(
        run_scheme,
        [
            GIVEN.lines,
            GIVEN.codon_lines,
            GIVEN.pair_lines,
            GIVEN.sets,
            GIVEN.file_sets,
            GIVEN.sets.replace(b"mrbayes", b"sets"),
            RECORD,
        ],
        [*GIVEN.words, *GIVEN.model_words, b"1-.\\3"],
    ),
    "paml": Parser(run_paml, [paml_seed()], [b"0.05", b"1e308"]),
    "structure": Parser(run_structure, [b"((.[.))]..<{}>\n"], [b"(", b"<", b">", b"((", b"))", b"."]),
    "matrix": Parser(
        run_matrix,
        [b"N north\nS\nE # x\nmatrix\n- 2 1\n1 - 1\n1 2 -\n", b"N\nS\nE\nmatrix\n- 2 1\n1 - 1\n1 3 -\n"],
        [b"matrix", b"1e-9", b"#"],
    ),
    "definitions": Parser(
        run_definitions,
        [GIVEN.definitions, GIVEN.more_definitions + b"model own = " + paml_seed() + b"; end;"],
        [
            b"model",
            b"frequency",
            b"MIX{",
            b"FMIX{",
            b"empirical",
            b"C10pi3",
            b":2:1",
            b"own",
            b"usual",
            *GIVEN.model_words,
        ],
    ),
    "report": Parser(
        in_report("json"),
        [SHOWN_RECORD],
        [b"null", b"[]", b"{}", b'"tree"', b'"parts"', b"1e400", b"-1", b"\\ud800", b"NaN"],
    ),
    "jplace": Parser(
        in_report("jplace"),
        [GIVEN.jplace],
        [b"{0}", b"{-1}", b'"p"', b'"nm"', b"null", b"[]", b"{}", b"1e400", b"NaN", b"'{1}'"],
    ),
    "concordance": Parser(
        in_report("cf.json"),
        [GIVEN.concordance],
        [b"null", b"[]", b"{}", b'"gcf"', b'"scf"', b"1e400", b"-1", b'"taxa"', b"NaN"],
    ),
    "calibrations": Parser(
        of_file(lambda path: [str(own) for own in read_calibrations(path, tuple("abcd"), ((0.0, 0.0),) * 4)]),
        [b"name,taxa,lower,upper,prior,offset\nx,a b,1,2,,\n", b"taxa\tprior\toffset\nroot\tgamma(2,1)\t3\n"],
        [b"root", b"normal(3,1)", b"uniform(1,2)", b"lower", b"1e9"],
    ),
    "dates": Parser(
        of_file(lambda path: [row.date for row in read_dates(path)]),
        [
            b"name\tdate\na\t2011.5\nb\t2011-05-17\nc\t2011-XX-XX\nd\t?\n",
            b'strain,id,Date\n"a,b",1,[2011.2:2011.5]\nc,2,2011-05\n',
        ],
        [b"b(", b"XX", b"2011-", b"[2011:", b":", b"]", b"-02-30", b"NA", b"date", b"name"],
    ),
    "table": Parser(
        run_table,
        [
            b"taxon\tplace\thome\na\tnorth\t?\nb\tnorth|east\t\nc\tsouth-west\teast\n",
            b'taxon,"the place"\na,north\n"b,c",east | north\nd,\n',
        ],
        [b"north", b"|", b",,", b"\t\t", b"\\n", b'","', b'""'],
    ),
    "record": Parser(run_record, [RECORD], [b"null", b"[[", b"{}", b'"model"', b"NaN", b"\\ud800"]),
    "part_trees": Parser(
        of_file(lambda path: read_tree(path, NAMES, unlinked=True).lengths.shape),
        GIVEN.part_trees,
        [b"(a,f)", b":1", b");\n"],
    ),
    "tree_files": Parser(
        of_file(lambda path: len(read_tree_set([path]).names)),
        [GIVEN.trees[0], *GIVEN.trees[3:], GIVEN.nexus_trees, GIVEN.sampled_trees],
        [b"tree t = ", b"[&R]", b"[&U]", b"translate", b"utree"],
    ),
    "gene_trees": Parser(
        of_file(lambda path: len(read_gene_trees([path], NAMES)[0].splits)),
        [*GIVEN.trees, b"(a,(b_c,d_e));\n((a,f),b_c);"],
        [b"(a,f)", b":1", b");\n"],
    ),
    "constraint": Parser(
        of_file(lambda path: read_constraint(path, NAMES) is None),
        [b"((a,'b c'),(d_e,f));", b"((a,b_c),d_e,(it's,f));", b"(a,b_c,d_e,f);"],
        [b"(a,f)", b":1"],
    ),
    "checkpoint": Parser(
        run_checkpoint,
        [checkpoint_seed(), checkpoint_seed().split(b"\n--\n")[0] + b"\n--\n{}\n"],
        [b"null", b"[]", b"{}", b"7", b"\n--\n"],
    ),
    "outgroup": Parser(run_outgroup, [b"a\nb c", b"a,b c", b"it's,f"], [b"a", b"b c", b"d_e"]),
    "prior": Parser(
        run_prior,
        [b"exponential(10)", b"gammadir(1,0.1,1,1)", b"dirichlet(1,2.5)", b" Uniform( 0 , 1 )"],
        [b"(", b")", b",", b"1e308", b"nan", b"inf", b"-0"],
    ),
    "hardware": Parser(
        lambda content, _: parse_hardware(text_of(content)),
        [b"numpy:vw=2", b"0:0:precision=single:threads=2:memory=1.5G"],
        [b"vw=", b"memory="],
    ),
}
