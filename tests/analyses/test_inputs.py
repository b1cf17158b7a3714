"""What users hand over from Python: objects of other libraries, outgroups, misspelt keywords; and how results look."""

import copy
import datetime
import json
from io import StringIO

import dendropy
import numpy as np
import pandas
import pytest
from Bio import AlignIO, Phylo
from oracles.likelihood import brute_force, dna_columns
from small_alignments import write_fasta
from tree_samples import sides_of_root

import plltool
from plltool.errors import InputError
from plltool.io.table_reader import match_dates

ROWS = {
    "Homo_s": "ACGTACGTACGTTTGA",
    "Pan_t": "ACGTACGTACGATTGA",
    "Lemur_c": "ACGAACCTAGGATTCA",
    "Mus_m": "TCGAACCTAGGATACC",
    "Rat": "TCGAACCTTGGATACA",
}
TREE = "((Homo_s:0.1,Pan_t:0.1):0.1,Lemur_c:0.2,(Mus_m:0.1,Rat:0.1):0.2);"
QUICK = {"model": "JC", "device": "numpy"}
SAME_OPTIMUM = {"abs": 0.01}  # lnL gained by a round below which lengths count as optimised


def test_parts_cut_from_an_alignment(tmp_path):
    """A taxon that a part has only gaps of is not in it; weights of sites go with their columns."""
    rows = dict(zip("ABCDE", ("ACGTAC", "AAGTCC", "ACCTAC", "GCGTAC", "--GTAC"), strict=True))
    (tmp_path / "b.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in rows.items()))
    (tmp_path / "p.nex").write_text("#nexus\nbegin sets;\ncharset one = 1-2;\ncharset two = 3-.\\2 4;\nend;\n")
    data = plltool.read_alignment(tmp_path / "b.fasta", site_weights=[1, 2, 3, 4, 5, 6])
    for given in (str(tmp_path / "p.nex"), "DNA, one = 1-2\nK80, two = 3-.\\2, 4"):
        one, two = plltool.cut_parts(data, given).values()
        assert dict(zip(one.names, one.rows, strict=True)) == {"A": b"AC", "B": b"AA", "C": b"AC", "D": b"GC"}
        assert (two.rows, two.source) == ((b"GTA", b"GTC", b"CTA", b"GTA", b"GTA"), f"{tmp_path / 'b.fasta'}: two")
        assert (one.site_weights, two.site_weights) == ((1, 2), (3, 4, 5))
    with pytest.raises(plltool.InputError, match="found columns 1-7, expected columns within 1-6"):
        plltool.cut_parts(data, "DNA, x = 1-7")
    counted = plltool.read_alignment(tmp_path / "b.fasta", constant_sites=[1, 0, 0, 0])
    with pytest.raises(plltool.InputError, match="found constant sites to add to parts"):
        plltool.cut_parts(counted, "DNA, x = 1-6")


def test_parts_may_be_other_data_than_the_whole(tmp_path):
    """The letters of a part say what it is, unless the file has said so."""
    pairs = zip("ABC", ("ACGTACMKLE", "AAGTCCMKLV", "ACCTACMRLE"), strict=True)
    (tmp_path / "m.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in pairs))
    one, two = plltool.cut_parts(tmp_path / "m.fasta", "DNA, one = 1-6\nLG, two = 7-10").values()
    assert (one.states.name, two.states.name) == ("DNA", "protein")


def test_invariable_sites_are_counted():
    """Sites at which all taxa may have the same state: 7 of 16, the last one because of R and a gap."""
    rows = {name: row[:-1] + last for (name, row), last in zip(ROWS.items(), "AR-AA", strict=True)}
    same = sum(len(set(column)) == 1 for column in zip(*(row[:-1] for row in rows.values()), strict=True))
    counted = plltool.evaluate(rows, TREE, "JC+IC", device="numpy", fixed=True)
    given = plltool.evaluate(rows, TREE, f"JC+IU{{{(same + 1) / 16!r}}}", device="numpy", fixed=True)
    assert counted.lnl == given.lnl
    assert counted.parameters["pinv"] == (same + 1) / 16
    assert counted.parameters["n_free_parameters"] == 1


@pytest.fixture(scope="module")
def lnl(tmp_path_factory):
    """Of the tree and a file, its lengths optimised."""
    return plltool.evaluate(write_fasta(tmp_path_factory.mktemp("rows") / "x.fasta", ROWS), TREE, **QUICK).lnl


def alignments():
    fasta = "".join(f">{name}\n{row}\n" for name, row in ROWS.items())
    yield ROWS
    yield list(ROWS.items())
    yield {name: np.array(list(row)) for name, row in ROWS.items()}
    yield list(ROWS), np.array([list(row) for row in ROWS.values()])
    yield AlignIO.read(StringIO(fasta), "fasta")
    yield dendropy.DnaCharacterMatrix.get(data=fasta, schema="fasta")


def trees():
    yield Phylo.read(StringIO(TREE), "newick")
    yield dendropy.Tree.get(data=TREE, schema="newick")  # underscores become blanks
    yield dendropy.Tree.get(data=TREE, schema="newick", preserve_underscores=True)
    yield plltool.evaluate(ROWS, TREE, **QUICK).tree


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threads": True}, "threads: found True, expected a whole number above 0"),
        ({"memory": 2e9}, "memory: found 2000000000.0, expected a whole number above 0"),
        ({"device": plltool.Hardware("numpy")}, r"device: found Hardware\(device='numpy', .*, expected a name, or"),
        ({"device": [1, 2]}, r"device: found \[1, 2\], expected a name, or several in a list"),
        ({"device": ["numpy"] * 2, "share": 0.5}, r"share: found 0.5, expected a number for each device"),
        ({"options": {"starts": 1}}, r"options: found \{'starts': 1\}, expected plltool.SearchOptions\(...\)"),
        ({"listener": 3}, "listener: found 3, expected a function"),
        ({"checkpoint": 3}, "checkpoint: found 3, expected text or a path"),
        ({"partitions": ["a"]}, r"partitions: found \['a'\], expected text or a path"),
        ({"time": "5"}, "time: found '5', expected a positive number of seconds"),
        ({"outgroup": 3}, "outgroup: found 3, expected a name, or several in a list"),
        ({"outgroup": ["Rat", 3]}, r"outgroup: found \['Rat', 3\], expected a name, or several in a list"),
        ({"model": np.eye(2)}, r"model: found array\(\[\[1., 0.\], \[0., 1.\]\]\), expected a string, a file"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_arguments_of_another_type(wrong, message):
    with pytest.raises(InputError, match=rf"\A{message}[^\n]*\Z"):
        plltool.search(ROWS, **QUICK | wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plltool.SearchOptions(radii=5), "radii: found 5, expected at least one, each 1 to"),
        (lambda: plltool.SearchOptions(radii="5,10"), "radii: found '5,10', expected at least one, each 1 to"),
        (lambda: plltool.SearchOptions(epsilon="x"), "epsilon: found 'x', expected a positive lnL"),
        (lambda: plltool.date(ROWS, TREE, {}, clock_rate="x", **QUICK), "clock_rate: found 'x', expected a number"),
        (lambda: plltool.date(ROWS, TREE, {"Rat": []}, **QUICK), r"dates: taxon 'Rat': date: found \[\], expected"),
        (lambda: plltool.simulate(TREE, None, 5), "model: found None, expected one, or a partition file"),
        (lambda: plltool.simulate(TREE, ["JC"], 5), "model: found 1 models, expected one, or a partition file"),
        (lambda: plltool.supports(TREE, [TREE], 3), "supports: found 3, expected some of: fbp, tbe"),
        (lambda: plltool.search_supports("x.json", "fbp"), "result: found 'x.json', expected what plltool"),
        (lambda: plltool.genes([ROWS]), r"alignments: found \[\{'Homo_s': .*, expected a folder, or align"),
        (lambda: plltool.genes({1: ROWS}), "gene: found 1, expected the name of a gene"),
        (lambda: plltool.concordance(TREE, []), "number of gene trees: found 0, expected at least 1"),
        (lambda: plltool.bootstrap_convergence([TREE] * 50, cutoff=5), "cutoff: found 5, expected 0 .. 1"),
        (lambda: plltool.place(ROWS, TREE, ROWS, heuristic="x"), "heuristic: found 'x', expected a number above"),
        (lambda: plltool.place(ROWS, TREE, ROWS, filter_acc_lwr="1"), "filter_acc_lwr: found '1', expected 0 .. 1"),
        (lambda: plltool.select_model(ROWS, candidates=3, device="numpy"), "candidates: found 3, expected names"),
        (lambda: plltool.select_model(ROWS, candidates=[3], device="numpy"), "candidates: found 3, expected one of: "),
        (lambda: plltool.select_model(ROWS, also=3, device="numpy"), "also: found 3, expected a model string"),
        (lambda: plltool.parse_size(5), 'memory: found 5, expected a size such as "2G"'),
        (lambda: plltool.json_schema("SearchResult"), r"found \('SearchResult',\), expected classes of results"),
        (lambda: plltool.consensus([TREE], threshold="x"), "threshold: found 'x', expected a share from 0.5"),
        (lambda: plltool.read_tree_set([TREE], burnin=1), "burnin: found 1, expected a share from 0 to below 1"),
        (lambda: plltool.bench(plltool.Hardware("numpy"), shapes=[(8,)]), r"shapes: found \[\(8,\)\], expected pairs"),
        (lambda: plltool.bench(plltool.Hardware("numpy"), repetitions=0), "repetitions: found 0, expected at least 1"),
        (lambda: plltool.evaluate(ROWS, TREE, site_frequencies=[["a"]]), r"site_frequencies: found \[\['a'\]\], exp"),
    ],
)  # fmt: skip
def test_values_of_another_type(call, message):
    with pytest.raises(InputError, match=rf"\A{message}[^\n]*\Z"):
        call()


def test_records_hold_numbers_of_numpy():
    """A loop over numpy's numbers, or a setting from an array, gives records as Python's own numbers do."""
    one, few = np.int64(1), np.float32(0.25)
    sampling = plltool.SampleOptions(np.int64(40), sample_every=np.int64(10), burnin=few, temperature=few)
    search = plltool.SearchOptions(radii=[np.int64(5)], epsilon=few, starts=one)
    for result in (
        plltool.bench(plltool.Hardware("numpy"), np.int64(4), np.array([[4, 5]]), one, one),
        plltool.search(ROWS, seed=one, options=search, time=np.float32(2), **QUICK),
        plltool.bootstrap(ROWS, replicates=one, seed=one, workers=one, **QUICK),
        plltool.sample(ROWS, seed=one, options=sampling, **QUICK),
        plltool.topology_tests(ROWS, f"{TREE}{TREE}", seed=one, replicates=np.int64(10), **QUICK),
    ):
        assert json.loads(result.to_json()) == json.loads(json.dumps(result.as_record()))


def test_dates_of_pandas_and_of_the_calendar():
    """The middle of a day: 31 + 14 - 1/2 days after the year begins, of 365."""
    days = {"Homo_s": datetime.date(2001, 2, 14), "Pan_t": pandas.Timestamp("2003-02-14 12:00"), "Mus_m": 2002.5}
    series = pandas.Series(days)
    for given in (days, series, series.to_frame("day"), series.rename_axis("name").reset_index()):
        found, *_ = match_dates(given, None, None, list(ROWS))
        assert found["Homo_s"].first <= 2001 + 44.5 / 365 <= found["Homo_s"].last
        assert found["Pan_t"].first <= 2003 + 44.5 / 365 <= found["Pan_t"].last
        assert (found["Mus_m"].first, found["Mus_m"].last, found["Rat"]) == (2002.5, 2002.5, None)
    with pytest.raises(InputError, match="found a table of 'x', 'y', 'z', expected two columns"):
        match_dates(pandas.DataFrame([[1, 2, 3]], columns=list("xyz")), None, None, list(ROWS))


def test_numbers_of_numpy_and_lists_of_devices_are_settings_of_the_hardware():
    few = plltool.Hardware(["numpy", "cpu"], threads=np.int64(2), share=np.array([1, 3]))
    assert few == plltool.Hardware("numpy,cpu", threads=2, share=(1.0, 3.0))
    assert type(few.threads) is int
    assert (
        plltool.search(ROWS, starts=2, workers=np.int64(2), **QUICK).lnl == plltool.search(ROWS, starts=2, **QUICK).lnl
    )


def test_queries_in_all_forms(tmp_path):
    query = {"q": "ACGTACGTACGTTTGN"}
    (tmp_path / "q.fasta").write_text(">q\nACGTACGTACGTTTGN\n")
    read = plltool.read_queries([tmp_path / "q.fasta"])
    given = [tmp_path / "q.fasta", tmp_path.glob("q.fasta"), read, read[0], query, list(query.items()), iter(read)]
    rows = [plltool.place(ROWS, TREE, one, "JC", device="numpy").to_dataframe() for one in given]
    for row in rows[1:]:
        assert row.equals(rows[0])
    assert plltool.read_queries(tmp_path / "q.fasta")[0].rows == read[0].rows


def test_other_objects_that_are_refused():
    for call, message in (
        (lambda: plltool.search(pandas.DataFrame([["A", np.nan]], ["x"])), "'x', position 2: found nan, expected a"),
        (lambda: plltool.bench("numpy"), "hardware: found 'numpy', expected a plltool.Hardware"),
        (lambda: plltool.compare(ROWS, plltool.Hardware("numpy"), "numpy"), "b: found 'numpy', expected a"),
        (lambda: plltool.compare_likelihoods(ROWS, TREE, ["cpu", "gpu"]), r"hardware: found \['cpu', 'gpu'\], exp"),
        (lambda: plltool.join_alignments({}, "all"), r"genes: found \{\}, expected a mapping of names to alignments"),
        (lambda: plltool.write_record("x.json", []), r"record: found \[\], expected what as_record\(\) of"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            call()
    with plltool.Likelihood(ROWS, TREE, lnl_only=True, **QUICK) as likelihood:
        for call, message in (
            (lambda: likelihood.likelihoods("JC"), "models: found 'JC', expected a list of models"),
            (lambda: likelihood.set_length("0", 0.1), r"found branch '0', expected 0 .. 6"),
            (lambda: likelihood.gradient(), "a Likelihood holds more without lnl_only"),
        ):
            with pytest.raises(plltool.PlltoolError, match=message):
                call()
        with pytest.raises(TypeError, match="a Likelihood cannot be pickled or copied: make one from the data"):
            copy.deepcopy(likelihood)


def test_text_of_several_trees_has_a_warning(caplog):
    plltool.evaluate(ROWS, f"{TREE}\r\n{TREE}\r\n", **QUICK)
    assert "the tree given: found several trees, the first one is taken" in caplog.messages


@pytest.mark.parametrize("alignment", list(alignments()), ids=lambda given: type(given).__name__)
def test_alignments_of_other_libraries(alignment, lnl):
    assert plltool.evaluate(alignment, TREE, **QUICK).lnl == lnl


def test_many_trees_in_all_forms(tmp_path):
    file = tmp_path / "x.nwk"
    file.write_text(TREE)
    given = [file, TREE, *trees()]
    assert not plltool.tree_distances(given).any()
    assert plltool.tree_distances(given).shape == (6, 6)
    assert plltool.tree_distances(TREE).shape == (1, 1)
    for tree in given:
        assert plltool.supports(tree, given).values["fbp"].tolist().count(100.0) == 2, "both internal branches"
    for wrong in (plltool.read_tree(file), None, 7):
        with pytest.raises(InputError, match=r"trees: found an object of type .*, expected a file, or a list of trees"):
            plltool.tree_distances(wrong)
    with pytest.raises(InputError, match="tree: found an object of type int, expected a file, Newick text"):
        plltool.consensus([7])


@pytest.mark.parametrize("tree", list(trees()), ids=lambda given: type(given).__module__)
def test_trees_of_other_libraries(tree, lnl, tmp_path):
    assert plltool.evaluate(ROWS, tree, **QUICK).lnl == pytest.approx(lnl, **SAME_OPTIMUM)
    assert plltool.search(ROWS, start=tree, constraint=tree, **QUICK).lnl == pytest.approx(lnl, **SAME_OPTIMUM)
    assert len(plltool.simulate(tree, "JC", 10).names) == 5
    file = tmp_path / "x.nwk"
    file.write_text(TREE)
    assert plltool.supports(tree, file).values["fbp"].tolist().count(100.0) == 2, "both internal branches"


def test_objects_that_are_refused():
    with pytest.raises(InputError, match="alignment: found an object of type int, expected a file, a mapping of names"):
        plltool.search(3)
    with pytest.raises(InputError, match=r"found the text '>a\\nAC\\n>b\\nAT\\n', expected the name of a file"):
        plltool.search(">a\nAC\n>b\nAT\n")
    with pytest.raises(InputError, match="tree: found an object of type int, expected a file, Newick text, a plltool"):
        plltool.evaluate(ROWS, 3)
    with pytest.raises(InputError, match="model: found 3, expected a string, a file, or the models of a result"):
        plltool.evaluate(ROWS, TREE, 3)
    with pytest.raises(InputError, match="alignment: found an object of type int, expected a file, a mapping"):
        plltool.place(ROWS, TREE, 3)
    with pytest.raises(InputError, match="found an empty text, expected the name of a file"):
        plltool.evaluate(ROWS, "")


def test_lists_of_words_may_be_texts():
    alrt = plltool.alrt(ROWS, TREE, "JC", kinds="abayes, lbp", replicates=10, device="numpy")
    assert alrt.supports.kinds == ("abayes", "lbp")
    assert plltool.supports(TREE, [TREE], "tbe").kinds == ("tbe",)
    chosen = plltool.select_model(ROWS, TREE, candidates="JC,F81", also="MIX{JC,K80}", device="numpy", free_rates=False)
    assert {fit.model.split("+")[0].split("{")[0] for fit in chosen.candidates} == {"JC", "F81", "MIX"}


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_lengths_that_are_refused(tmp_path, wrong):
    (tmp_path / "x.nwk").write_text(TREE)
    tree = plltool.read_tree(tmp_path / "x.nwk")
    tree.lengths[2] = wrong
    with pytest.raises(InputError, match=f"found branch 2 with the length {wrong:g}, expected lengths of at least 0"):
        plltool.evaluate(ROWS, tree, **QUICK)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plltool.search(ROWS, bootstrap=10), r"search\(\) got .* 'bootstrap'; plltool.search_supports makes"),
        (lambda: plltool.search(ROWS, efort="fast"), r"search\(\) got .* 'efort'; did you mean 'effort'\?"),
        (lambda: plltool.search(ROWS, radius=3), r"'radius'; write options=plltool.SearchOptions\(radii=\.\.\.\)"),
        (lambda: plltool.evaluate(ROWS, TREE, fixd=True), r"evaluate\(\) got .* 'fixd'; did you mean 'fixed'\?"),
        (lambda: plltool.alrt(ROWS, TREE, replicate=1), r"alrt\(\) got .*; did you mean 'replicates'\?"),
        (lambda: plltool.ancestral_states(ROWS, TREE, brln=""), r"ancestral_states\(\) got .*; did you mean 'brlen'\?"),
        (lambda: plltool.topology_tests(ROWS, [TREE], sead=1), r"topology_tests\(\) got .*; did you mean 'seed'\?"),
        (lambda: plltool.bootstrap(ROWS, threds=1), r"bootstrap\(\) got .*; did you mean 'threads'\?"),
        (lambda: plltool.ultrafast_bootstrap(ROWS, TREE, "JC", sed=1), r"ultrafast_bootstrap\(\) .* mean 'seed'\?"),
        (lambda: plltool.check(ROWS, devise="numpy"), r"check\(\) got .*; did you mean 'device'\?"),
        (lambda: plltool.Likelihood(ROWS, TREE, precison="single"), r"Likelihood\(\) got .* mean 'precision'\?"),
        (lambda: plltool.sample(ROWS, generations=9), r"; write options=plltool.SampleOptions\(generations="),
        (lambda: plltool.search(ROWS, qqq=1), r"search\(\) got an unexpected keyword argument 'qqq'$"),
        (lambda: plltool.search(ROWS, hardware=1), r"search\(\) got .* 'hardware'; give the fields of plltool.Hard"),
        (lambda: plltool.date(ROWS, TREE, {}, hardware=1), r"date\(\) got .* 'hardware'; give the fields"),
    ],
)  # fmt: skip
def test_misspelt_keywords(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_an_outgroup_may_be_one_name():
    for result in (
        plltool.search(ROWS, outgroup="Rat", **QUICK),
        plltool.evaluate(ROWS, TREE, outgroup="Rat", **QUICK),
        plltool.alrt(ROWS, TREE, outgroup="Rat", **QUICK),
        plltool.ancestral_states(ROWS, TREE, outgroup="Rat", **QUICK),
    ):
        assert {"Rat"} in sides_of_root(result.newick)
        assert not any("outgroup" in warning for warning in result.warnings)
    with plltool.Likelihood(ROWS, TREE, **QUICK) as likelihood:
        assert likelihood.newick("Rat") == likelihood.newick(["Rat"])
    with pytest.raises(InputError, match="the outgroup's taxon 'Rattus' is not in the alignment"):
        plltool.evaluate(ROWS, TREE, outgroup="Rattus", **QUICK)


def test_a_rooted_tree_loses_its_root_with_a_warning():
    rooted = "((Homo_s:0.1,Pan_t:0.1):0.1,(Lemur_c:0.2,(Mus_m:0.1,Rat:0.1):0.2):0.1);"
    hint = "--outgroup roots the result"
    warning = f"the tree given: the tree is rooted, its root is removed; {hint}"
    for result in (
        plltool.evaluate(ROWS, rooted, **QUICK),
        plltool.search(ROWS, start=rooted, **QUICK),
        plltool.topology_tests(ROWS, [TREE, rooted], **QUICK),
        plltool.simulate(rooted, "JC", 10),
    ):
        assert warning in result.warnings
    assert plltool.evaluate(ROWS, plltool.evaluate(ROWS, rooted, **QUICK).tree, **QUICK).warnings == ()


def test_lengths_out_of_bounds_are_moved_with_a_warning(lnl):
    tree = TREE.replace(":0.2", ":-0.2").replace("Rat:0.1", "Rat:0")
    result = plltool.evaluate(ROWS, tree, **QUICK)
    assert result.lnl == pytest.approx(lnl, **SAME_OPTIMUM)
    assert (
        result.as_record()["warnings"]
        == [*result.warnings]
        == [
            "the tree given: 2 negative branch lengths read as 0",
            "3 branch lengths outside 1e-06 .. 100 moved to the bound",
        ]
    )
    assert plltool.search(ROWS, start=tree, **QUICK).lnl == pytest.approx(lnl, **SAME_OPTIMUM)


def test_three_taxa():
    rows = {name: ROWS[name][:6] * 5 for name in ("Homo_s", "Lemur_c", "Mus_m")}
    found = [plltool.search(rows, **QUICK), plltool.evaluate(rows, "(Homo_s,Lemur_c,Mus_m);", **QUICK)]
    assert found[0].lnl == pytest.approx(found[1].lnl, **SAME_OPTIMUM)
    jc = [(1.0, [0.25] * 4, (np.ones((4, 4)) - 4 * np.eye(4)) / 3)]
    columns = dna_columns(rows, rows)
    for result in found:
        oracle = brute_force(result.tree.ends.tolist(), result.tree.lengths, columns, jc).sum()
        assert result.lnl == pytest.approx(oracle, rel=1e-11)  # rounding of short sums
        assert "the mapping given: 3 taxa have only one topology" in result.warnings
    assert plltool.alrt(rows, found[0].tree, **QUICK).supports.as_record()["branches"] == []
    ufboot = plltool.ultrafast_bootstrap(rows, found[0].tree, replicates=10, workers=1, **QUICK)
    assert ufboot.as_record()["branches"] == []


def test_what_objects_look_like():
    tree = plltool.evaluate(ROWS, TREE, fixed=True, **QUICK).tree
    assert repr(tree) == "<Tree: 5 taxa, 7 branches, length 0.9>"
    assert repr(tree.unlink(2)) == "<Tree: 5 taxa, 7 branches, lengths of 2 parts>"
    searched = plltool.search(ROWS, **QUICK)
    assert repr(searched) == f"<SearchResult: lnL {searched.lnl:.3f}, 5 taxa, 16 sites, JC, {searched.device}>"
    results = [
        plltool.evaluate(ROWS, TREE, **QUICK),
        plltool.alrt(ROWS, TREE, **QUICK),
        plltool.ancestral_states(ROWS, TREE, **QUICK),
        plltool.topology_tests(ROWS, [TREE, TREE], **QUICK),
        plltool.simulate(TREE, "JC", 10),
        plltool.bootstrap(ROWS, replicates=2, workers=1, **QUICK),
        plltool.supports(tree, [tree, tree]),
        plltool.search_supports(searched, ["abayes"], device="numpy"),
        plltool.compare(ROWS, plltool.Hardware("numpy"), plltool.Hardware("numpy"), model="JC"),
        plltool.consensus([tree, tree]),
    ]
    with plltool.Likelihood(ROWS, TREE, **QUICK) as likelihood:
        for thing in [*results, likelihood, likelihood.data]:
            assert repr(thing).startswith(f"<{type(thing).__name__}: ")
            assert len(repr(thing)) < 120
            assert "\n" not in repr(thing)


def test_trees_for_other_libraries(tmp_path):
    file = tmp_path / "x.nwk"
    file.write_text(TREE)
    tree = plltool.read_tree(file)
    assert tree.to_dendropy().taxon_namespace.labels() == list(tree.names)
    assert [leaf.name for leaf in tree.to_biopython().get_terminals()] == list(tree.names)
