"""What an alignment is said to hold; figures of primates.phy are those of IQ-TREE 2.0.7's report."""

import numpy as np

import plltool
from plltool.model.describe import describe_data
from plltool.run.inputs import resolve_inputs

ROWS = {"a": "AAC?-GTAR", "b": "AAC-?GTAR", "c": "AGT-AATCG", "d": "AGTCACTCG", "e": "AATCAGTNY"}


def described(given, model=None, **settings):
    return describe_data(resolve_inputs(given, model, **settings)[0])


def test_primates(data_dir):
    """377 constant sites, 367 parsimony-informative ones; cut into parts they are the same."""
    for model in (None, data_dir / "primates.part"):
        found = described(data_dir / "primates.phy", model)
        assert (found["n_constant"], found["n_informative"], len(found["taxa"])) == (377, 367, 12)


def test_counts_by_hand():
    """Constant: columns 1, 5 and 7, and none of R, R, G, G, Y. Informative: 2, 3 and 8, gaps and sets left out."""
    found = described(ROWS)
    assert found["n_constant"] == 4  # column 4 has ?, -, -, C, C
    assert found["n_informative"] == 3
    assert [taxon["name"] for taxon in found["taxa"]] == list("abcde")
    assert [round(9 * taxon["gaps"]) for taxon in found["taxa"]] == [2, 2, 1, 0, 1]
    assert round(45 * found["gaps"]) == 6
    assert found["identical"] == [["a", "b"]]
    assert found["kinds"] == ["DNA"]


def test_composition_of_each_part_is_that_of_check():
    """`check` is held to IQ-TREE's p-values."""
    found = described(ROWS)
    (part,) = plltool.check(ROWS, device="numpy")["parts"]
    assert {taxon["name"]: taxon["composition"] for taxon in found["taxa"]} == {
        name: [p] for name, p in part["composition"].items()
    }


def test_the_root_of_other_models_is_no_taxon():
    rows = ROWS | {"empty": 9 * "-", "none": 9 * "N"}
    found = described(rows, "UNREST", rooted=True)
    assert [taxon["name"] for taxon in found["taxa"]] == [*"abcde", "empty", "none"]
    assert sorted(found["identical"]) == [["a", "b"], ["empty", "none"]]


def test_the_record_of_a_search_tells_how_far_apart_the_climbs_ended():
    found = plltool.search(ROWS, "JC", starts=2, start="random", device="numpy", workers=1)
    record = found.as_record()
    assert len(record["start_distances"]) == len(record["start_lnls"]) == 2
    assert min(record["start_distances"]) == 0
    assert record["start_distances"] in record["climb_distances"]
    assert np.array_equal(record["climb_distances"], np.transpose(record["climb_distances"]))
    assert np.shape(record["climb_distances"]) == (2, 2)
    assert record["data"] == describe_data(found.data)
