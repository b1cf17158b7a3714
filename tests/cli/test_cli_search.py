"""`plltool search`: results, names, and what it refuses."""

import pytest
from oracles.constraint import obeys
from small_alignments import STRANGE_NAMES

from plltool.cli.options import parse_duration
from plltool.errors import InputError
from plltool.io.files import RECORD_KEYS, read_record
from plltool.io.newick import parse_newick
from plltool.io.tree_files import read_tree, read_tree_set
from plltool.tree.splits import rf_distance

QUICK = ("--model", "HKY+F", "--device", "numpy", "--effort", "fast")


def test_writes_tree_record_and_log(plltool, small, names):
    result = plltool("search", small, *QUICK, "--seed", 7, status=0)
    prefix = small.with_name("small.fasta.plltool")
    record = read_record(f"{prefix}.json")
    assert tuple(record) == (*RECORD_KEYS, "data", "trace", "start_distances", "climb_distances", "settings")
    assert (record["n_taxa"], record["n_sites"], record["seed"]) == (6, 300, 7)
    assert record["command"].startswith("plltool search ")
    assert f"lnL: {record['lnl']:.6f}" in result.stdout
    assert sorted(read_tree(f"{prefix}.best.nwk").names) == sorted(names)
    log = prefix.with_name(prefix.name + ".log").read_text()
    for part in ("plltool 0.", "command: ", "device: ", "polish", "launches: ", "bytes to the device: ", "lnL: "):
        assert part in log


def test_progress_is_on_stderr_only(plltool, small):
    result = plltool("search", small, *QUICK)
    assert "polish" in result.stderr
    assert "polish" not in result.stdout
    assert "\r" not in result.stderr
    quiet = plltool("search", small, *QUICK, "--quiet", "--redo")
    assert quiet.stderr == ""
    assert "polish" in (small.parent / "small.fasta.plltool.log").read_text()


def test_strange_names_survive_in_every_file(plltool, strange, tmp_path):
    part = tmp_path / "x.part"
    part.write_text("HKY+F, one = 1-150\nHKY+F, two = 151-300\n")
    options = ("--model", part, "--device", "numpy", "--effort", "fast", "--brlen", "unlinked")
    plltool("search", strange, *options, "--outgroup", "a,b", "--nexus", "--collapse", 0.5, status=0)
    prefix = f"{strange}.plltool"
    names = sorted(STRANGE_NAMES)
    tree = read_tree(f"{prefix}.best.nwk")
    assert sorted(tree.names) == names
    text = (strange.parent / f"{strange.name}.plltool.best.nwk").read_text(encoding="utf-8")
    assert read_record(f"{prefix}.json")["tree"] == text.strip()
    for ending in ("best.nwk", "collapsed.nwk", "parts.nwk", "best.nex"):
        assert sorted(read_tree_set([f"{prefix}.{ending}"]).names) == names
    again = plltool("evaluate", strange, "--tree", f"{prefix}.best.nwk", *QUICK[:4], status=0)
    assert sorted(parse_newick(again.stdout.split("tree: ")[1], "stdout").names) == names


def test_site_lnl_nexus_and_collapsed_tree(plltool, data_dir, tmp_path):
    prefix, sites = tmp_path / "x", tmp_path / "sites.tsv"
    arguments = ("search", data_dir / "simulated.fasta", "--model", "JC", "--device", "numpy", "--effort", "fast")
    more = ("--prefix", prefix, "--site-lnl", sites, "--nexus", "--collapse", 0.004, "--radius", 1)
    result = plltool(*arguments, *more, status=0)
    record = read_record(f"{prefix}.json")
    rows = [line.split("\t") for line in sites.read_text().splitlines()]
    assert rows[0] == ["site", "lnl"]
    assert len(rows) == record["n_sites"] + 1
    assert sum(float(value) for _, value in rows[1:]) == pytest.approx(record["lnl"], rel=1e-11)  # another order
    tree = read_tree(f"{prefix}.best.nwk")
    n_short = int(((tree.lengths <= 0.004) & (tree.ends.min(axis=1) >= tree.n_taxa)).sum())
    assert f"internal branches of (near-)zero length, at most 0.004: {n_short}\n" in result.stdout
    assert len(read_tree_set([f"{prefix}.collapsed.nwk"]).splits) == tree.n_taxa - 3 - n_short
    assert plltool(*arguments, "--prefix", prefix, "--redo", "--radius", 1).exit_code == 0
    assert not (tmp_path / "x.best.nex").exists(), "it would be that of another run"


def test_names_that_are_not_utf8_survive(plltool, small):
    content = small.read_bytes().replace(b">Lemur_catta", b">Lemur\xe9")
    small.write_bytes(content)
    assert plltool("search", small, *QUICK).exit_code == 0
    assert b"Lemur\xe9" in (small.parent / "small.fasta.plltool.best.nwk").read_bytes()
    assert "Lemur\udce9" in read_record(f"{small}.plltool.json")["tree"]


@pytest.mark.parametrize(
    ("prefix", "why"),
    [
        ("missing/x", ": there is no folder FOLDER/missing\n"),
        ("small.fasta/x", " (--prefix names other files): Not a directory"),
        ("folder", ": it is a folder"),
    ],
)
def test_a_prefix_that_cannot_be_written_is_found_first(plltool, small, prefix, why):
    (small.parent / "folder.json").mkdir()
    result = plltool("search", small, *QUICK, "--prefix", small.parent / prefix, status=1)
    assert f"cannot write the file{why.replace('FOLDER', str(small.parent))}" in result.stderr
    assert "alignment" not in result.stderr, "it began to work"


def test_start_file_with_multifurcations(plltool, small, tmp_path, names):
    start = tmp_path / "star.nwk"
    start.write_text(f"({','.join(names)});")
    plltool("search", small, *QUICK, "--start", start, status=1, told="--resolve")
    plltool("search", small, *QUICK, "--start", start, "--resolve", 3, status=0)
    plltool("search", small, *QUICK, "--prefix", tmp_path / "other", status=0)
    assert rf_distance(read_tree(f"{small}.plltool.best.nwk"), read_tree(tmp_path / "other.best.nwk")) == 0


def test_the_effort_is_said_with_its_reason(plltool, small):
    result = plltool("search", small, *QUICK, "--effort", "default", status=0)
    said = next(line for line in result.stderr.splitlines() if "effort default" in line)
    assert "start trees: 1, perturbations: at most " in said
    assert "difficulty 0." in said
    options = "--effort", "thorough", "--starts", 1, "--perturbations", 1, "--stop", "rf"
    result = plltool("search", small, *QUICK, "--redo", *options)
    assert "effort thorough: start trees: 1, perturbations: at most 1, stop rule: rf\n" in result.stderr
    assert "round 1   lnL" in next(line for line in result.stderr.splitlines() if " s  polish" in line)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--outgroup", "nobody"), "'nobody'"),
        (("--start", "nowhere.nwk"), "nowhere.nwk: cannot read"),
        (("--model", "GTR+X"), "'+X'"),
        (("--device", "numpy", "--vw", "3"), "3 lanes"),
        pytest.param(("--device", "no such device"), "no such device", marks=pytest.mark.opencl),
    ],
)
def test_a_search_that_cannot_begin_says_so_in_one_line_and_leaves_nothing(plltool, small, tmp_path, arguments, part):
    result = plltool("search", small, "--device", "numpy", *arguments, "--prefix", tmp_path / "run", status=1)
    left = ["run.log"] if arguments[0] == "--device" else []  # once the data have been read
    assert [path.name for path in tmp_path.glob("run.*")] == left
    last = result.stderr.splitlines()[-1]
    assert last.startswith("plltool: error: ")
    assert part in last


def test_an_outgroup_that_is_no_clade_costs_nothing(plltool, small):
    result = plltool("search", small, *QUICK, "--outgroup", "Homo_sapiens, Tarsius_syrichta", status=0)
    assert "warning: the outgroup is not one clade" in result.stderr
    record = read_record(f"{small}.plltool.json")
    assert any("not one clade" in line and "'Homo_sapiens' alone" in line for line in record["warnings"])
    before = record["tree"].partition("Homo_sapiens")[0]
    assert before.count("(") - before.count(")") == 1, "it is a branch of the root"


@pytest.mark.opencl
def test_profile_reports_where_the_time_went(plltool, small):
    result = plltool("search", small, "--model", "HKY+F", "--device", "opencl", "--profile", status=0)
    lines = [line for line in result.stderr.splitlines() if line.startswith("plltool: profile: ")]
    assert len(lines) == 2
    profile = read_record(f"{small}.plltool.json")["profile"]
    assert f"host share {100 * profile['host_share']:.1f} %" in lines[0]
    assert "triplets" in lines[1]
    assert all(line.removeprefix("plltool: ") in log_of(small) for line in lines)


def test_profile_without_a_device_says_so(plltool, small):
    result = plltool("search", small, *QUICK, "--profile", status=0)
    assert "plltool: profile: nothing to measure: numpy on the CPU, one thread: asked for" in result.stderr
    assert "profile" not in read_record(f"{small}.plltool.json")


def log_of(alignment):
    return alignment.with_name(f"{alignment.name}.plltool.log").read_text()


def test_a_constraint_is_obeyed_and_logged(plltool, small, names):
    held = small.with_name("held.nwk")
    held.write_text(f"(({names[0]},{names[5]}),{names[1]},{names[3]});\n")
    plltool("search", small, *QUICK, "--constraint", held, status=0, told="constraint: 1 splits of 4 of the 6 taxa")
    tree = read_tree(small.with_name("small.fasta.plltool.best.nwk"))
    assert obeys(tree.ends, tree.names, ((names[0], names[5]), names[1], names[3]))
    start = small.with_name("start.nwk")
    start.write_text(f"(({names[0]},{names[1]}),({names[3]},{names[4]}),({names[5]},{names[2]}));\n")
    refused = plltool("search", small, *QUICK, "--constraint", held, "--start", start, "--redo", status=1)
    assert refused.stderr.count("\n") == 1
    assert f"it lacks the split '{names[1]}', '{names[3]}' | '{names[5]}', '{names[0]}'" in refused.stderr


TIMES = {"90s": 90, "10m": 600, "1h": 3600, "1h30m": 5400, "1.5h": 5400, "2": 2, "0.5m": 30}


@pytest.mark.parametrize(("text", "seconds"), TIMES.items())
def test_times(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-5", "ten", "1h30", "30m1h", "10 m", "1e3", "inf", "9" * 400])
def test_times_that_are_none(text):
    expected = "expected a time above 0, such as 90s, 10m or 1h30m"
    with pytest.raises(InputError, match=f"^found '{text}', {expected}$"):
        parse_duration(text)


def test_a_limited_time(plltool, small, tmp_path):
    result = plltool(
        "search", small, *QUICK, "--effort", "default", "--time", "3", "--prefix", tmp_path / "run", status=0
    )
    record = read_record(tmp_path / "run.json")
    assert "the search was given 3 s" in record["warnings"][-1]
    assert "the search was given 3 s" in result.stderr
    assert 0.3 < record["seconds"] < 60
    assert not list(tmp_path.glob("*.checkpoint"))
