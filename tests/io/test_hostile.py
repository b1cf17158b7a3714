"""Input that is broken, huge or made to hurt: one line, soon and in little memory. `scripts/checks/fuzz.py` found most.

Limits of seconds are ten times what this takes here; before it was mended each of these took minutes or for ever.
"""

import bz2
import gzip
import json
import lzma
import time
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plltool.errors import InputError, PlltoolError
from plltool.hardware import parse_hardware, parse_size
from plltool.io import files
from plltool.io.checkpoint import Checkpoint
from plltool.io.files import read_content, read_record
from plltool.io.model_reader import read_model, read_paml_matrix
from plltool.io.newick import parse_newick
from plltool.io.newick_writer import write_newick
from plltool.io.table_reader import read_dates
from plltool.io.tree_files import read_tree
from plltool.model.model_string import parse_model
from plltool.run.inputs import resolve_inputs
from plltool.run.rooting import as_outgroup

MANY = 20_000
ROWS = dict.fromkeys("abcd", "ACGTACGT" * 5)
PACKED = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
LONGEST_MESSAGE = 1000  # characters


@contextmanager
def soon(seconds=10.0):
    began = time.process_time()  # of this process alone, so that a busy machine changes nothing
    yield
    assert time.process_time() - began < seconds


@contextmanager
def refused(match, seconds=5.0):
    """One line that is not long, before the time is over."""
    with soon(seconds), pytest.raises(InputError, match=match) as caught:
        yield
    message = str(caught.value)
    assert len(message) < LONGEST_MESSAGE
    assert len(message.splitlines()) == 1


class TestNewick:
    def test_many_tips_come_back(self):
        text = "(" + ",".join(f"t{i}" for i in range(MANY)) + ");"
        with soon(40):
            tree = parse_newick(text, "x", resolve_seed=1)
            again = parse_newick(write_newick(tree), "y")
        assert again.n_taxa == MANY

    @pytest.mark.parametrize("text", ["(" * 10 * MANY, "(a:" + "1" * MANY + "x,b,c);", "[" * MANY, "'" * (MANY + 1)])
    def test_no_tree(self, text):
        with refused("expected"):
            parse_newick(text, "x")

    def test_lengths_that_overflow_are_the_largest_number(self):
        tree = parse_newick("(((a:1e308):1e308,d:1),b,c);", "x")
        assert max(tree.lengths.tolist()) < float("inf")
        assert parse_newick(write_newick(tree), "y").names == tree.names

    def test_names_with_odd_line_ends_in_trees_of_parts(self, write):
        names = ("a\x0cb", "c\u2028d", "e\x85f", "g")
        path = write(2 * "('a\x0cb':1,'c\u2028d':1,('e\x85f':1,g:1):1);\n")
        assert read_tree(path, names, unlinked=True).lengths.shape == (5, 2)

    def test_a_long_comment_without_a_key(self):
        with soon():
            assert parse_newick("(a,b,[&" + "1" * MANY * 5 + "]c);", "x").n_taxa == 3


NO_MODELS = ["GTR" + " " * MANY + "x", "7" * MANY, "GTR+" + "x" * MANY, "GTR{" + "1" * MANY]
NO_HARDWARE = ["vw=" + "7" * 5000, "threads=0", "memory=" + "9" * 400, "=\n", "x=" + "7" * 5000]


class TestModels:
    def test_a_state_with_a_long_name(self):
        model = read_model("MATRIX{" + "9" * MANY + "|b}{1}")
        with refused("found sequences of characters, expected a table .*such as 999"):
            resolve_inputs(ROWS, str(model))

    @pytest.mark.parametrize(
        ("read", "text", "match"),
        [
            *((read_model, text, "model '") for text in NO_MODELS),
            *((parse_hardware, text, "found") for text in NO_HARDWARE),
            (parse_size, "9" * 400, "expected a size"),
        ],
        ids=lambda value: value[:40] if isinstance(value, str) else value.__name__,
    )
    def test_no_model_and_no_hardware(self, read, text, match):
        with refused(match):
            read(text)

    @pytest.mark.parametrize("number", ["nan", "inf", "-1", "1e10", "x" * MANY])
    def test_no_protein_matrix(self, write, number):
        path = write(" ".join(["1"] * 100 + [number] + ["1"] * 109))
        with refused("in a protein matrix, expected"):
            read_paml_matrix(path)

    def test_a_protein_matrix_without_frequencies(self, write):
        path = write(" ".join(["1"] * 190 + ["0"] * 20))
        with refused("found no frequency above 0"):
            read_paml_matrix(path)


@pytest.fixture
def read_parts(write):
    return lambda text: resolve_inputs(ROWS, write(text))


NO_COLUMNS = ["1" * 5000, "1-10\\1" + "0" * 30, "1-" + "9" * 5000, ",".join(map(str, range(1, 2 * MANY))), " " * MANY]
NO_LINES = ["GTR, " + "a " * MANY, "GTR," + " " * MANY, "GTR" + "," * MANY, "GTR,{" + "{" * MANY]
NO_CHARSETS = [" " * MANY + "x", " ''" * MANY + "'x", "x" * MANY, "= " + "1-2," * MANY + "x"]
MANY_CHARSETS = "".join(f"charset a{i} = {i + 1};" for i in range(40))


class TestPartitions:
    @pytest.mark.parametrize(
        ("text", "match"),
        [
            *((f"GTR, a = {sites}", "line 1: partition 'a': found") for sites in NO_COLUMNS),
            ("\n".join(f"GTR, a{i} = 1" for i in range(30_000)), "line 2: partition 'a1': column 1 is already in"),
            *((f"GTR, a = 1-3\n{line}", "found|model") for line in NO_LINES),
            *((f"#NEXUS\nbegin sets; charset {name}; end;", "line 2") for name in NO_CHARSETS),
            (
                "#NEXUS\nbegin sets; charset a = 1-5; charpartition p = GTR: a a; end;",
                "expected MODEL: CHARSET, each charset once",
            ),
            (
                f"#NEXUS\nbegin sets; {MANY_CHARSETS} charpartition p = GTR: b; end;",
                "found charset 'b', expected one of these: 'a0', .* and 30 more",
            ),
        ],
        ids=lambda value: value[:40],
    )
    def test_no_parts(self, read_parts, text, match):
        with refused(match):
            read_parts(text)

    def test_a_stride_beyond_the_alignment_is_one_column(self, read_parts):
        data, _ = read_parts("GTR, a = 1-10\\999999999999999999\nGTR, b = 2-40")
        assert [len(part.sites) for part in data.parts] == [1, 39]


class TestRecords:
    def test_nested_too_deep(self, write):
        path = write('{"model":' + "[" * MANY + "]" * MANY + "}")
        with refused("found something other than JSON"):
            read_record(path)

    def test_a_model_that_is_no_string(self, read_parts):
        with refused("model .*yyy"):
            read_parts(json.dumps({"model": [{"x": "y" * MANY}]}))

    def test_an_outgroup_that_is_no_taxon(self):
        with refused("is not in the alignment"):
            as_outgroup(["x" * MANY], ("a", "b", "c", "d"))


class TestContent:
    @pytest.mark.parametrize(("name", "pack"), PACKED.items())
    @pytest.mark.parametrize("cut", [1, 9, 20, -9, -1])
    def test_a_packed_file_cut_short(self, write, name, pack, cut):
        path = write(pack(b">a\nACGT\n" * 50)[:cut])
        if cut == 1:
            assert len(read_content(path)) == 1
            return
        with refused(f"found a broken or incomplete {name} file"):
            read_content(path)

    @pytest.mark.parametrize("name", PACKED)
    def test_a_bomb(self, write, monkeypatch, name):
        monkeypatch.setattr(files, "TRUSTED_CONTENT", 1 << 20)
        small = {ending: (*kind[:3], 500) for ending, kind in files._COMPRESSIONS.items()}
        monkeypatch.setattr(files, "_COMPRESSIONS", small)
        path = write(PACKED[name](b"A" * (100 << 20)))
        with refused("unpacks to more than .* bytes, beyond belief for its size"):
            read_content(path)

    def test_a_well_packed_alignment_is_no_bomb(self, write):
        assert len(read_content(write(gzip.compress(b"A" * (10 << 20))))) == 10 << 20

    @pytest.mark.parametrize("name", ["plain", "packed.gz", "/dev/zero"])
    def test_more_than_the_memory_holds(self, tmp_path, monkeypatch, name):
        monkeypatch.setattr(files, "available_memory", lambda: 40 << 20)
        (tmp_path / "plain").write_bytes(b"A" * (20 << 20))
        (tmp_path / "packed.gz").write_bytes(gzip.compress(b"A" * (20 << 20)))
        with refused("found more than 10485760 bytes, expected a file that fits the free memory"):
            read_content(tmp_path / name)


class TestCheckpoints:
    @pytest.mark.parametrize("state", [b'""\n', b"[]\n", b"7", b"{}\n", b"[" * MANY, b"\xff", b""])
    def test_a_state_that_is_none(self, tmp_path, state):
        checkpoint = Checkpoint(tmp_path, {"model": "JC"})
        (tmp_path / "x.state").write_bytes(state)
        assert checkpoint.load("x", dict) is None
        (tmp_path / "x.state.old").write_bytes(state)
        with refused("a damaged checkpoint"):
            checkpoint.load("x", dict)

    @pytest.mark.parametrize(
        ("model", "shown"), [("7" * MANY, "7777.*"), ("J\u2028C\x85 X", "J C X")], ids=["long", "line ends"]
    )
    def test_a_checkpoint_of_a_run_with_an_odd_model(self, tmp_path, model, shown):
        Checkpoint(tmp_path, {"model": model})
        (tmp_path / "x.state").write_bytes(b"x")
        with refused(f"a checkpoint of another run: model: the checkpoint has {shown}, this command JC"):
            Checkpoint(tmp_path, {"model": "JC"})


any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
model_text = st.lists(
    st.sampled_from(["GTR", "HKY", "LG", "+", "G4", "R2", "FU", "{", "}", "0.5", "/", ",", "I", "C10", "LG4X", "B"])
).map("".join)
part_text = st.lists(
    st.sampled_from(
        ["GTR", ",", " = ", "x", "1", "-", "9", "\\3", "\n", "#NEXUS\n", "charset ", ";", "begin sets;", "."]
    )
).map("".join)


class TestAnyText:
    """Whatever the text, the answer is a value or one line."""

    @given(st.one_of(any_text, model_text))
    @settings(max_examples=150)
    def test_models(self, text):
        answer(lambda: parse_model(text))

    @given(st.one_of(any_text, part_text))
    @settings(max_examples=100)
    def test_partitions(self, tmp_path_factory, text):
        path = tmp_path_factory.getbasetemp() / "hostile.part"
        path.write_text(text, encoding="utf-8")
        answer(lambda: resolve_inputs(ROWS, str(path)))

    @given(any_text)
    @settings(max_examples=100)
    def test_hardware(self, text):
        answer(lambda: parse_hardware(text))


def test_dates_of_many_columns(write):
    table = write(",".join(f"column {number}" for number in range(MANY)) + "\n", "dates.csv")
    with refused("dates.csv: found columns 'column 0', .* and 19995 more, expected one of taxa called name, strain"):
        read_dates(table)


def answer(call):
    try:
        call()
    except PlltoolError as error:
        problem = str(error)
    else:
        return
    assert problem.strip()
    assert len(problem) < LONGEST_MESSAGE
