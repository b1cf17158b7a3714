"""`plltool ancestral`: the table, the tree with names, protein parts, an OpenCL device."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from dendropy import Tree as DendropyTree

from plltool.analyses.ancestral.analysis import ancestral_states
from plltool.io.newick import parse_newick
from plltool.tree.splits import rf_distance

QUICK = ("--model", "HKY+F", "--device", "numpy")


def test_files(plltool, small, tree, tmp_path):
    plltool("ancestral", small, "--tree", tree, *QUICK, "--prefix", tmp_path / "a", status=0)
    rows = [line.split("\t") for line in (tmp_path / "a.state").read_text().splitlines()]
    assert rows[0] == ["Node", "Site", "State", "p_A", "p_C", "p_G", "p_T"]
    assert len(rows) == 1 + 4 * 300
    values = np.array([row[3:] for row in rows[1:]], dtype=float)
    np.testing.assert_allclose(values.sum(axis=1), 1.0, atol=4 * 0.5e-5)
    assert ["ACGT"[k] for k in values.argmax(axis=1)] == [row[2] for row in rows[1:]]
    newick = (tmp_path / "a.state.nwk").read_text()
    assert sorted(re.findall(r"\)(Node\d)", newick)) == ["Node1", "Node2", "Node3", "Node4"]
    record = json.loads((tmp_path / "a.ancestral.json").read_text())
    assert rf_distance(parse_newick(newick, "it"), parse_newick(record["tree"], "it")) == 0
    assert record["ancestors"]["sequences"]["Node1"] == "".join(row[2] for row in rows[1:301])
    table = [line.split("\t") for line in (tmp_path / "a.mutations.tsv").read_text().splitlines()[1:]]
    number = sum(row[-1] == "1" for row in table)
    assert f"Mutations by joint states:           {number}\n" in (tmp_path / "a.txt").read_text()


def test_mutations_lead_from_the_root_to_the_tips(plltool, small, tree, tmp_path):
    """From the sequence of Node1, the mutations on the way give those of all nodes and taxa."""
    given = ("--tree", tree, *QUICK, "--outgroup", "Pongo", "--prefix", tmp_path / "m")
    plltool("ancestral", small, *given, status=0)
    record = json.loads((tmp_path / "m.ancestral.json").read_text())["ancestors"]
    lines = small.read_text().splitlines()
    taxa = dict(zip([line[1:] for line in lines[::2]], lines[1::2], strict=True))
    lines = (tmp_path / "m.joint.fasta").read_text().split(">")[1:]
    joint = {text.split("\n")[0]: "".join(text.split("\n")[1:]) for text in lines}
    assert joint == record["joint_sequences"]
    rows = [line.split("\t") for line in (tmp_path / "m.mutations.tsv").read_text().splitlines()]
    assert rows[0] == ["Node", "Parent", "Site", "From", "To", "Marginal", "Joint"]
    parents = {row[0]: row[1] for row in rows[1:]}
    assert len(parents) == 9, "every branch has mutations, else this tests too little"
    annotated = (tmp_path / "m.mutations.nex").read_text()
    shown = DendropyTree.get(data=annotated, schema="nexus", extract_comment_metadata=True)
    numbers = [int(node.annotations.get_value("number")) for node in shown if node.parent_node]
    assert sum(numbers) == sum(row[6] == "1" for row in rows[1:])
    for column, sequences in ((5, record["sequences"]), (6, joint)):
        for node, parent in parents.items():
            made = list(sequences[parent])
            own = [row for row in rows[1:] if row[0] == node and row[column] == "1"]
            for row in own:
                assert made[int(row[2]) - 1] == row[3]
                made[int(row[2]) - 1] = row[4]
            assert [a for a, b in zip(made, (sequences | taxa)[node], strict=True) if b in "ACGT" and a != b] == []
            if column == 6:
                text = " ".join(f"{row[3]}{row[2]}{row[4]}" for row in own)
                assert f'[&mutations="{text}",number={len(own)}]' in annotated
    assert record["joint_lnl"] < json.loads((tmp_path / "m.ancestral.json").read_text())["lnl"]


def test_ambiguous_tips_and_parts(tmp_path):
    """By hand: long branches to c and d only; R has the parent's A, Y does not; sites count over all parts."""
    rows = {"a": "AAAAAAAAGG", "b": "AAAAAAAAGG", "c": "ACAAAAYAGG", "d": "AARAAANATG"}
    (tmp_path / "parts").write_text("JC, one = 1-8\nJC, two = 9-10\n")
    tree = "(a:0.001,b:0.001,(c:0.1,d:0.1):0.001);"
    found = ancestral_states(rows, tree, str(tmp_path / "parts"), brlen="linked", fixed=True, device="numpy")
    lines = [line.split("\t") for line in found.format_mutations().splitlines()]
    assert lines[0] == ["Node", "Parent", "Part", "Site", "From", "To", "Marginal", "Joint"]
    assert lines[1:] == [
        ["c", "Node2", "one", "2", "A", "C", "1", "1"],
        ["c", "Node2", "one", "7", "A", "C/T", "1", "1"],
        ["d", "Node2", "two", "9", "G", "T", "1", "1"],
    ]


def neighbours_of(newick):
    """By the name of each inner node: the sets of tips that hang on it."""
    dtree = DendropyTree.get(data=newick, schema="newick", preserve_underscores=True)
    everyone = frozenset(leaf.taxon.label for leaf in dtree.leaf_node_iter())
    found = {}
    for node in dtree.preorder_internal_node_iter():
        below = [frozenset(leaf.taxon.label for leaf in child.leaf_iter()) for child in node.child_nodes()]
        found[node.label] = frozenset([*below, everyone.difference(*below)]) - {frozenset()}
    return found


def test_the_outgroup_roots_and_states_stay_with_their_nodes(small, tree):
    outgroup = [parse_newick(Path(tree).read_text(), "it").names[-1]]
    plain, rooted = (ancestral_states(small, tree, "JC", device="numpy", outgroup=o) for o in (None, outgroup))
    found, expected = neighbours_of(rooted.labelled), neighbours_of(plain.labelled)
    assert frozenset(outgroup) in found["Node1"]
    assert frozenset(outgroup) not in expected["Node1"], "else nothing was tested"
    sequences, others = rooted.sequences(), plain.sequences()
    lines = [line.split("\t")[0] for line in rooted.format_states().splitlines()[1:]]
    assert list(dict.fromkeys(lines)) == ["Node1", "Node2", "Node3", "Node4"]
    assert {found[node]: sequences[node] for node in found} == {expected[node]: others[node] for node in expected}


def test_a_clade_of_one_state_has_an_ancestor_of_it(small, tree):
    result = ancestral_states(small, tree, "JC", device="numpy")
    columns = np.array([list(line) for line in small.read_text().splitlines()[1::2]])
    constant = (columns == columns[0]).all(axis=0)
    for sequence in result.sequences().values():
        assert (np.array(list(sequence))[constant] == columns[0, constant]).all()


def test_parts_of_dna_and_proteins(tmp_path, data_dir):
    """The answer in a part is that in the part alone, lengths as they are."""
    rng = np.random.default_rng(3)
    names = ["a", "b", "c", "d"]
    dna = ["".join(rng.choice(list("ACGT"), 12)) for _ in names]
    protein = ["".join(rng.choice(list("ARNDC"), 8)) for _ in names]
    tree = "(a:0.1,b:0.2,(c:0.1,d:0.3):0.2);"
    model = tmp_path / "parts"
    model.write_text("JC, one = 1-12\nLG, two = 13-20\n")
    both = {name: x + y for name, x, y in zip(names, dna, protein, strict=True)}
    settings = {"fixed": True, "device": "numpy"}
    found = ancestral_states(both, tree, str(model), brlen="linked", **settings)
    for k, (rows, alone) in enumerate(((dna, "JC"), (protein, "LG"))):
        expected = ancestral_states(dict(zip(names, rows, strict=True)), tree, alone, **settings)
        np.testing.assert_allclose(found.ancestors[k].probabilities, expected.ancestors[0].probabilities, rtol=1e-9)


@pytest.mark.opencl
def test_devices_agree(small, tree):
    answers = [ancestral_states(small, tree, "HKY{4}+FE+G4{0.5}", fixed=True, device=device, threads=1)
               for device in ("numpy", "opencl")]  # fmt: skip
    here, there = (answer.ancestors[0].probabilities for answer in answers)
    np.testing.assert_allclose(here, there, rtol=1e-9, atol=1e-13)
