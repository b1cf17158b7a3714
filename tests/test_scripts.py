"""Every script runs, and the mutants of `scripts/checks/mutants.toml` are those of the code as it is."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import experiments
import mutate
import numpy as np
import pytest
import size

FOLDER = Path(__file__).resolve().parents[1] / "scripts"
PATHS = {path.name: path for path in sorted(FOLDER.glob("*/*.py"))}
SCRIPTS = sorted(PATHS)


def test_every_line_to_mutate_is_there_exactly_once():
    assert mutate.check_mutants(mutate.MUTANTS) == []


def test_lines_that_are_gone_are_found():
    gone = mutate.Mutant("it", "plltool/errors.py", "no such line", "", ("tests/test_nothing.py",))
    lost = mutate.Mutant("it", "plltool/nothing.py", "a", "b", ("tests/test_scripts.py", "-k", "none"))
    assert mutate.check_mutants([gone, lost]) == [
        "plltool/errors.py: it: STALE: 'no such line' is 0 times in plltool/errors.py",
        "plltool/errors.py: it: no tests/test_nothing.py",
        "plltool/nothing.py: it: the file is gone",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_starts(script, tmp_path):
    done = subprocess.run([sys.executable, PATHS[script], "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ROOT = FOLDER.parent
DATA = "data/primates.phy"
# The smallest case of each script, from the root of the repository. OUT is a folder, SHARED that of larger data.
SMALL = {
    "calibrate_supports.py": f"{DATA} --sets 1 --taxa 6 --sites 60 --replicates 20 --output OUT/o.json",
    "check_clocks.py": "ranks --data-sets 1 --output OUT/o.json",
    "check_optima.py": f"{DATA} --cases 2 --seed 1 --least 1 --output OUT/o.json",
    "check_posterior.py": "--generations 400 --runs 2 --draws 20000",
    "compare_constraints.py": f"{DATA} --seeds 1 --output OUT/o.json",
    "compare_partitions.py": "SHARED/data SHARED/reference --set dna59 --program plltool --limit 9 --output OUT/o.json",
    "compare_plans.py": f"run {DATA} --seeds 1 --plan fast:radii=1 --output OUT/o.json",
    "compare_supports.py": f"{DATA} --replicates 2 --program plltool-fast --output OUT/o.json",
    "draw_chains.py": "scripts/benchmarks/results/2026-11-24-chains-intel.json OUT/chart.svg",
    "fuzz.py": "newick --count 5",
    "kill_test.py": f"{DATA} --kills 1",
    "layout.py": "",
    "make_man_pages.py": "OUT",
    "measure_startup.py": "--repetitions 1",
    "mutate.py": "--check",
    "profile_alpha.py": DATA,
    "simulate_alignment.py": "--taxa 6 --sites 20 --gaps 1 --out OUT/s",
    "simulate_dated.py": "--out OUT/s",
    "size.py": "",
    "time_gradients.py": "--taxa 8 --states 4",
    "try_drivers.py": "--case intel-skl --case rusticl --case pocl",
    "try_alignments.py": "data/treebase --output OUT/o.json",
    "verify_reference.py": "SHARED/data SHARED/reference --set primates --device numpy",
}
# Why the others have none.
OTHERWISE = {
    "beagle_front.py": "needs MrBayes with BEAGLE",
    "beagle_library.py": "a part of compare_beagle.py",
    "check_pages.py": "needs a browser",
    "compare_beagle.py": "needs BEAGLE's library",
    "compare_concordance.py": "needs IQ-TREE 2 and 3",
    "compare_drivers.py": "needs several drivers",
    "compare_followups.py": "needs IQ-TREE 2",
    "compare_large.py": "needs FastTree and VeryFastTree",
    "compare_model_choice.py": "needs IQ-TREE 2",
    "compare_mrbayes.py": "needs MrBayes",
    "compare_placement.py": "needs RAxML 8",
    "compare_replicates.py": "needs IQ-TREE 2",
    "compare_rivals.py": "needs IQ-TREE 2 and RAxML",
    "compare_site_rates.py": "its smallest set takes minutes",
    "exact_topologies.py": "see test_exact_topologies",
    "experiment_parts.py": "a part of experiments.py",
    "experiments.py": "see test_the_experiment_with_chains",
    "fill_tables.py": "writes pages of the documentation, which tests/docs compares",
    "figures.py": "a part of fill_tables.py",
    "find_races.py": "needs Oclgrind",
    "fuzz_parsers.py": "a part of fuzz.py",
    "gpu_counts.py": "needs Oclgrind; see test_gpu_counts.py",
    "gpu_day.py": "needs a GPU",
    "gpu_registers.py": "needs NVIDIA's compiler; see test_gpu_registers.py",
    "iqtree3.py": "needs piqtree",
    "make_reference_rows.py": "needs RAxML and IQ-TREE",
    "measure_precision.py": "needs the larger data and an hour",
    "measure_size.py": "simulates data of gigabytes",
    "rivals.py": "a part of the others",
    "two_hosts.py": "needs root, and makes network namespaces",
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_smallest_case_of_every_script(script, tmp_path, request):
    if script in OTHERWISE:
        pytest.skip(OTHERWISE[script])
    places = {"OUT": str(tmp_path)}
    if "SHARED" in SMALL[script]:
        places["SHARED"] = str(request.getfixturevalue("shared"))
    words = [re.sub("^(OUT|SHARED)", lambda place: places[place[0]], word) for word in SMALL[script].split()]
    here = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # has `plltool`
    done = subprocess.run([sys.executable, PATHS[script], *words], cwd=ROOT, env=here, capture_output=True, text=True)
    if "skipped, there is no " in done.stdout:
        pytest.skip(done.stdout)
    too_few = script == "check_posterior.py" and "mean square of errors apart: " in done.stdout  # generations to agree
    assert done.returncode == 0 or too_few, done.stderr


@pytest.mark.slow
def test_the_experiment_with_chains(monkeypatch):
    """With the fewest chains and generations, as `gpu_day.py` runs it."""
    monkeypatch.setattr(experiments, "CHAIN_SHAPES", ((6, 30),))
    monkeypatch.setattr(experiments, "CHAINS", (1, 2))
    monkeypatch.setattr(experiments, "GENERATIONS", (20, 60))
    rows = list(experiments.run_experiment("chains", experiments.Machine("numpy", 1, 1)))
    assert [(row["chains"], row["launches"] > 0) for row in rows] == [(1, True), (2, True)]


@pytest.mark.slow
def test_the_experiment_with_searches(monkeypatch):
    monkeypatch.setattr(experiments, "SIZES", (30,))
    rows = list(experiments.run_experiment("searches", experiments.Machine("numpy", 1, 1)))
    assert [(row["patterns"], row["processor_seconds"] > 0) for row in rows] == [(30, True)]


@pytest.mark.slow
@pytest.mark.opencl
def test_the_experiments_with_parts_of_searches(monkeypatch):
    """What kinds of instructions take, with the rest, is the search; the layouts and stages that are timed in turn."""
    monkeypatch.setattr(experiments, "SIZES", (30,))
    monkeypatch.setattr(experiments, "FUNCTION_SIZES", (30,))
    monkeypatch.setattr(experiments, "WIDTHS", (2, 4))
    monkeypatch.setattr(experiments, "GRADIENT_SHAPES", {4: ((6, 30),)})
    machine = experiments.Machine("opencl", 1, 1)
    found = {name: list(experiments.run_experiment(name, machine)) for name in ("functions", "older", "gradients")}
    spent = {(row["vw"], row["item"]): row["seconds"] for row in found["functions"]}
    for vw in (2, 4, 32, 64):
        whole = spent.pop((vw, "search"))
        assert whole == pytest.approx(sum(value for (own, _), value in spent.items() if own == vw), abs=1e-9)
    assert [row["item"] for row in found["older"]] == ["older", "vw 2", "vw 4"]
    assert [row["item"] for row in found["gradients"]] == ["post-order", "pre-order", "gradient"]
    assert all(row["seconds"] > 0 for row in found["older"])


@pytest.mark.slow
def test_exact_topologies(tmp_path):
    """Those of few sites, of which several have a say, within 5 standard errors of what is sampled."""
    rows = [row.split() for row in (ROOT / DATA).read_text(encoding="utf-8").splitlines()[1:7]]
    (tmp_path / "a.fasta").write_text("".join(f">{name}\n{row[:80]}\n" for name, row in rows))
    settings = ("--model", "JC", "--prior-lengths", "exponential(10)", "--generations", "4000", "--seed", "1")
    plain = ("--chains", "1", "--no-report", "--device", "numpy", "--prefix", "s")
    sampling = [sys.executable, "-m", "plltool", "sample", "a.fasta", *settings, *plain]
    script = [sys.executable, PATHS["exact_topologies.py"], "a.fasta", "s.run1.t", "s.run2.t"]
    checking = [*script, "--topologies", "3", "--draws", "2000", "--output", "o.json"]
    for command in (sampling, checking):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    found = json.loads((tmp_path / "o.json").read_text())
    assert max(found["exact"]) < 0.99
    errors = np.hypot(found["exact_error"], found["sampled_error"])
    assert (np.abs(np.subtract(found["exact"], found["sampled"])) < 5 * errors).all()
    assert min(found["share_of_draws_that_count"]) > 0.05


def test_every_script_has_a_smallest_case_or_a_reason():
    assert sorted([*SMALL, *OTHERWISE]) == SCRIPTS


def test_every_script_is_listed():
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [script for script in SCRIPTS if f"`{script}`" not in listed] == []


def test_too_many_lines_are_told(tmp_path, monkeypatch, capsys):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "a.py").write_text("a = 1\n\nb = 2\n")
    monkeypatch.setattr(size, "REPOSITORY", tmp_path)
    monkeypatch.setattr(size, "LIMITS", {"scripts": 3})
    monkeypatch.setattr(sys, "argv", ["size.py"])
    assert size.main() == 0
    (tmp_path / "scripts" / "b.py").write_text("c = 3\n")
    assert size.main() == 1
    assert capsys.readouterr().out.splitlines()[-1] == "scripts: 4 lines of Python, at most 3; TOO MANY"


def test_without_a_browser_no_page_is_checked_and_a_line_says_so(tmp_path):
    command = [sys.executable, PATHS["check_pages.py"], "x.html"]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "nothing is checked: found no node and no npm and no Chromium\n")
