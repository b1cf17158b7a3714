"""The parsers that `fuzz.py` feeds, each with its first inputs and the tokens of its format."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from plltool.alignment.patterns import compress
from plltool.analyses.sampling.priors import parse_prior
from plltool.analyses.toolbox.report import report
from plltool.hardware import parse_hardware
from plltool.io.alignment_reader import read_alignment
from plltool.io.checkpoint import Checkpoint
from plltool.io.date_reader import read_dates
from plltool.io.definition_reader import read_definitions
from plltool.io.model_reader import read_model, read_paml_matrix
from plltool.io.newick import parse_newick
from plltool.io.newick_writer import write_newick
from plltool.io.part_columns import read_structure
from plltool.io.part_trees import read_constraint, read_tree
from plltool.io.record import read_record
from plltool.io.tree_files import read_gene_trees, read_tree_set
from plltool.model.model_string import parse_model
from plltool.run.inputs import resolve_inputs
from plltool.run.rooting import as_outgroup

DATA = Path(__file__).resolve().parents[1] / "data"
NAMES = ("a", "b c", "d_e", "it's", "f")
ROWS = dict.fromkeys(NAMES, "ACGTTGCAAC" * 6)
PROTEINS = dict.fromkeys(NAMES, "ARNDCQEGHILKMFPSTWYV" * 3)
DIGITS = dict.fromkeys(NAMES, "0123012" * 6)

COMMON = [
    b"",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x8c\xb3",
    b"'",
    b'"',
    b"''",
    b"[",
    b"]",
    b"\r",
    b"\n",
    b"\t",
    b" ",
    b"\x0c",
    b"\xe2\x80\xa8",
    b"-",
    b"0",
    b"1",
    b"-1",
    b"1e999",
    b"nan",
    b"inf",
    b"1e-400",
    b"99999999999999999999",
    b"9" * 5000,
    b"1_0",
    b"\xd9\xa1",
    b"{",
    b"}",
    b"(",
    b")",
    b",",
    b";",
    b":",
    b"=",
    b"/",
    b"\\",
    b"*",
]
NEXUS = b"""#NEXUS
begin data; dimensions ntax=4 nchar=8; format datatype=dna gap=- missing=? matchchar=. interleave;
matrix
'a b' ACGT [x [y]]
b ....
c A-?T
d RYKM
'a b' ACGT
b AC.T
c ACGT
d ACGT
; end;
begin sets; charset one = 1-4; charset two = 5-.\\2 6; charpartition mine = GTR+G4: one, HKY: two; end;
"""
BLOCKS = [
    b"CLUSTAL W\n\na ACGT 4\nb A-GT 3\nc ACGA 4\n  *  *\n\na AC\nb AC\nc AC\n",
    b"# STOCKHOLM 1.0\n#=GF ID x\na ACGT\nb A.GT\nc ACGA\n#=GC SS ....\n//\n",
    b" x.msf MSF: 4 Type: N ..\n Name: a Len: 4\n//\n\na ACGT\nb A~GT\nc ACGA\n",
]
PHYLIP = b"4 8 I\na  ACGT\nb  AC-T\nc  ACNT\nd  ACGA\n\n1\nACGT\nACGT\nA.GT\nACGT\n"
VCF = b"""##fileformat=VCFv4.2
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\tc\td
1\t7\t.\tA\tC,T\t.\t.\t.\tGT:DP\t0/1:3\t0|2\t1/1\t./.
1\t8\trs1\tG\tGA\t.\tPASS\t.\tGT\t0/1\t0/0\t1/1\t.
1\t9\t.\tC\t.\t.\t.\tX=1\tGT\t0/0\t.|.\t0|0\t0/0
"""
FASTA = b">a one\nACGTACGT\n>b\nACGTRYKM\n>c\nacgu-?NX\n>d\nACGT\nACGT\n"
LINES = b"GTR+F+G4, one = 1-20\\3, 22\nDNA, two = 2-20\\3\n# comment\nHKY{1/2}+FU{.1/.2/.3/.4}, rest=21,23-.\n"
PAIR_LINES = b"S16+G4, stems = 1:30 2:29, 28:3\nS16A{1/2/3/1/4}, b = 4:27\nJC, loops = 31-.\n"
CODON_LINES = b"CODON2, gene = 1-30\nM0+F1X4, rest = 31-60\n"
STATE_SETS = NEXUS.replace(b"A-?T", b"{AG}-(C,T){A-}").replace(b"interleave", b"missing=x")
MIXED = b"""#NEXUS
begin data; dimensions ntax=4 nchar=8; format datatype=mixed(Standard:1-4, DNA:5-8) interleave gap=- missing=?;
matrix
a 01{12}-
b 0?(01)1
c 1023
d 1100
a ACGT
b AC{AG}T
c AC-T
d ACGA
; end;
"""
STANDARD = NEXUS.replace(b"datatype=dna", b"datatype=standard symbols='ACGTRYKM'").replace(b"....", b"{AC}(GT)..")
FILE_SETS = b"""#nexus
begin sets; charset a = 'the mapping given': DNA, 1-30\\2; charset b = DNA, 2-30\\2 31-.; partition p = 2: a, b; end;
"""
SETS = b"""#nexus
begin mrbayes; charset a = 1-30\\2; charset b = 2-30\\2 31-.; charset c = a, 2; charset d = all; partition p = 2: a, b;
  partition q = 2: c, remainder; set autoclose=yes partition=q; end;
"""
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

JPLACE = b"""{"tree": "(a:1{0},'b{7}':1{1},(c:1{2},d:1{3}):1{4});",
 "fields": ["edge_num", "likelihood", "like_weight_ratio", "distal_length", "pendant_length"], "placements": [
 {"p": [[4, -9.5, 0.75, 0.1, 0.2], [0, -11, 0.25, 0.0, 0.1]], "n": ["q", "r"]},
 {"p": [[1, -9, 1, 0, 0]], "nm": [["s", 2]]}]}
"""
CONCORDANCE = b"""{"tree": "(a:1,b:1,(c:1,d:1)75:1);", "columns": {"gCF": "of trees", "sCF": "of sites", "gN": "trees"},
 "kinds": {"gcf": {"replicates": 4}, "scf": {"replicates": 100}}, "seed": 1, "command": "x",
 "branches": [{"id": 1, "taxa": ["c", "d"], "columns": {"gCF": 75.0, "sCF": 45.5, "gN": 4.0}}]}
"""


class BrokenError(Exception):
    """A value is another one after it has been written and read."""


@dataclass(frozen=True)
class Parser:
    """A parser to be fuzzed.

    Attributes
    ----------
    run : called with the input and the path of a file for it
    seeds : the first corpus
    tokens : tokens that mutations insert, in addition to COMMON
    """

    run: Callable[[bytes, Path], object]
    seeds: list[bytes]
    tokens: list[bytes] = field(default_factory=list)


def text_of(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def run_alignment(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    data, _ = resolve_inputs(read_alignment(path), None)
    return [compress(part).n_patterns for part in data.alignments]


def run_newick(content: bytes, _path: Path) -> object:
    tree = parse_newick(text_of(content), "the tree", resolve_seed=1)
    again = parse_newick(write_newick(tree), "the same tree", tree.names)
    if write_newick(again) != write_newick(tree):
        raise BrokenError("the tree is another one after it has been written and read")
    return tree.n_taxa


def run_named_newick(content: bytes, _path: Path) -> object:
    return parse_newick(text_of(content), "the tree", NAMES).n_edges


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


def run_scheme(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    data, models = resolve_inputs(ROWS, str(path))
    return len(data.parts), [str(model.spec) for model in models]


def run_paml(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    return len(resolve_inputs(PROTEINS, f"GTR20{{{path}}}")[1]), len(read_paml_matrix(str(path))[0])


def run_structure(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    row = "ACGU" * 25
    structure = read_structure(str(path))
    data, _ = resolve_inputs(dict.fromkeys(NAMES, row[: structure.n_sites]), f"S16B, stems = pairs{{{path}}}")
    return data.parts[0].columns.shape


def run_matrix(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    spec = read_model(f"MATRIX{{{path}}}")
    if read_model(str(spec)) != spec:
        raise BrokenError(f"the model {spec} is another one after it has been written and read")
    data = dict.fromkeys(NAMES, spec.symbols[0] * 3)
    return resolve_inputs(data, spec, rooted=True)[1][0].components().n_states


def run_definitions(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    found = []
    for name, definition in read_definitions(str(path)).items():
        spec = read_model(f"{name}{{{path}}}" if definition.kind == "model" else f"LG+{name}{{{path}}}")
        if read_model(str(spec)) != spec:
            raise BrokenError(f"the model {spec} is another one after it has been written and read")
        data = PROTEINS if spec.data == "protein" else ROWS
        found.append(resolve_inputs(data, spec, rooted=True)[1][0].components().n_states)
    return found


def run_report(content: bytes, path: Path) -> object:
    return show_in_report(content, path, "json")


def run_jplace(content: bytes, path: Path) -> object:
    return show_in_report(content, path, "jplace")


def run_concordance(content: bytes, path: Path) -> object:
    return show_in_report(content, path, "cf.json")


def show_in_report(content: bytes, path: Path, ending: str) -> bool:
    """Make a report of a run that left one file; the others of the folder belong to other parsers."""
    prefix = path.with_name(f"run-{ending}")
    path.with_name(f"{prefix.name}.{ending}").write_bytes(content)
    return len(report(prefix).html) > 0


def run_dates(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    return [row.date for row in read_dates(path)]


def run_table(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    given = read_alignment(path)
    if given.table is None:
        return given.n_sites
    data, _ = resolve_inputs(given, "MATRIX{north|south-west|east}{1/2/3}")
    return [compress(part).n_patterns for part in data.alignments]


def run_record(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    read_record(path)
    return resolve_inputs(ROWS, str(path))[0].n_sites


def run_part_trees(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    return read_tree(path, NAMES, unlinked=True).lengths.shape


def run_tree_files(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    return len(read_tree_set([path]).names)


def run_gene_trees(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    return len(read_gene_trees([path], NAMES)[0].splits)


def run_constraint(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    return read_constraint(path, NAMES) is None


def run_checkpoint(content: bytes, path: Path) -> object:
    """The identity of a run and the state of a climb, from one input."""
    folder = path.parent / "checkpoint"
    folder.mkdir(exist_ok=True)
    run, _, state = content.partition(b"\n--\n")
    (folder / "run.json").write_bytes(run)
    (folder / "climb-1.state").write_bytes(state)
    return sorted(Checkpoint(folder, {"model": "JC"}).load("climb-1") or ())


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


def run_hardware(content: bytes, _path: Path) -> object:
    return parse_hardware(text_of(content))


def paml_seed() -> bytes:
    rows = [" ".join(f"{1 + (i * j) % 7 / 10}" for j in range(i)) for i in range(1, 20)]
    return ("\n".join(rows) + "\n\n" + " ".join(["0.05"] * 20) + "\n").encode()


def data_files(*names: str) -> list[bytes]:
    return [(DATA / name).read_bytes() for name in names]


WORDS = [
    b"begin",
    b"end;",
    b"matrix",
    b"dimensions",
    b"ntax=",
    b"nchar=",
    b"format",
    b"datatype=",
    b"mixed(dna:1-4,protein:5-8)",
    b"charset",
    b"charpartition",
    b"remainder",
    b"partition",
    b"#NEXUS",
    b"interleave",
    b"gap=",
    b"matchchar=",
    b"protein",
    b"standard",
    b"symbols='0~3'",
    b"mixed(standard:1-4,dna:5-8)",
    b"{01}",
    b"{AG}",
    b"(CT)",
    b"x.phy:",
]
MODEL_WORDS = [
    b"GTR",
    b"HKY",
    b"CODON3_",
    b"MG2K",
    b"LG",
    b"LG4X",
    b"GTR20",
    b"+G",
    b"+R4",
    b"+I",
    b"+IU{",
    b"+FU{",
    b"+F",
    b"+C20",
    b"+B",
    b"010020",
    b"{0.1/0.2/0.3/0.4}",
    b"{0.5,1,0.5,2}",
    b"+G999",
    b"+ASC",
    b"EX_EHO",
    b"DNA",
    b"AA",
    b"LGF",
    b"AUTO",
    b"MK",
    b"MKV",
    b"S16A",
    b"5:70",
    b"pairs{",
    b"MULTI*_MK",
    b"MULTI3_GTR",
    b"ORDERED",
    b"BIN",
]
MODELS = [
    b"GTR+FO+G4",
    b"HKY{2.0}+FU{.1/.2/.3/.4}+IU{.2}+GA8{.3}",
    b"CODON2_GY{0.2/3}+F3X4+G4",
    b"M2a{0.1/2/3}{0.5/0.3/0.2}+F1X4",
    b"010020+R2{.5/1.5}{.5/.5}",
    b"LG+C10+G4",
    b"LG4X",
    b"EX2{.4/.6}+I",
    b"GTR{1.2,3.4,0.8,1.1,4.1}+R2{.5,1,.5,1}+BU{2}",
    b"TIM2+I+R3",
    b"MK+G4",
    b"MULTI4_GTR{1/2/3/4/5/1}+FO",
    b"MULTI*_ORDERED+F",
    b"MATRIX{NSE}{1/0/2}+FU{0.5/0.3/0.2}",
    b"MATRIX{NSE}{1/0/2/3/1/0}",
    b"GT10{1/2/3/4/5/1}+FO",
    b"GT16+F+G2",
    b"S16A{1/2/3/1/4}+FO",
]
DEFINITIONS = b"""#NEXUS
begin models;
  model pair = MIX{LG+outer:0.6:0.4, JTT:1.2:0.6};
  model usual = pair+G4{0.5}; [a comment]
  frequency outer = 0.1 0.1 0.1 0.1 0.1 .05 .05 .05 .05 .05 .025 .025 .025 .025 .025 .025 .025 .025 .025 .025;
  frequency two = FMIX{outer:0.5, empirical, C10pi2};
end;
"""
MORE_DEFINITIONS = b"""#NEXUS
begin models;
  model base = 1 2 3 4 5 6 0.1 0.2 0.3 0.4;
  model bases = MIX{base, K80{2}+FU{0.1/0.2/0.3/0.4}};
"""
TREES = [
    b"((a:0.1,'b c':.2)x:1e-3,[c[d]]d_e,('it''s',f:3)80:.1);",
    b"(a,b,c);",
    b"((((a,b),c),d),e,f);\n(g,h,i);",
    b"(a:1,(b:2,(c:3,d:4)));",
    b"(((a)),b,(c,d,e,f));",
]
PART_TREES = [
    b"((a:1,'b c':2):3,d_e:1,('it''s':1,f:3):.1);\n(('b c':1,a:2):2,d_e:1,('it''s':2,f:3):.1);\n",
    b"((a,b_c),d_e,('it''s',f));",
]
NEXUS_TREES = b"""#NEXUS
begin taxa; dimensions ntax=4; taxlabels a 'b c' d_e f; end;
begin trees; translate 1 a, 2 'b c', 3 d_e, 4 f;
tree one = [&U] ((1:0.1,2:.2)90:.1,3:1,4:1e-2);
tree two = [&R] ((1,2),(3,4)); end;
"""
SAMPLED_TREES = b"""#NEXUS
[ID: 1]
[Param: tree]
begin trees;
   translate
       1 a,
       2 'b c',
       3 d_e,
       4 f;
   tree gen.0 = [&U] ((2:1.000000e-01,3:2.000000e-02):3.000000e-01,4:1.000000e-06,1:5.000000e-01);
   tree gen.20 = [&U] ((2:1.000000e-01,4:2.000000e-02):3.000000e-01,3:1.000000e-06,1:5.000000e-01);
end;
"""
ALIGNMENTS = [
    FASTA,
    PHYLIP,
    NEXUS,
    gzip.compress(FASTA, mtime=0),
    b"4 4\nabcdefghijACGT\nb         ACGT\nc         ACGT\nd         ACGT\n",
]

PARSERS = {
    "fasta": Parser(run_alignment, [FASTA, *data_files("hard.fasta")], [b">", b">a"]),
    "phylip": Parser(run_alignment, [PHYLIP, ALIGNMENTS[4], *data_files("primates.phy")], [b"4 8", b"I", b"S", b"."]),
    "nexus": Parser(run_alignment, [NEXUS, STATE_SETS, MIXED, STANDARD], WORDS),
    "blocks": Parser(run_alignment, BLOCKS, [b"CLUSTAL\n", b"# STOCKHOLM 1.0\n", b"MSF: 4", b"\n//", b"#=GR", b" 4\n"]),
    "alignment": Parser(run_alignment, ALIGNMENTS, [*WORDS, b">", b"4 8\n", b"\x1f\x8b"]),
    "vcf": Parser(
        run_alignment, [VCF, gzip.compress(VCF, mtime=0)], [b"0/1", b"1|0", b"./.", b"\tGT", b"\tA\tC,T", b"##"]
    ),
    "newick": Parser(run_newick, [*TREES, *data_files("simulated.nwk")], [b"(a,b)", b":1", b":-1", b"''"]),
    "named_newick": Parser(run_named_newick, [TREES[0], PART_TREES[1]], [b"(a,b)", b":1", b"b_c", b"'d e'"]),
    "model": Parser(run_model, MODELS, MODEL_WORDS),
    "partition": Parser(
        run_scheme,
        [LINES, CODON_LINES, PAIR_LINES, SETS, FILE_SETS, SETS.replace(b"mrbayes", b"sets"), RECORD],
        [*WORDS, *MODEL_WORDS, b"1-.\\3"],
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
        [DEFINITIONS, MORE_DEFINITIONS + b"model own = " + paml_seed() + b"; end;"],
        [b"model", b"frequency", b"MIX{", b"FMIX{", b"empirical", b"C10pi3", b":2:1", b"own", b"usual", *MODEL_WORDS],
    ),
    "report": Parser(
        run_report, [SHOWN_RECORD], [b"null", b"[]", b"{}", b'"tree"', b'"parts"', b"1e400", b"-1", b"\\ud800", b"NaN"]
    ),
    "jplace": Parser(
        run_jplace, [JPLACE], [b"{0}", b"{-1}", b'"p"', b'"nm"', b"null", b"[]", b"{}", b"1e400", b"NaN", b"'{1}'"]
    ),
    "concordance": Parser(
        run_concordance, [CONCORDANCE], [b"null", b"[]", b"{}", b'"gcf"', b'"scf"', b"1e400", b"-1", b'"taxa"', b"NaN"]
    ),
    "dates": Parser(
        run_dates,
        [
            b"name\tdate\na\t2011.5\nb\t2011-05-17\nc\t2011-XX-XX\nd\t?\n",
            b'strain,id,Date\n"a,b",1,[2011.2:2011.5]\nc,2,2011-05\n',
        ],
        [b"XX", b"2011-", b"[2011:", b":", b"]", b"-02-30", b"NA", b"date", b"name"],
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
    "part_trees": Parser(run_part_trees, PART_TREES, [b"(a,f)", b":1", b");\n"]),
    "tree_files": Parser(
        run_tree_files,
        [TREES[0], *TREES[3:], NEXUS_TREES, SAMPLED_TREES],
        [b"tree t = ", b"[&R]", b"[&U]", b"translate", b"utree"],
    ),
    "gene_trees": Parser(run_gene_trees, [*TREES, b"(a,(b_c,d_e));\n((a,f),b_c);"], [b"(a,f)", b":1", b");\n"]),
    "constraint": Parser(
        run_constraint, [b"((a,'b c'),(d_e,f));", b"((a,b_c),d_e,(it's,f));", b"(a,b_c,d_e,f);"], [b"(a,f)", b":1"]
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
        run_hardware, [b"numpy:vw=2", b"0:0:precision=single:threads=2:memory=1.5G"], [b"vw=", b"memory="]
    ),
}
