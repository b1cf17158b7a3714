"""Reports made from records: what they say, that nothing in them can become code, and whose files they replace."""

import json
import math
import random
import re

import pytest
from click.testing import CliRunner
from page_reader import SVG, pictures_of, read_page, texts_of
from page_records import HOSTILE, NAMES, TREE, quoted_tree, record_of_dates, record_of_search, record_of_supports, write

import plltool
from plltool.cli import main
from plltool.reports.blocks import Table


def test_every_section_and_its_numbers(prefix):
    text = plltool.report(prefix).text
    for title in ("TREE", "DATA", "MODEL", "SEARCH", "SUPPORTS", "TESTS OF TREES", "WARNINGS", "METHODS", "REFERENCES"):
        assert f"\n{title}\n" in text
    for line in (
        "Tree length:          1.0000",
        "Constant sites:                50 (50.0 %)",
        "Parsimony-informative sites:   30 (30.0 %)",
        "Gaps and unknown characters:   12.5 %",
        "Free parameters:      13: 6 of the model, 7 branch lengths",
        "AIC:                  2026.000",
        f"BIC:                  {13 * math.log(100) + 2000:.3f}",
        f"AICc:                 {2026 + 2 * 13 * 14 / 86:.3f}",
        "Alpha, the shape of the gamma distribution: 0.5",
        "Proportion of invariable sites:             0.2",
        "Time of search:        1.5 min",
        "  Start tree  1  2",
        "  2           4  0",
        "- mind <the> gap",
        "- Identical: Homo, Pan",
        "  Replicates  Mean weighted RF distance  Halves that agree  Enough",
        "  50                             0.0500             50.0 %      no",
        "  100                            0.0100            100.0 %     yes",
        "run.bootstraps.nwk contains 50 bootstrap trees.",
        "  plltool search x.phy",
    ):
        assert f"\n{line}\n" in text
    assert "composition of each taxon with the average: 5 taxa with p <" in " ".join(text.split())
    assert re.search(r"^  Pan +12\.5 % +0\.0400$", text, re.MULTILINE)
    assert re.search(r"^  2 +-1002\.5000 +-2\.5000 +4$", text, re.MULTILINE)
    assert re.search(r"^  SPR +1 +3 +-1010\.0000$", text, re.MULTILINE)
    assert re.search(r"^  2 +-1009\.0000 +9\.0000 +0\.9000 +0\.0120 - .* - +0\.0300 -$", text, re.MULTILINE)
    assert re.findall(r"Branches with 95 % or more: (.*)", text) == ["1 of 2", "1 of 2"]
    assert "96/0.5" in text
    assert "40/0.99" in text
    assert max(map(len, text.splitlines())) <= 100


def test_dates(tmp_path):
    write(tmp_path / "run.date.json", record_of_dates())
    made = plltool.report(tmp_path / "run")
    for line in (
        "Clock rate:           0.00364 substitutions per site and year (90 %: 0.0031 to 0.0042)",
        "Root:                 1980.60 (90 %: 1978.00 to 1983.40), 1980-08-08",
        "Tips with a date:     5",
        "R2 of the regression: 0.975",
        "Coalescent time:      8.5 years",
    ):
        assert f"\n{line}\n" in made.text
    assert "run.date.tsv" in made.text
    assert "dated with TreeTime 0.12.1 (Sagulenko, Puller & Neher 2018), using 5 sampling dates" in " ".join(
        made.text.split()
    )
    plot = next(svg for svg in pictures_of(made.html) if "Root-to-tip" in "".join(svg.itertext()))
    dots = [element for element in plot.iter() if element.tag.endswith("circle")]
    assert [dot.find("{*}title").text.partition(",")[0] for dot in dots] == list(NAMES)
    across = [float(dot.get("cx")) for dot in dots]
    assert across == sorted(across)
    assert [float(dot.get("cy")) for dot in dots] == sorted((float(dot.get("cy")) for dot in dots), reverse=True)


def test_methods_cite_what_was_used(prefix):
    text = plltool.report(prefix).text
    methods, references = re.search(r"\nMETHODS\n-+\n\n(.*)\nREFERENCES\n-+\n(.*)", text, re.DOTALL).groups()
    flat = " ".join(methods.split())
    assert "the model HKY+F+IO+G4 (Hasegawa, Kishino & Yano 1985) with a proportion of invariable sites and" in flat
    cited = ("Felsenstein 1981", "Felsenstein 1985", "Anisimova et al. 2011", "Nixon 1999", "Pattengale et al. 2010")
    for source in (*cited, "Yang 1994", "Kishino & Hasegawa 1989", "Shimodaira 2002"):
        assert re.search(rf"\({re.escape(source)}[;)]", flat)
        assert re.search(rf"^- {source.split()[0].rstrip(',')}\b", references, re.MULTILINE), source
    for source in ("Lewis 2001", "Tavaré", "Minh", "Kalyaanamoorthy", "Lemoine"):
        assert source not in text


def test_the_page_loads_nothing_and_only_its_own_script_may_run(prefix):
    elements = read_page(plltool.report(prefix).html)
    assert not [name for name, _, _ in elements if name in ("link", "img", "iframe", "object", "form")]
    for name, attributes, _ in elements:
        assert not {"src", "srcset", "style"} & attributes.keys(), name
        assert not [key for key in attributes if key.startswith("on")], name
        assert attributes.get("href", "#").startswith("#")
    (policy,) = [given["content"] for _, given, _ in elements if given.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    html = plltool.report(prefix).html.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "http" not in html


def test_the_page_is_well_formed(prefix):
    html = plltool.report(prefix).html
    elements = read_page(html)
    ids = [given["id"] for _, given, _ in elements if "id" in given]
    assert len(ids) == len(set(ids))
    for name, given, _ in elements:
        assert given.get("aria-labelledby", ids[0]) in ids, name
    assert texts_of(elements, "h2") == texts_of(elements, "a")
    found = pictures_of(html)
    assert len(found) == 6  # the tree, rates, the trace, two histograms, the convergence of the bootstrap
    names = [text.text for text in found[0].iter(f"{SVG}text")]
    assert sorted(name for name in names if name in NAMES) == sorted(NAMES)


def test_results_are_coloured(prefix):
    cells = [(given.get("class"), text) for name, given, text in read_page(plltool.report(prefix).html) if name == "td"]
    marked = {
        ("bad", "0.0120 -"),
        ("good", "0.9300 +"),
        ("bad", "0.0300 -"),
        ("bad words", "no"),
        ("good words", "yes"),
    }
    assert marked <= {*cells}


def test_columns_of_words_are_not_on_the_right():
    rows = [("a", "2-7, 9", "GTR+F", "nan", "0.1 (2)", "1e-5"), ("b", "1", "x", "-0.5", "12", "-")]
    table = Table("Parts", ("Part", "Columns", "Model", "lnL", "Share", "p"), rows)
    kinds = ["words", "words", "words", None, None, None]
    for name, own in (("th", kinds), ("td", kinds[1:])):
        found = [given.get("class") for kind, given, _ in read_page(table.html("")) if kind == name]
        assert found[: len(own)] == own


def test_the_data_of_the_script_are_the_tree(prefix):
    elements = read_page(plltool.report(prefix).html)
    (data,) = [text for name, given, text in elements if name == "script" and given.get("type") == "application/json"]
    data = json.loads(data)
    assert sorted(label for label in data["labels"] if label in NAMES) == sorted(NAMES)
    assert sum(filter(None, data["lengths"])) == pytest.approx(1.0)
    assert data["kinds"] == [{"name": "fbp", "largest": 100}, {"name": "abayes", "largest": 1}]


def test_hostile_names_are_text(tmp_path):
    record = record_of_search(HOSTILE, quoted_tree(HOSTILE)) | {"warnings": [HOSTILE[0]], "command": HOSTILE[0]}
    record["data"]["source"] = HOSTILE[1]
    write(tmp_path / "x.json", record)
    report = plltool.report(tmp_path / "x")
    elements = read_page(report.html)
    assert len(texts_of(elements, "script")) == 2
    assert not [name for name, _, _ in elements if name in ("img", "iframe", "b")]
    assert "<script>alert" not in report.html.replace("\\u003c", "")
    shown = texts_of(elements, "text")
    assert [shown.count(name) for name in HOSTILE] == [1] * len(HOSTILE)
    data = next(text for name, given, text in elements if given.get("type") == "application/json")
    assert set(HOSTILE) <= set(json.loads(data)["labels"])


def test_hostile_names_of_parts_are_text(tmp_path):
    record = record_of_search()
    name = """x" onfocus="alert(1)" y='"""
    record["parts"] = [record["parts"][0] | {"name": name}, record["parts"][0] | {"name": "b"}]
    write(tmp_path / "x.json", record)
    elements = read_page(plltool.report(tmp_path / "x").html)
    assert not [given for _, given, _ in elements if "onfocus" in given]
    assert f"State frequencies of partition {name}" in [given.get("aria-label") for _, given, _ in elements]


def test_bytes_that_are_no_text(tmp_path):
    names = ("a\udc80", "b\x01", "c", "d")
    record = record_of_search(names, "('a\udc80':0.1,'b\x01':0.1,c:0.1,d:0.1);")
    record["data"]["identical"] = []
    write(tmp_path / "x.json", record)
    for path in plltool.report(tmp_path / "x").write():
        assert path.stat().st_size
    assert "\ufffd" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_large_trees_are_collapsed(tmp_path):
    rng = random.Random(5)
    names = [f"taxon{number:03}" for number in range(500)]
    parts = [f"{name}:0.1" for name in names]
    while len(parts) > 3:
        a, b = (parts.pop(rng.randrange(len(parts))) for _ in range(2))
        parts.append(f"({a},{b}):0.1")
    write(tmp_path / "x.json", record_of_search(names, f"({','.join(parts)});"))
    report = plltool.report(tmp_path / "x")
    assert len(report.html.encode()) < 300_000  # under 1 MB with every name several times
    texts = [text.text for text in pictures_of(report.html)[0].iter(f"{SVG}text")]
    rows = [text for text in texts if "taxon" in text]
    assert 190 <= len(rows) <= 200
    sizes = [int(found[1]) if (found := re.match(r"\[(\d+) taxa", row)) else 1 for row in rows]
    assert sum(sizes) == 500
    assert "too large for text" in report.text
    assert all(f'"{name}"' in report.html for name in names)


@pytest.mark.parametrize("ending", ["support.json", "test.json", "bootstraps.nwk"])
def test_any_record_alone_makes_a_report(prefix, ending):
    for path in prefix.parent.iterdir():
        if path.name != f"run.{ending}":
            path.unlink()
    report = plltool.report(prefix)
    read_page(report.html)
    assert ("TESTS OF TREES" in report.text) == (ending == "test.json")
    assert "SUPPORTS" in report.text or ending == "test.json"


def test_supports_of_another_tree_are_told_apart(prefix):
    other = record_of_supports()
    other["tree"] = other["tree"].replace("Homo", "x").replace("Pongo", "Homo").replace("x", "Pongo")
    write(prefix.with_name("run.support.json"), other)
    text = plltool.report(prefix).text
    assert "run.support.json has support values for a different tree from the one shown" in text
    assert "96/0.5" not in text


def test_a_turned_tree_is_the_same_tree(prefix):
    other = record_of_supports()
    other["tree"] = "((Hylobates:1,Pongo:1)96/0.5:1,Gorilla:1,(Pan:1,Homo:1)40/0.99:1);"
    write(prefix.with_name("run.support.json"), other)
    text = plltool.report(prefix).text
    assert "a different tree" not in text
    assert "96/0.5" in text


def test_what_is_no_report_stays(prefix, caplog):
    mine = prefix.with_name("run.txt")
    mine.write_text("my alignment")
    assert plltool.report(prefix).write() == [prefix.with_name("run.html")]
    assert mine.read_text() == "my alignment"
    assert "run.txt: not written, because the existing file is not a plltool report" in caplog.text
    mine.unlink()
    for _ in range(2):  # a report is replaced
        assert len(plltool.report(prefix).write()) == 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (None, "found no record of a run with this prefix, expected one of: PREFIX.json"),
        ({"trace": 5}, "found TypeError: .* in a record"),
        ({"parts": [{}]}, "found KeyError: .* in a record"),
        ({"tree": "((a"}, "the record"),
    ],
)
def test_bad_records(tmp_path, change, problem):
    if change is not None:
        write(tmp_path / "x.json", record_of_search() | change)
    with pytest.raises(plltool.InputError, match=problem):
        plltool.report(tmp_path / "x")


def test_the_report_of_a_real_search(data_dir, tmp_path):
    """Parts, a choice of the model and a search with several climbs: the same report from the command again."""
    options = ("--device", "numpy", "--workers", "1", "--effort", "fast", "--prefix", str(tmp_path / "run"))
    given = ("--model", str(data_dir / "primates.part"), "--supports", "abayes")
    done = CliRunner().invoke(main, ["search", str(data_dir / "primates.phy"), *options, *given], prog_name="plltool")
    assert done.exit_code == 0
    first = [(tmp_path / f"run.{ending}").read_bytes() for ending in ("html", "txt")]
    assert b"Tree length in each part" in first[0]
    assert CliRunner().invoke(main, ["report", str(tmp_path / "run")], prog_name="plltool").exit_code == 0
    assert [(tmp_path / f"run.{ending}").read_bytes() for ending in ("html", "txt")] == first


def page_of_parts(folder, number):
    record = record_of_search()
    record["parts"] = [record["parts"][0] | {"name": f"gene{part}"} for part in range(number)]
    write(folder / "x.json", record)
    report = plltool.report(folder / "x")
    model = re.search(r'<section id="model".*?</section>', report.html, re.DOTALL)[0]
    return model, re.search(r"\nMODEL\n.*?\nSEARCH\n", report.text, re.DOTALL)[0]


def test_parameters_of_parts_are_folded(tmp_path):
    model, text = page_of_parts(tmp_path, 3)
    unfolded = re.sub("<details>.*?</details>", "", model, flags=re.DOTALL)
    for part in range(3):
        assert f"<summary>Parameters of partition gene{part}</summary>" in model
        assert f"State frequencies of partition gene{part}" in model
        assert f"State frequencies of partition gene{part}:" in text
    assert "State frequencies" not in unfolded
    assert "Tree length in each part" in unfolded


def test_tables_and_plots_of_hundreds_of_parts_are_folded(tmp_path):
    model, text = page_of_parts(tmp_path, 300)
    unfolded = re.sub("<details>.*?</details>", "", model, flags=re.DOTALL)
    assert "<summary>Tree length in each partition: 300 rows</summary>" in model
    assert "gene7" not in unfolded
    assert "<svg" not in unfolded
    assert text.count("  ... and 280 more, see the HTML page") == 2, "the parts, and their models with all values"


def ancestral_record(**changes):
    return (
        record_of_search()
        | {"ancestors": {"tree": TREE.format("N2", "N3"), "sequences": {}, "joint_lnl": -1.0}}
        | changes
    )


def with_model(spec):
    record = record_of_search()
    parameters = record["parameters"] | {"spec": spec}
    return {"parts": [record["parts"][0] | {"parameters": parameters}]}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({}, None),
        (with_model("HKY{1/4}+FU{0.3/0.2/0.1/0.4}+IU{0.2}+G4{0.5}"), None),
        (with_model("JC"), "another model"),
        (with_model("HKY+F+G4"), "another model"),
        ({"n_sites": 99}, "other data"),
        ({"data": {"digest": "0123"}}, "other data"),
        (
            {"tree": TREE.format("", "").replace("Pan", "x").replace("Pongo", "Pan").replace("x", "Pongo")},
            "another tree",
        ),
        ({"tree": "((Hylobates:1,Pongo:1):1,Gorilla:1,(Pan:1,Homo:1):1);"}, None),
    ],
)
def test_a_run_that_does_not_belong_to_the_first_one_is_left_out(prefix, caplog, changes, what):
    write(prefix.with_name("run.ancestral.json"), ancestral_record(**changes))
    report = plltool.report(prefix)
    line = f"the results of `ancestral` are left out: they are of {what}"
    assert ("ANCESTRAL STATES" in report.text) == (what is None)
    assert ("reconstructed" in report.text) == (what is None)
    assert (line in " ".join(report.text.split())) == (what is not None)
    assert (line in caplog.text) == (what is not None)


def test_methods_tell_of_a_chosen_model_only_if_it_was_used(prefix):
    choice = {"criterion": "BIC", "best": "HKY+FO+I+G4", "candidates": [], "left_out": []}
    for best, is_told in (("HKY+FO+I+G4", True), ("JC", False)):
        record = {key: value for key, value in record_of_search().items() if key not in ("parts", "parameters")}
        write(prefix.with_name("run.select-model.json"), record | {"model_choice": choice | {"best": best}})
        assert ("was selected by BIC" in " ".join(plltool.report(prefix).text.split("METHODS")[-1].split())) == is_told


def test_methods_tell_of_supports_only_if_they_are_of_the_tree(prefix):
    assert "the nonparametric bootstrap" in plltool.report(prefix).text.split("METHODS")[1]
    test_supports_of_another_tree_are_told_apart(prefix)
    assert "the nonparametric bootstrap" not in plltool.report(prefix).text.split("METHODS")[1]


@pytest.mark.parametrize(
    ("stages", "told"),
    [
        (("start", "nni", "polish"), " and used nearest-neighbour interchanges (NNI)."),
        (
            ("start", "nni", "spr"),
            " and used nearest-neighbour interchanges (NNI) and subtree pruning and regrafting (SPR).",
        ),
        (("start",), ", and no subtrees were moved."),
        (("polish",), "."),  # resumed: what went before is not known
    ],
)
def test_methods_tell_the_stages_that_ran(tmp_path, stages, told):
    record = record_of_search()
    event = record["trace"][0]
    record["trace"] = [event | {"stage": stage} for stage in stages]
    write(tmp_path / "run.json", record | {"seed": 1})
    text = " ".join(plltool.report(tmp_path / "run").text.split())
    assert f"(random seed 1){told}" in text, text
