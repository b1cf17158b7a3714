"""Tables of taxa by characters, and state spaces whose states have names: up to 128 of them."""

import json

import numpy as np
import pytest
from oracles.likelihood import brute_force
from oracles.substitution import q_matrix
from refusals import refused

from plltool.alignment.patterns import encode
from plltool.alignment.spaces import own_space
from plltool.analyses.ancestral.analysis import ancestral_states
from plltool.analyses.search.analysis import search
from plltool.analyses.toolbox.simulate import simulate
from plltool.errors import InputError
from plltool.io.alignment_reader import join_alignments, read_alignment
from plltool.io.model_reader import read_model
from plltool.run.evaluation import evaluate

TREE = "((a:0.1,b:0.2):0.3,c:0.4,d:0.5);"
BRANCHES, LENGTHS = [(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)], [0.1, 0.2, 0.3, 0.4, 0.5]
ROWS = {
    "a": ["north", "east", "?"],
    "b": ["south-west", "north|east", "east"],
    "c": ["south-west", "", "north | south-west"],
    "d": ["south-west", "south-west", "north"],
}
NAMES = ("north", "south-west", "east")
SETS = [[1, 4, 7], [2, 5, 4], [2, 7, 3], [2, 2, 1]]  # of `ROWS`, bit i for ``NAMES[i]``
MODEL = "MATRIX{north|south-west|east}{1/0.25/0.5}+FU{0.5/0.3/0.2}"


def text_of(rows=ROWS, separator="\t", columns=("place", "diet", "home")):
    lines = [["taxon", *columns], *([taxon, *cells] for taxon, cells in rows.items())]
    return "\n".join(separator.join(line) for line in lines) + "\n"


def random_process(n_states):
    """Names, frequencies and rates with detailed balance."""
    rng = np.random.default_rng(n_states)
    exchangeabilities, frequencies = (
        rng.gamma(4.0, size=n_states * (n_states - 1) // 2),
        rng.dirichlet([5.0] * n_states),
    )
    return [f"region_{k}" for k in range(n_states)], frequencies, q_matrix(exchangeabilities, frequencies)


def matrix_text(names, rates):
    rows = [" ".join(map(repr, row)) for row in rates.tolist()]
    return "\n".join([*names, "matrix", *rows]) + "\n"


def sets_of(path, model=MODEL):
    """The set of states of each cell, as bit masks."""
    given = read_alignment(path)
    alignment = encode(given, own_space(read_model(model).data), np.arange(given.n_sites))
    return alignment.states.masks[alignment.codes].tolist()


@pytest.mark.parametrize(
    "change",
    [
        str,
        lambda text: text.replace("\t", ","),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\t", ",").replace("north|east", '"north|east"').replace(",east", ',"east"'),
        lambda text: "\ufeff\n" + text.replace("\n", "\n\n"),
        lambda text: text.replace("taxon", ""),
    ],
)
def test_cells_are_sets_of_states(write, change):
    path = write(change(text_of()))
    assert read_alignment(path).names == tuple("abcd")
    assert sets_of(path) == SETS


def test_a_column_may_have_no_name(write):
    assert sets_of(write("taxon,\na,north\nb,north\nc,north\n")) == [[1]] * 3


def test_many_state_masks():
    names = [f"s{k}" for k in range(128)]
    states = own_space("states " + "|".join(names)).with_cells(["s127|s3", "?", "s126", "s128"])
    assert states.masks[states.code_of[:4]].tolist() == [1 << 127 | 8, (1 << 128) - 1, 1 << 126, 0]


def test_lines_of_taxa(write):
    given = read_alignment(write('\ntaxon,"x\ny"\n\na,1\n  \n"b",2\nc,"2"\n'))
    assert given.positions == [5, 7, 8]
    assert given.table == (("x\ny",), ("1", "2"))


def test_symbols_of_one_character_in_a_table(write):
    """Case matters: in a table a state has one name only."""
    model = "MATRIX{NSe}{1/1/1}"
    assert sets_of(write(text_of({"a": ["N"], "b": ["S|e"], "c": ["?"]}, columns=["x"])), model) == [[1], [6], [7]]
    with refused("found 'n', expected one of the states N, S, e, several with"):
        sets_of(write(text_of({"a": ["n"], "b": ["S"], "c": ["?"]}, columns=["x"])), model)


def test_likelihood_of_sets(write):
    frequencies = np.array([0.5, 0.3, 0.2])
    q = q_matrix([1, 0.25, 0.5], frequencies)
    columns = [list(column) for column in zip(*SETS, strict=True)]
    expected = brute_force(BRANCHES, LENGTHS, columns, [(1.0, frequencies, q)]).sum()
    found = evaluate(write(text_of()), TREE, MODEL, fixed=True, device="numpy")
    assert found.lnl == pytest.approx(expected, rel=1e-12)
    assert found.model == "MATRIX{north|south-west|east}{1.0/0.25/0.5}+FU{0.5/0.3/0.2}"


@pytest.mark.parametrize("n_states", [70, 128])
def test_many_states(write, n_states, device):
    """More states than a 64-bit mask holds, with the last one alone and in a set; the model string reads back."""
    names, frequencies, q = random_process(n_states)
    last = n_states - 1
    cells = [[[0], [3], [last]], [[1, last], [last - 1], [last]], [[last], [0], [66, 67]], [[65], [], [last - 1]]]
    rows = {taxon: ["|".join(names[k] for k in cell) for cell in row] for taxon, row in zip("abcd", cells, strict=True)}
    masks = [[sum(1 << k for k in cell or range(n_states)) for cell in row] for row in cells]
    columns = [list(column) for column in zip(*masks, strict=True)]
    expected = brute_force(BRANCHES, LENGTHS, columns[:1] + columns[2:], [(1.0, frequencies, q)]).sum()
    rows = {taxon: [row[0], row[2]] for taxon, row in rows.items()}
    model = f"MATRIX{{{write(matrix_text(names, q - np.diag(np.diag(q))), 'regions.txt')}}}"
    table = write(text_of(rows, columns=["x", "y"]))
    found = evaluate(table, TREE, model, fixed=True, device=device)
    assert found.lnl == pytest.approx(expected, rel=1e-11)
    if device == "numpy":
        assert evaluate(table, TREE, found.model, fixed=True, device=device).lnl == pytest.approx(expected, rel=1e-11)


def test_states_at_ancestors_have_names(write):
    found = ancestral_states(write(text_of()), TREE, MODEL, device="numpy", fixed=True)
    assert set(found.sequences()) == {"Node1", "Node2"}
    for row in found.sequences().values():
        assert len(row.split("\t")) == 3
        assert set(row.split("\t")) <= set(NAMES)
    texts = found.texts()
    assert "joint.fasta" not in texts
    assert [line.split("\t")[0] for line in texts["joint.tsv"].splitlines()] == ["taxon", "Node1", "Node2"]
    assert texts["joint.tsv"].splitlines()[1].split("\t")[1:] == found.sequences("joint")["Node1"].split("\t")
    header, line = found.format_states().splitlines()[:2]
    assert header == "Node\tSite\tState\tp_north\tp_south-west\tp_east"
    assert line.split("\t")[2] in NAMES


def test_simulated_tables_are_read(write):
    made = simulate(TREE, MODEL, 5, seed=3)
    assert {name for row in made.sequences for name in row.split("\t")} <= set(NAMES)
    path = write(made.format_alignment("x.phy"))
    assert read_alignment(path).names == made.names == tuple("abcd")
    given = read_alignment(path)
    assert given.rows == made.as_sequences().rows
    assert [[given.table.cells[byte] for byte in row] for row in given.rows] == [r.split("\t") for r in made.sequences]
    one = simulate(TREE, MODEL, 1, seed=3)
    assert one.as_sequences().n_sites == 1
    assert "4 taxa, 1 sites" in repr(one)


def test_parts_with_named_states(write):
    two = write(f"{MODEL}, one = 1-2\nMATRIX{{wet|dry}}{{1}}, two = 3-4\n", "parts.txt")
    made = simulate(TREE, two, 4, seed=3)
    assert {name for row in made.sequences for name in row.split("\t")[2:]} <= {"wet", "dry"}
    assert evaluate(made.as_sequences(), TREE, two, fixed=True, device="numpy").lnl < 0
    mixed = write(f"{MODEL}, one = 1-2\nJC, two = 3-4\n", "mixed.txt")
    with refused("found partitions with named states and other partitions, expected named states only"):
        simulate(TREE, mixed, 4)


def test_search_and_its_record(write):
    """12 taxa, 30 characters, 80 states; most columns have most states once only."""
    names, _, q = random_process(80)
    model = f"MATRIX{{{write(matrix_text(names, q - np.diag(np.diag(q))), 'regions.txt')}}}"
    tree = "((((a:.2,b:.3):.1,(c:.2,d:.2):.2):.1,(e:.1,f:.2):.2):.2,((g:.1,h:.3):.2,i:.2):.1,(j:.2,(k:.1,l:.2):.2):.1);"
    data = simulate(tree, model, 30, seed=3).as_sequences()
    found = search(data, model, device="numpy", starts=1, workers=1)
    record = write(json.dumps(found.as_record()), "record.json")
    again = evaluate(data, found.newick, record, fixed=True, device="numpy")
    assert again.lnl == pytest.approx(found.lnl, abs=1e-6)
    truth = evaluate(data, tree, model, device="numpy")
    assert found.lnl >= truth.lnl - 0.01


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (text_of(ROWS | {"b": ["west", "east", "east"]}), "taxon 'b' (line 3), column 'place': found 'west', expect"),
        (text_of(ROWS | {"b": ["east", "east|", "east"]}), "column 'diet': found '' in 'east|', expected one of the"),
        (text_of(ROWS | {"b": ["East", "east", "east"]}), "found 'East', expected one of the states north, south-"),
        (text_of(ROWS | {"b": ["east", "east"]}), "line 3: taxon 'b': found 3 fields, expected 4 as in the first line"),
        (text_of(ROWS | {"a": ["east"] * 4}), "line 2: taxon 'a': found 5 fields, expected 4 as in the first line"),
        (text_of(ROWS, ",").replace("east", '"east', 1), "line 2: found unexpected end of data, expected "),
        (text_of(ROWS | {"": ["east"] * 3}), "line 6 has an empty taxon name"),
        (text_of(ROWS).replace("d\t", "a\t"), "two taxa have the name 'a' (lines 2 and 5)"),
        (text_of({"a": ["east"], "b": ["east"]}, columns=["x"]), "found 2 taxa, expected at least 3"),
        ("taxon\tplace\n", "found 0 taxa, expected at least 3"),
        (",", "found no names of columns, expected them in the first line"),
        ("a,b,c\n", "found 0 taxa, expected at least 3"),
        (text_of({f"t{k}": [f"s{k}"] for k in range(257)}, columns=["x"]), "found 257 different cells, expected at"),
    ],
)
def test_errors_of_tables(write, text, message):
    path = write(text)
    with refused(message, path):
        evaluate(path, TREE, MODEL, device="numpy")


def test_many_states_are_not_all_listed(write):
    names, _, q = random_process(70)
    model = f"MATRIX{{{write(matrix_text(names, q - np.diag(np.diag(q))), 'regions.txt')}}}"
    with refused("region_3, region_4 and 65 more, several with"):
        evaluate(write(text_of()), TREE, model, device="numpy")


@pytest.mark.parametrize("model", [None, "MK", "GTR+G4", "LG", "GT10"])
def test_a_table_needs_a_model_of_its_states(write, model):
    with pytest.raises(InputError, match=r"x: found .*named.state"):
        evaluate(write(text_of()), TREE, model, device="numpy")


def test_named_states_need_a_table(write):
    with refused("found sequences of characters, expected a table of taxa by characters"):
        evaluate(dict.fromkeys("abcd", "ACGT"), TREE, MODEL, device="numpy")
    with refused("found a table of named states, expected DNA data"):
        read_alignment(write(text_of()), "dna")
    with refused("table of named states, expected sequences as one of several alignments"):
        join_alignments({"one": read_alignment(write(text_of()))}, "all")
