"""Commands as MPI jobs, with a launcher and ranks as users have them."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from small_alignments import hard_taxa, write_fasta

from plltool.analyses.search.analysis import search
from plltool.io.newick import parse_newick
from plltool.processes.ranks import NUMBERS
from plltool.run.evaluation import evaluate
from plltool.tree.splits import rf_distance

MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
pytestmark = pytest.mark.skipif(
    MPIEXEC is None or find_spec("mpi4py") is None, reason="needs mpi4py and mpiexec: pip install 'plltool[mpi]'"
)

PLLTOOL = [sys.executable, "-P", "-c", "import sys; from plltool.cli import main; main(prog_name='plltool')"]
# A rank that sends itself a signal as soon as the checkpoint has a state
SUICIDE = f"""
import glob, os, signal, sys, threading, time
from plltool.processes import ranks
ranks.BEAT, ranks.PATIENCE = 0.5, 10.0
victim, how, folder = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
def watch():
    while not glob.glob(folder + "/*.state"):
        time.sleep(0.005)
    os.kill(os.getpid(), getattr(signal, how))
if victim in [os.environ.get(name) for name in {NUMBERS!r}]:
    threading.Thread(target=watch, daemon=True).start()
from plltool.cli import main
main(prog_name="plltool")
"""
SETTINGS = ["--model", "HKY+G2", "--effort", "fast", "--seed", "5", "--threads", "1", "--device", "numpy"]
SECONDS = 120


def mpi(size, folder, *arguments, program=PLLTOOL, status=None):
    """Run plltool on some ranks; if a status is given, it must be that of the job."""
    command = [MPIEXEC, "-n", str(size), *program, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert status in (None, done.returncode), done.stderr
    return done


@pytest.fixture
def few(data_dir, tmp_path):
    return write_fasta(tmp_path / "few.fasta", hard_taxa(data_dir, 8, 150))


@pytest.mark.parametrize("size", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_search(few, tmp_path, size):
    done = mpi(size, tmp_path, "search", few.name, *SETTINGS, "--prefix", "run", status=0)
    record = json.loads((tmp_path / "run.json").read_text())
    expected = search(few, "HKY+G2", effort="fast", seed=5, threads=1, device="numpy")
    tree = parse_newick(record["tree"], "the record", expected.tree.names)
    assert rf_distance(tree, expected.tree) == 0
    assert record["lnl"] == pytest.approx(expected.lnl, abs=0.01)
    assert len(record["layout"]["ranks"]) == size
    counters = record["counters"]
    assert 0 < counters["exchanges"] <= sum(counters["requests"].values())
    assert counters["bytes_exchanged"] >= 8 * 4 * counters["exchanges"]
    assert len(re.findall(r"^lnL: ", done.stdout, re.MULTILINE)) == 1, "one rank prints"
    assert done.stderr.count("alignment: ") == 1
    written = {path.name.removeprefix("run.") for path in tmp_path.iterdir() if path != few}
    assert written == {"best.nwk", "collapsed.nwk", "json", "log", "html", "txt"}


def test_site_lnl_and_supports(few, tmp_path):
    tree = "(t01,t02,(t03,(t04,(t05,(t06,(t07,t08))))));"
    (tmp_path / "tree.nwk").write_text(tree)
    asked = ("--model", "GTR+PSR4", "--device", "numpy", "--site-lnl", "sites.txt", "--prefix", "run")
    mpi(2, tmp_path, "evaluate", few.name, "--tree", "tree.nwk", *asked, status=0)
    expected = evaluate(few, tree, "GTR+PSR4", device="numpy", site_lnl=True)
    found = json.loads((tmp_path / "run.evaluate.json").read_text())
    assert found["lnl"] == pytest.approx(expected.lnl, abs=1e-4)
    values = [float(word) for word in re.findall(r"-\d+\.\d+(?:e-\d+)?", (tmp_path / "sites.txt").read_text())]
    assert sum(values) == pytest.approx(expected.lnl, abs=1e-3)
    asked = (*SETTINGS[:2], *SETTINGS[4:], "--replicates", "2", "--prefix", "run")
    mpi(2, tmp_path, "bootstrap", few.name, *asked, status=0)
    assert (tmp_path / "run.bootstraps.nwk").read_text().count(";") == 2


@pytest.mark.slow
def test_a_rank_is_killed_and_the_run_goes_on(few, tmp_path):
    """Resumed on another number of ranks, it finds the same tree."""
    asked = ("search", few.name, *SETTINGS, "--starts", "2", "--perturbations", "3", "--prefix", "run")
    killed = mpi(2, tmp_path, "1", "SIGKILL", "run.checkpoint", *asked, program=[sys.executable, "-P", "-c", SUICIDE])
    assert killed.returncode != 0
    assert list((tmp_path / "run.checkpoint").glob("*.state"))
    assert not (tmp_path / "run.json").exists()
    done = mpi(4, tmp_path, *asked, status=0)
    assert "resuming the search from run.checkpoint" in done.stderr
    mpi(2, tmp_path, *asked[:-1], "whole", status=0)
    records = [json.loads((tmp_path / f"{name}.json").read_text()) for name in ("run", "whole")]
    first, second = (parse_newick(record["tree"], "a record") for record in records)
    assert rf_distance(first, parse_newick(records[1]["tree"], "a record", first.names)) == 0
    assert records[0]["lnl"] == pytest.approx(records[1]["lnl"], abs=1e-6)
    assert second.n_taxa == first.n_taxa
    assert not (tmp_path / "run.checkpoint").exists()


CREW = ["--workers", "mpi", *SETTINGS]


@pytest.mark.slow
def test_ranks_climb_from_start_trees(few, tmp_path):
    """To the same bits as one process."""
    asked = ("search", few.name, "--starts", "3", "--bootstrap", "3", "--supports", "fbp,ufboot")
    done = mpi(3, tmp_path, *asked, *CREW, "--prefix", "crew", status=0)
    assert "start trees: 2 at a time" in done.stderr
    assert "replicates: 2 at a time" in done.stderr
    assert "excursions: 2 at a time" in done.stderr
    command = [*PLLTOOL, *asked, *SETTINGS, "--workers", "1", "--prefix", "alone"]
    alone = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert alone.returncode == 0, alone.stderr
    for ending in ("best.nwk", "bootstraps.nwk", "support.nwk"):
        assert (tmp_path / f"crew.{ending}").read_bytes() == (tmp_path / f"alone.{ending}").read_bytes()
    records = [json.loads((tmp_path / f"{name}.json").read_text()) for name in ("crew", "alone")]
    assert records[0]["counters"]["requests"] == records[1]["counters"]["requests"]


@pytest.mark.slow
def test_ranks_search_genes(few, tmp_path):
    folder = tmp_path / "genes"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.fasta").write_text(few.read_text())
    mpi(3, tmp_path, "genes", "genes", "--scf", "0", *CREW, "--prefix", "run", status=0)
    trees = (tmp_path / "run.genes.nwk").read_text().split()
    assert len(trees) == 3
    assert len(set(trees)) == 1


def test_ranks_advance_runs_of_chains(few, tmp_path):
    """To the same bits as one process, and from its checkpoint on."""
    asked = ("sample", few.name, "--model", "HKY+G2", "--device", "numpy", "--chains", "2", "--burnin", "0")
    asked = (*asked, "--sample-every", "10")
    done = mpi(3, tmp_path, *asked, "--generations", "40", "--workers", "mpi", "--prefix", "crew", status=0)
    assert "runs: 2 at a time" in done.stderr
    for prefix in ("alone", "crew"):
        command = [*PLLTOOL, *asked, "--generations", "60", "--workers", "1", "--prefix", prefix]
        subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    for ending in ("run1.p", "run2.p", "run1.t", "run2.t", "mcc.nwk"):
        assert (tmp_path / f"crew.{ending}").read_bytes() == (tmp_path / f"alone.{ending}").read_bytes()


@pytest.mark.slow
def test_a_rank_of_a_crew_is_killed_and_the_run_goes_on(few, tmp_path):
    asked = ("search", few.name, *CREW, "--starts", "4", "--prefix", "run")
    killed = mpi(3, tmp_path, "2", "SIGKILL", "run.checkpoint", *asked, program=[sys.executable, "-P", "-c", SUICIDE])
    assert killed.returncode != 0
    assert not (tmp_path / "run.json").exists()
    done = mpi(4, tmp_path, *asked, status=0)
    assert "resuming the search from run.checkpoint" in done.stderr
    expected = search(few, "HKY+G2", effort="fast", seed=5, threads=1, device="numpy", starts=4, workers=1)
    assert json.loads((tmp_path / "run.json").read_text())["lnl"] == expected.lnl


@pytest.mark.slow
@pytest.mark.parametrize(("size", "crew"), [(2, []), (3, CREW[:2])])
def test_a_rank_that_hangs_ends_the_job(few, tmp_path, size, crew):
    """The next rank says so, as MPI itself would wait for ever."""
    asked = ("search", few.name, *crew, *SETTINGS, "--starts", "4", "--perturbations", "9", "--prefix", "run")
    program = [sys.executable, "-P", "-c", SUICIDE]
    hung = mpi(size, tmp_path, "1", "SIGSTOP", "run.checkpoint", *asked, program=program)
    assert hung.returncode != 0
    found = f"plltool: error: rank {2 % size}: rank 1 gave no sign of life for 10 s, its machine or the link is gone"
    expected = f"{found}; the same command resumes from the checkpoint"
    assert [line for line in hung.stderr.splitlines() if "rror" in line] == [expected]
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("search", "nothing.phy"), "plltool: error: nothing.phy: cannot read the file: No such file or directory"),
        (("evaluate", "few.fasta"), "Error: no such option: --workers"),
    ],
)
def test_an_error_of_rank_0_is_one_line_and_ends_the_crew(few, tmp_path, command, message):
    done = mpi(3, tmp_path, *command, "--workers", "mpi")
    assert done.returncode in (1, 2)
    assert [line for line in done.stderr.splitlines() if "rror" in line] == [message]


def test_an_error_in_a_task_of_a_rank_is_one_line(few, tmp_path):
    program = "import os, sys\nfrom plltool.analyses.search import analysis\nfrom plltool.errors import InputError\n"
    program += "def fail(*_, **__):\n    raise InputError('found no engine')\nanalysis.Climber.__init__ = fail\n"
    program += "from plltool.cli import main; main(prog_name='plltool')"
    asked = ("search", few.name, *CREW, "--starts", "2", "--prefix", "run")
    done = mpi(3, tmp_path, *asked, program=[sys.executable, "-P", "-c", program])
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if "rror" in line] == ["plltool: error: found no engine"]


def test_a_crew_needs_a_job(few, tmp_path):
    done = subprocess.run([*PLLTOOL, "search", few.name, *CREW], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "found 'mpi', expected an MPI job of several ranks, as mpiexec starts it" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("search", "nothing.phy"), 1, "plltool: error: nothing.phy: cannot read the file: No such file or directory"),
        (("search", "few.fasta", "--time", "9s"), 1, "plltool: error: time: found 9, expected none: the clocks of"),
        (("devices",), 1, "Error: devices: found 2 ranks, expected a single process"),
    ],
)
def test_an_error_of_all_ranks_is_one_line(few, tmp_path, arguments, status, message):
    done = mpi(2, tmp_path, *arguments)
    assert done.returncode == status
    assert [line for line in done.stderr.splitlines() if "rror" in line] == [done.stderr.splitlines()[-1]]
    assert done.stderr.splitlines()[-1].startswith(message)


def test_an_error_of_one_rank_ends_all(few, tmp_path):
    """On the machine of rank 1 the file is missing."""
    program = "import os, sys; rank = [os.environ.get(name) for name in sys.argv.pop(1).split()]\n"
    program += "if '1' in rank: sys.argv[2] = 'missing.fasta'\nfrom plltool.cli import main; main(prog_name='plltool')"
    names = " ".join(NUMBERS)
    done = mpi(2, tmp_path, names, "search", few.name, *SETTINGS, program=[sys.executable, "-P", "-c", program])
    assert done.returncode != 0
    assert "plltool: error: rank 1: missing.fasta: cannot read the file" in done.stderr
