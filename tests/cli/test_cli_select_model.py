"""`plltool select-model`: table, files, errors; `search --model auto`."""

import json

from small_alignments import write_fasta

QUICK = ("--device", "numpy", "--no-free-rates")


def test_table_and_files(plltool, binary, tmp_path):
    result = plltool("select-model", binary, *QUICK, "--prefix", tmp_path / "a", status=0)
    record = json.loads((tmp_path / "a.select-model.json").read_text())
    best = record["model_choice"]["best"]
    assert result.stdout.splitlines()[1].split()[0] == best
    assert f"best by BIC: {best}" in result.stdout
    assert (tmp_path / "a.select-model.model").read_text() == best + "\n"
    scores = [own["bic"] for own in record["model_choice"]["candidates"]]
    assert scores == sorted(scores)
    for file in ("a.select-model.model", "a.select-model.json"):
        assert plltool("check", binary, "--model", tmp_path / file).exit_code == 0
    plltool("select-model", binary, *QUICK, "--prefix", tmp_path / "a", status=1, told="--redo")


def test_json_on_stdout(plltool, binary):
    result = plltool("select-model", binary, *QUICK, "--criterion", "aicc", "--json", "--quiet", status=0)
    record = json.loads(result.stdout)
    assert record["model_choice"]["criterion"] == "AICc"
    assert record["lnl"] == record["model_choice"]["candidates"][0]["lnl"]


def test_names_of_candidates(plltool, small):
    result = plltool("select-model", small, *QUICK, "--candidates", "JC,K80", "--json", "--quiet", status=0)
    found = [
        own["model"].split("{")[0].split("+")[0] for own in json.loads(result.stdout)["model_choice"]["candidates"]
    ]
    assert set(found) <= {"JC", "K80"}
    result = plltool("select-model", small, *QUICK, "--candidates", "JC,LG", "--redo", status=1)
    assert "candidates: found 'LG', expected one of: GTR, " in result.stderr


def test_variable_columns(plltool, tmp_path):
    rows = {"a": "0110200110", "b": "0100210111", "c": "1010110011", "d": "1011010101", "e": "1001021000"}
    file = write_fasta(tmp_path / "characters.fasta", rows)
    result = plltool("select-model", file, *QUICK, "--ascertainment", "--json", "--quiet", status=0)
    assert json.loads(result.stdout)["model_choice"]["best"].endswith("+ASC_LEWIS")
    write_fasta(file, {name: f"{row}0" for name, row in rows.items()})
    result = plltool("select-model", file, *QUICK, "--ascertainment", "--redo", status=1)
    assert "found 1 column in which all taxa have or may have the same state, first column 11" in result.stderr


def test_a_search_writes_how_its_model_was_chosen(plltool, binary):
    result = plltool("search", binary, "--model", "test", "--device", "numpy", "--effort", "fast", status=0)
    assert "best by BIC: " in result.stderr
    record = json.loads((binary.parent / f"{binary.name}.plltool.json").read_text())
    assert record["parameters"]["spec"] == record["model_choice"]["best"]


def test_models_of_parts(plltool, binary, tmp_path):
    """A scheme file that the search reads, and a table with a line for each part."""
    file = tmp_path / "two.part"
    file.write_text("BIN, first = 1-.\\2\nBIN, second = 2-.\\2\n")
    merging = ("--partitions", file, "--merge", "greedy", "--prefix", tmp_path / "a")
    result = plltool("select-model", binary, *QUICK, *merging, status=0)
    record = json.loads((tmp_path / "a.select-model.json").read_text())
    scheme = (tmp_path / "a.select-model.model").read_text()
    parts = record["model_choice"]["parts"]
    assert scheme.splitlines() == [f"{part['best']}, {part['name']} = {part['sites']}" for part in parts]
    assert [line.split()[0] for line in result.stdout.splitlines()[1 : len(parts) + 1]] == [p["name"] for p in parts]
    for name in ("a.select-model.model", "a.select-model.json"):
        assert plltool("check", binary, "--model", tmp_path / name).exit_code == 0
