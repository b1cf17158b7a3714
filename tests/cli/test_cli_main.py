"""The group of commands: help, versions, exit codes, signals, errors that nobody expected."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from command_line import RUN, all_commands
from helpers import read_states

from plltool import __version__
from plltool.cli import main
from plltool.cli.terminal import OBJECTS_PER_COLLECTION
from plltool.io.files import read_record
from plltool.registry import ANALYSES
from plltool.run.evaluation import evaluate

COMMANDS = dict(all_commands())
TITLES = ("Options", "Search options", "Support options", "Device options", "Output options", "Expert options")


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "plltool", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"plltool, version {__version__}\n", "")


@pytest.mark.parametrize("words", COMMANDS)
def test_the_help_has_every_argument_and_option_and_an_example(words, plltool):
    command = COMMANDS[words]
    assert command.help
    for option in (own for own in command.params if isinstance(own, click.Option)):
        assert option.help or isinstance(option.type, click.Choice), f"{option.opts[0]} has no help"
    shown = plltool(*words.split(), "--help", status=0).stdout
    usage, text = shown.split("\n\n  ", 1)
    for argument in (own for own in command.params if isinstance(own, click.Argument)):
        name = (argument.metavar or argument.name.upper()).strip("[].")
        assert name in usage
        assert all(word in text for word in re.findall("[A-Z]+", name))
        assert f"\n  {name}\n" not in text.partition("Options:")[2]
    found = re.search(r"Examples?: (.*?)(?: Options: |$)", " ".join(shown.split()))
    assert found, "no example"
    assert f"{found[1]} ".startswith(f"plltool {words} ")
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert set(re.findall("--[a-z-]+", found[1])) <= known


def test_options_stand_in_sections_each_once(plltool):
    shown = "\nOptions:" + plltool("search", "--help").stdout.partition("\nOptions:")[2]
    places = [shown.index(f"\n{title}:\n") for title in TITLES]
    assert places == sorted(places)
    for option, title in (
        ("--model", 0),
        ("--effort", 1),
        ("--time", 1),
        ("--rapid", 2),
        ("--device", 3),
        ("--redo", 4),
        ("--vw", 5),
        ("--profile", 5),
    ):
        (place,) = [found.start() for found in re.finditer(rf"\n  {option}\b", shown)]
        assert places[title] < place < [*places, len(shown)][title + 1], option


def test_groups_show_short_help_in_full(plltool):
    for path, title in (((), "Trees and supports:"), (("trees",), "Commands:")):
        shown = plltool(*path, "--help").stdout.partition(title)[2]
        assert shown
        assert "..." not in shown


def test_the_help_shows_every_command_in_a_section_once(plltool):
    shown = plltool("--help").stdout
    sections = re.findall(r"^([A-Z][A-Za-z, ]+):\n((?:  .*\n)+)", shown, re.MULTILINE)
    titles = [title for title, _ in sections]
    assert titles[1:] == list(dict.fromkeys(analysis.group for analysis in ANALYSES.values()))
    listed = [name for _, lines in sections[1:] for name in re.findall(r"^  ([a-z-]+) ", lines, re.MULTILINE)]
    assert listed == list(main.commands)


def test_the_commands():
    expected = ["alrt", "ancestral", "beagle-library", "bench", "bootstrap", "check", "compare", "concordance", "date"]
    expected += ["devices", "evaluate", "front-ends", "genes", "marginal-likelihood", "place", "report", "sample"]
    expected += ["schema", "search", "select-model", "show", "simulate", "support", "test", "trees"]
    assert sorted(main.commands) == expected


def test_help_imports_nothing_heavy():
    """Of all commands: manual pages are made from it where numpy is not installed."""
    code = (
        "import sys; from plltool.cli import main\n"
        "main.commands, main(['search', '--help'], standalone_mode=False)\n"
        "print([m for m in ('numpy', 'scipy', 'pyopencl', 'dendropy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_names_that_are_too_long(plltool, small):
    result = plltool("search", small, "--device", "numpy", "--prefix", "x" * 300, status=1)
    assert re.fullmatch(r"plltool: error: x{300}\S+: File name too long\n", result.stderr)


def test_unexpected_errors_are_one_line(plltool, small, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("plltool.search", fail)
    arguments = ("search", small, "--device", "numpy")
    result = plltool(*arguments, status=1)
    assert result.stderr.splitlines()[-1].startswith("plltool: internal error: ZeroDivisionError: two lines")
    assert "Traceback" not in result.stderr
    assert "Traceback" in plltool("--debug", *arguments).stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds children in /proc")
def test_an_interrupt_while_workers_start_is_no_concern_of_theirs(small, tmp_path):
    """A terminal sends it to all processes of the group."""
    arguments = ["sample", str(small), "--model", "JC", "--device", "numpy", "--prefix", str(tmp_path / "run")]
    process = subprocess.Popen(
        [*RUN, *arguments, "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    while len(children.read_text().split()) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, stderr
    assert "Traceback" not in stderr
    assert stdout.startswith("interrupted: results are from the samples taken so far\n")


def interrupt(small, tmp_path, number):
    """Send a signal to a search that would take long; returns (exit code, stdout, stderr)."""
    out = tmp_path / "err"
    arguments = ["search", str(small), "--device", "numpy", "--starts", "1000", "--prefix", str(tmp_path / "run")]
    with open(out, "w") as stderr:
        process = subprocess.Popen(RUN + arguments, stdout=subprocess.PIPE, stderr=stderr, text=True)
        deadline = time.monotonic() + 60
        while "round" not in out.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        stdout, _ = process.communicate(timeout=60)
    return process.returncode, stdout, out.read_text()


def test_termination_ends_a_run_with_one_line(small, tmp_path):
    code, _, stderr = interrupt(small, tmp_path, signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    saved, last = stderr.splitlines()[-2:]
    assert "the run is saved in" in saved
    assert last == "plltool: terminated"
    assert "stopped: " in (tmp_path / "run.log").read_text()
    assert not (tmp_path / "run.json").exists()


def test_an_interrupt_leaves_the_best_tree_so_far(small, tmp_path):
    code, stdout, stderr = interrupt(small, tmp_path, signal.SIGINT)
    assert code == 128 + signal.SIGINT
    assert "warning: interrupted: the results so far are written after the present step" in stderr
    assert stdout.startswith("interrupted: the best tree so far\nlnL: ")
    record = read_record(tmp_path / "run.json")
    fixed = evaluate(small, record["tree"], record["model"], fixed=True, device="numpy")
    assert fixed.tree.names == tuple(sorted(read_states(small).names))
    assert fixed.lnl == pytest.approx(record["lnl"], rel=1e-9)
    assert f"lnL {record['lnl']:.6f}" in stderr


def test_exit_codes_of_the_process():
    for code, arguments in ((1, ["check", "nowhere"]), (2, ["check"])):
        assert subprocess.run([*RUN, *arguments], capture_output=True, check=False).returncode == code


def test_a_reader_that_has_gone_is_no_error(small):
    reading, writing = os.pipe()
    os.close(reading)
    command = [*RUN, "check", str(small), "--device", "numpy"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.returncode == 128 + signal.SIGPIPE
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", [("check", "DATA"), ("--help",), ("search", "--help")])
def test_stdout_that_takes_no_more_is_told(small, arguments):
    command = [*RUN, *(str(small) if word == "DATA" else word for word in arguments)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    *others, line = done.stderr.splitlines()
    assert line.endswith("cannot write to standard output: No space left on device")
    assert all("numpy on the CPU" in other for other in others), "without OpenCL"


@pytest.mark.parametrize("command", ["-m plltool check", "-m plltool.front_ends raxml-ng --check --model JC --msa"])
def test_closed_streams(small, command):
    for closed in ("1>&-", "0<&- 1>&- 2>&-"):
        line = f"{sys.executable} {command} {small} {closed}"
        done = subprocess.run(["sh", "-c", line], cwd=small.parent, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")
        assert "rror" not in done.stderr


@pytest.mark.parametrize(("given", "expected"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_a_process_of_the_command_line_has_one_thread_of_blas_and_collects_seldom(given, expected):
    ask = "import atexit, gc, os; atexit.register(lambda: print(gc.get_freeze_count() > 10_000, flush=True))\n"
    ask += "from plltool.cli import main; main(['search', '--help'], standalone_mode=False)\n"
    ask += "print(gc.get_threshold()[0], os.environ['OPENBLAS_NUM_THREADS'])"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS")}
    done = subprocess.run([sys.executable, "-c", ask], env=clean | given, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == [f"{OBJECTS_PER_COLLECTION} {expected}", "True"]


def test_a_front_end_whose_reader_has_gone_goes_on_quietly(small):
    reading, writing = os.pipe()
    os.close(reading)
    command = [*f"{sys.executable} -m plltool.front_ends raxml-ng --check --model JC --msa".split(), str(small)]
    done = subprocess.run(command, cwd=small.parent, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    assert "wall-clock" in (small.parent / "small.fasta.raxml.log").read_text()


def test_without_arguments_the_help_is_shown_once(plltool):
    for words in ((), ("trees",)):
        shown = plltool(*words).output
        assert shown.count("Usage:") == 1
        assert "Error" not in shown


def test_a_folder_is_no_alignment_but_names_files(plltool, small, tmp_path, monkeypatch):
    folder = tmp_path / "genes"
    folder.mkdir()
    (folder / "gene.fasta").write_bytes(small.read_bytes())
    monkeypatch.chdir(folder)
    for name in (".", "/", ".."):
        result = plltool("search", name)
        assert (result.exit_code, result.stderr) == (
            1,
            f"plltool: error: {name}: cannot read the file: it is a folder\n",
        )
    assert plltool("genes", ".", "--model", "JC", "--device", "numpy", "--effort", "fast").exit_code == 0
    assert (tmp_path / "genes.plltool.json").exists()


def test_without_pyopencl_everything_runs_on_numpy(small, tmp_path):
    (tmp_path / "pyopencl.py").write_text("raise ImportError('none here')")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    arguments = [*RUN, "search", str(small), "--model", "JC"]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "numpy" in line and "none here" in line]
