#!/usr/bin/env python3
"""Throws broken input at every parser, which must answer with a value or a PlltoolError, soon and in little memory.

    scripts/fuzz.py                                  all parsers, 20 s each
    scripts/fuzz.py newick model --seconds 300       two of them for longer
    scripts/fuzz.py partition --count 1000000 --seed 7 --output fuzz.json
    scripts/fuzz.py newick --replay failures/newick-1.bin

Inputs are mutations of a corpus: files of `data/` and the small ones below. An input that gets an answer of a new kind
joins the corpus. A failure is an exception that is no PlltoolError, an answer that takes longer than --limit, memory
that grows by more than --memory, a message that is no short line, or a value that does not survive being written and
read. Its input is shortened and kept in the folder --failures. The exit status is 1 if there was a failure.

Same seed and count, same inputs. Run it under `nice`; it uses one process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np

from plltool.alignment.patterns import compress
from plltool.errors import PlltoolError
from plltool.hardware import parse_hardware
from plltool.io.alignment_reader import read_alignment
from plltool.io.checkpoint import Checkpoint
from plltool.io.constraint_reader import read_constraint
from plltool.io.model_reader import read_paml_matrix
from plltool.io.newick import parse_newick, write_newick
from plltool.io.part_trees import read_tree
from plltool.io.record import read_record
from plltool.io.tree_files import read_tree_set
from plltool.model.model_string import parse_model
from plltool.run.inputs import resolve_inputs
from plltool.run.rooting import check_outgroup

DATA = Path(__file__).resolve().parents[1] / "data"
MEBIBYTE = 1 << 20
MAX_INPUT = 200_000  # bytes; longer mutants are cut
MAX_CORPUS = 400
SEED_SHARE = 0.4  # of inputs that are mutations of a seed; the others, of what had an answer of a new kind
MAX_MESSAGE = 1500  # characters
MAX_KEPT = 25  # failures of one parser, each of another shape
ADDRESS_SPACE = 6 << 30  # bytes of the process: what wants more fails
NAMES = ("a", "b c", "d_e", "it's", "f")
ROWS = dict.fromkeys(NAMES, "ACGTTGCAAC" * 6)
PROTEINS = dict.fromkeys(NAMES, "ARNDCQEGHILKMFPSTWYV" * 3)

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
PHYLIP = b"4 8 I\na  ACGT\nb  AC-T\nc  ACNT\nd  ACGA\n\n1\nACGT\nACGT\nA.GT\nACGT\n"
FASTA = b">a one\nACGTACGT\n>b\nACGTRYKM\n>c\nacgu-?NX\n>d\nACGT\nACGT\n"
LINES = b"GTR+F+G4, one = 1-20\\3, 22\nDNA, two = 2-20\\3\n# comment\nHKY{1/2}+FU{.1/.2/.3/.4}, rest=21,23-.\n"
SETS = b"""#nexus
begin mrbayes; charset a = 1-30\\2; charset b = 2-30\\2 31-.; partition p = 2: a, b; set partition=p; end;
"""
RECORD = json.dumps(
    dict.fromkeys(("lnl", "n_taxa", "n_sites", "n_patterns", "seconds", "seed", "brlen", "layout", "counters"), 1)
    | {"model": "GTR+G4", "tree": "(a,b,c);", "start_lnls": [1], "parts": [{"name": "x"}], "parameters": {}}
    | {"warnings": [], "version": "0", "command": None, "device": "numpy", "reason": ""}
).encode()


class Hang(BaseException):
    """Raised into an answer that takes too long."""


class BrokenError(Exception):
    """A value that did not survive, or a message that is no line."""


@dataclass(frozen=True)
class Parser:
    """What is fuzzed.

    Attributes
    ----------
    run : gets the input and the path of a file for it
    seeds : the first corpus
    tokens : that mutations insert besides COMMON
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
    model = resolve_inputs(ROWS if spec.is_nucleotide else PROTEINS, spec)[1][0]
    model.components()
    return model.n_free_parameters


def run_scheme(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    data, models = resolve_inputs(ROWS, str(path))
    return len(data.parts), [str(model.spec) for model in models]


def run_paml(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    return len(resolve_inputs(PROTEINS, f"GTR20{{{path}}}")[1]), len(read_paml_matrix(str(path))[0])


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


def run_constraint(content: bytes, path: Path) -> object:
    path.write_bytes(content)
    return read_constraint(path, NAMES) is None


def run_checkpoint(content: bytes, path: Path) -> object:
    """What a run is of, and the state of a climb, from one input."""
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
    from plltool.cli.options import split_outgroup

    names = tuple(text_of(content).split("\n"))
    outgroup = split_outgroup(names, NAMES)
    check_outgroup(outgroup, NAMES)
    tree = parse_newick("((a,'b c'),d_e,('it''s',f));", "the tree", NAMES)
    return write_newick(tree, outgroup=outgroup)


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
    b"partition",
    b"#NEXUS",
    b"interleave",
    b"gap=",
    b"matchchar=",
    b"protein",
    b"standard",
]
MODEL_WORDS = [
    b"GTR",
    b"HKY",
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
]
MODELS = [
    b"GTR+FO+G4",
    b"HKY{2.0}+FU{.1/.2/.3/.4}+IU{.2}+GA8{.3}",
    b"010020+R2{.5/1.5}{.5/.5}",
    b"LG+C10+G4",
    b"LG4X",
    b"EX2{.4/.6}+I",
    b"GTR{1.2,3.4,0.8,1.1,4.1}+R2{.5,1,.5,1}+BU{2}",
    b"TIM2+I+R3",
]
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
    "nexus": Parser(run_alignment, [NEXUS], WORDS),
    "alignment": Parser(run_alignment, ALIGNMENTS, [*WORDS, b">", b"4 8\n", b"\x1f\x8b"]),
    "newick": Parser(run_newick, [*TREES, *data_files("simulated.nwk")], [b"(a,b)", b":1", b"''"]),
    "named_newick": Parser(run_named_newick, [TREES[0], PART_TREES[1]], [b"(a,b)", b":1", b"b_c", b"'d e'"]),
    "model": Parser(run_model, MODELS, MODEL_WORDS),
    "partition": Parser(
        run_scheme, [LINES, SETS, SETS.replace(b"mrbayes", b"sets"), RECORD], [*WORDS, *MODEL_WORDS, b"1-.\\3"]
    ),
    "paml": Parser(run_paml, [paml_seed()], [b"0.05", b"1e308"]),
    "record": Parser(run_record, [RECORD], [b"null", b"[[", b"{}", b'"model"', b"NaN", b"\\ud800"]),
    "part_trees": Parser(run_part_trees, PART_TREES, [b"(a,f)", b":1", b");\n"]),
    "tree_files": Parser(
        run_tree_files, [TREES[0], *TREES[3:], NEXUS_TREES], [b"tree t = ", b"[&R]", b"[&U]", b"translate", b"utree"]
    ),
    "constraint": Parser(
        run_constraint, [b"((a,'b c'),(d_e,f));", b"((a,b_c),d_e,(it's,f));", b"(a,b_c,d_e,f);"], [b"(a,f)", b":1"]
    ),
    "checkpoint": Parser(
        run_checkpoint,
        [checkpoint_seed(), checkpoint_seed().split(b"\n--\n")[0] + b"\n--\n{}\n"],
        [b"null", b"[]", b"{}", b"7", b"\n--\n"],
    ),
    "outgroup": Parser(run_outgroup, [b"a\nb c", b"a,b c", b"it's,f"], [b"a", b"b c", b"d_e"]),
    "hardware": Parser(
        run_hardware, [b"numpy:vw=2", b"0:0:precision=single:threads=2:memory=1.5G"], [b"vw=", b"memory="]
    ),
}


# --- mutations ----------------------------------------------------------------------------------------------


class Mutator:
    """Makes inputs of a corpus, which grows."""

    def __init__(self, parser: Parser, rng: random.Random):
        self.corpus = list(parser.seeds)
        self._seeds = parser.seeds
        self._tokens = [*COMMON, *parser.tokens, *parser.tokens]
        self._rng = rng
        self._kinds = [
            self._flip,
            self._insert,
            self._insert,
            self._delete,
            self._copy,
            self._splice,
            self._number,
            self._swap_lines,
            self._cut,
            self._case,
        ]

    def next(self) -> bytes:
        rng = self._rng
        content = rng.choice(self._seeds if rng.random() < SEED_SHARE else self.corpus)
        for _ in range(rng.choice((1, 1, 1, 2, 3, 5, 8))):
            content = rng.choice(self._kinds)(content)
        if rng.random() < 0.01:
            content = self._run(content)
        if rng.random() < 0.005:
            packed = gzip.compress(content, 1, mtime=0)
            content = packed[: rng.randrange(len(packed) + 1)] if rng.random() < 0.5 else packed
        return content[:MAX_INPUT]

    def keep(self, content: bytes) -> None:
        """The content has had an answer of a new shape."""
        if len(content) < 5000:
            if len(self.corpus) < MAX_CORPUS:
                self.corpus.append(content)
            else:
                self.corpus[self._rng.randrange(len(self.corpus))] = content

    def _span(self, content: bytes, most: int = 64) -> tuple[int, int]:
        start = self._rng.randrange(len(content) + 1)
        return start, min(len(content), start + self._rng.randrange(most))

    def _flip(self, content: bytes) -> bytes:
        at, _ = self._span(content)
        return content[:at] + bytes([self._rng.randrange(256)]) + content[at + 1 :]

    def _insert(self, content: bytes) -> bytes:
        at, _ = self._span(content)
        return content[:at] + self._rng.choice(self._tokens) + content[at:]

    def _delete(self, content: bytes) -> bytes:
        start, stop = self._span(content)
        return content[:start] + content[stop:]

    def _copy(self, content: bytes) -> bytes:
        start, stop = self._span(content)
        at, _ = self._span(content)
        return content[:at] + content[start:stop] * self._rng.choice((1, 2, 20)) + content[at:]

    def _splice(self, content: bytes) -> bytes:
        other = self._rng.choice(self.corpus)
        return content[: self._rng.randrange(len(content) + 1)] + other[self._rng.randrange(len(other) + 1) :]

    def _number(self, content: bytes) -> bytes:
        found = list(re.finditer(rb"\d+", content[:5000]))
        if not found:
            return content
        match, rng = self._rng.choice(found), self._rng
        number = rng.choice(
            (b"0", b"1", b"2", b"-1", b"%d" % rng.randrange(100), b"9" * rng.randrange(1, 40), b"1e308", b"7" * 5000)
        )
        return content[: match.start()] + number + content[match.end() :]

    def _swap_lines(self, content: bytes) -> bytes:
        lines = content.split(self._rng.choice((b"\n", b"\n", b" ", b",")))
        i, j = self._rng.randrange(len(lines)), self._rng.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
        return self._rng.choice((b"\n", b"\n", b"\r\n", b"\r", b" ", b",")).join(lines)

    def _cut(self, content: bytes) -> bytes:
        return content[: self._rng.randrange(len(content) + 1)]

    def _case(self, content: bytes) -> bytes:
        return content.swapcase()

    def _run(self, content: bytes) -> bytes:
        """A piece of the input, or a token, very often in a row: what regular expressions and recursion choke on."""
        start, stop = self._span(content, 6)
        piece = self._rng.choice((content[start:stop], self._rng.choice(self._tokens), b" ", b"(", b"1", b"a ", b"\n"))
        at, _ = self._span(content)
        return content[:at] + piece * self._rng.choice((1000, 20_000, 100_000)) + content[at:]


# --- running ------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """Of one input: the shape of the answer, and what was wrong with it, if anything."""

    shape: str
    problem: str | None
    traceback: str = ""


class Runner:
    """Gives inputs to a parser and judges the answers."""

    def __init__(self, parser: Parser, folder: Path, limit: float, memory: int):
        self._parser = parser
        self._path = folder / "input"
        self._limit = limit
        self._memory = memory

    def judge(self, content: bytes) -> Outcome:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            with _time_limit(self._limit):
                answer = self._parser.run(content, self._path)
            outcome = Outcome(f"value {len(str(answer))} {str(answer)[:8]}", None)
        except PlltoolError as error:
            outcome = self._judge_message(str(error), error)
        except (Exception, Hang) as error:
            where = _innermost_line(error)
            kind = f"{type(error).__name__} {where}"
            return Outcome(kind, kind, "".join(traceback.format_exception(error))[-3000:])
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        if grown > self._memory:
            return Outcome("memory", f"memory grew by {grown:.0f} MiB", f"{grown:.0f} MiB")
        return outcome

    def _judge_message(self, message: str, error: PlltoolError) -> Outcome:
        where = _innermost_line(error)
        if not message.strip():
            return Outcome(where, f"empty message {where}")
        if len(message) > MAX_MESSAGE:
            return Outcome(where, f"long message {where}", f"{len(message)} characters: {message[:300]}")
        if len(message.splitlines()) > 1:
            return Outcome(where, f"several lines {where}", repr(message[:300]))
        return Outcome(f"error {where}", None)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _innermost_line(error: BaseException) -> str:
    """The last place in plltool that the traceback names; no line number, so that a loop counts as one place."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/plltool/" in frame.filename]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.name}:{last.lineno}"


def shorten(content: bytes, problem: str, runner: Runner, seconds: float = 10.0) -> bytes:
    """The input without what does not matter to its problem, as far as a few seconds reach."""
    end = time.monotonic() + seconds
    size = len(content) // 2
    while size and time.monotonic() < end:
        start = 0
        while start < len(content) and time.monotonic() < end:
            shorter = content[:start] + content[start + size :]
            if runner.judge(shorter).problem == problem:
                content = shorter
            else:
                start += size
        size //= 2
    return content


def fuzz(name: str, options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Fuzz one parser; returns counts and failures."""
    parser = PARSERS[name]
    mutator = Mutator(parser, random.Random(f"{options.seed} {name}"))
    runner = Runner(parser, folder, options.limit, options.memory)
    shapes: Counter[str] = Counter()
    failures: dict[str, dict[str, object]] = {}
    n_inputs = n_values = 0
    slowest = 0.0
    began = time.monotonic()
    for content in parser.seeds:
        outcome = runner.judge(content)
        if outcome.problem or not outcome.shape.startswith("value"):
            print(f"{name}: a seed gives {outcome.problem or outcome.shape}", file=sys.stderr)
    while (n_inputs < options.count) if options.count else (time.monotonic() - began < options.seconds):
        content = mutator.next()
        start = time.monotonic()
        outcome = runner.judge(content)
        slowest = max(slowest, time.monotonic() - start)
        n_inputs += 1
        n_values += outcome.shape.startswith("value")
        if outcome.problem is None:
            if outcome.shape not in shapes:
                mutator.keep(content)
            shapes[outcome.shape] += 1
        elif outcome.problem in failures:
            failures[outcome.problem]["times"] = int(str(failures[outcome.problem]["times"])) + 1
        elif len(failures) < MAX_KEPT:
            failures[outcome.problem] = _keep_failure(name, len(failures) + 1, content, outcome, runner, options)
    seconds = time.monotonic() - began
    result = {
        "inputs": n_inputs,
        "values": n_values,
        "refused": n_inputs - n_values,
        "kinds_of_answers": len(shapes),
        "seconds": round(seconds, 1),
        "slowest_seconds": round(slowest, 2),
        "failures": failures,
    }
    print(
        f"{name}: {n_inputs} inputs in {seconds:.0f} s, {n_values} read, {len(shapes)} kinds of answers, "
        f"slowest {slowest:.2f} s, {len(failures)} kinds of failures",
        flush=True,
    )
    return result


def _keep_failure(
    name: str, number: int, content: bytes, outcome: Outcome, runner: Runner, options: argparse.Namespace
) -> dict[str, object]:
    """Shorten and write a failing input, and tell of it."""
    assert outcome.problem is not None
    shortened = shorten(content, outcome.problem, runner)
    options.failures.mkdir(parents=True, exist_ok=True)
    path = options.failures / f"{name}-{number}.bin"
    path.write_bytes(shortened)
    print(
        f"{name}: {outcome.problem}: {len(shortened)} bytes, {shortened[:80]!r}\n"
        f"    reproduce: scripts/fuzz.py {name} --replay {path}",
        file=sys.stderr,
        flush=True,
    )
    return {"times": 1, "input": ascii(shortened[:200]), "bytes": len(shortened)}


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], epilog=f"Parsers: {', '.join(PARSERS)}"
    )
    arguments.add_argument("parsers", nargs="*", metavar="PARSER", help="all unless named")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=20.0, help="for each parser")
    arguments.add_argument("--count", type=int, default=0, help="inputs for each parser, however long they take")
    arguments.add_argument("--limit", type=float, default=5.0, metavar="SECONDS", help="for one input")
    arguments.add_argument("--memory", type=int, default=300, metavar="MIB", help="that one input may take")
    arguments.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="folder for failing inputs")
    arguments.add_argument("--output", type=Path, help="JSON file of counts and failures")
    arguments.add_argument("--replay", type=Path, help="give this input to the one parser named, and show what happens")
    options = arguments.parse_args()
    unknown = [name for name in options.parsers if name not in PARSERS]
    if unknown or (options.replay and len(options.parsers) != 1):
        found = ", ".join(unknown or options.parsers) or "none"
        arguments.error(f"expected parsers of {', '.join(PARSERS)}, with --replay one; found {found}")
    logging.getLogger("plltool").setLevel(logging.CRITICAL)  # it warns of much of what it gets here
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    memory_folder = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory_folder if memory_folder.is_dir() else None) as folder:
        if options.replay:
            runner = Runner(PARSERS[options.parsers[0]], Path(folder), options.limit, options.memory)
            outcome = runner.judge(options.replay.read_bytes())
            print(outcome.traceback + (outcome.problem or outcome.shape))
            return int(outcome.problem is not None)
        results = {name: fuzz(name, options, Path(folder)) for name in options.parsers or PARSERS}
    if options.output:
        options.output.write_text(json.dumps({"seed": options.seed, "parsers": results}, indent=1) + "\n")
    return int(any(result["failures"] for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
