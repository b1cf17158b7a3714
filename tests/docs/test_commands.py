"""Every command line and every Python example of README.md and docs/ works, in the order of its page.

Bash reads every line. Those that only call plltool run in this process, which spares them the start of another one.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner
from examples import blocks, commands, matches
from pages import PAGES, REPOSITORY, name_of

from plltool.cli import main
from plltool.front_ends.__main__ import main as run_program
from plltool.registry import FRONT_ENDS

SLOW = {  # pages whose commands take more than 5 s in all, on OpenCL or numpy
    *("docs/commands/sample.md", "docs/guide/compare.md", "docs/guide/interrupted.md", "docs/guide/models.md"),
    *(
        "docs/guide/pipelines.md",
        "docs/guide/python.md",
        "docs/guide/sampling.md",
        "docs/guide/search.md",
        "docs/guide/select_model.md",
    ),
    *("docs/guide/supports.md", "docs/guide/topology_tests.md", "docs/models.md"),
}
SECONDS = 900.0  # that a command may take before the test gives up
QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
PRINT_WORDS = "plltool() { printf '%s\\0' \"$@\"; }\n"  # in bash


def pages_with(kind):
    """The pages that have blocks of a kind."""
    for page in PAGES:
        name = name_of(page)
        if blocks(page.read_text(encoding="utf-8"), kind):
            yield pytest.param(page, id=name, marks=pytest.mark.slow if name in SLOW else ())


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with a copy of data/ and the script that a page calls."""
    shutil.copytree(REPOSITORY / "data", tmp_path / "data")
    script = Path("scripts/benchmarks/profile_alpha.py")
    (tmp_path / script).parent.mkdir(parents=True)
    shutil.copy(REPOSITORY / script, tmp_path / script)
    return tmp_path


def environment():
    """This environment's Python and plltool come first on the path; help is as wide as on a usual terminal."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PATH": path, "COLUMNS": "80"}


def run_line(line, folder):
    """Run a command line; its exit status, its stdout, and its stdout and stderr as they came."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen(["bash", "-c", line], cwd=folder, env=environment(), text=True, **pipes)
    out, both = [], []

    def read(stream, *kept):
        for text in stream:
            for lines in kept:
                lines.append(text)

    readers = [Thread(target=read, args=(process.stdout, out, both)), Thread(target=read, args=(process.stderr, both))]
    for reader in readers:
        reader.start()
    status = process.wait(timeout=SECONDS)
    for reader in readers:
        reader.join()
    return status, "".join(out), "".join(both)


def run(line, folder):
    """As `run_line`, but without a process if the line calls plltool and nothing else; `folder` is the current one."""
    if not line.startswith("plltool ") or re.search(r"[|<>;&]", QUOTED.sub("", line)):
        return run_line(line, folder)
    words = subprocess.run(["bash", "-c", PRINT_WORDS + line], capture_output=True, text=True, check=True).stdout
    done = CliRunner().invoke(main, words.split("\0")[:-1], prog_name="plltool")
    return done.exit_code, done.stdout, done.output


@pytest.mark.parametrize("page", [*pages_with("console")])
def test_commands(page, folder, has_opencl, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    for command in commands(page.read_text(encoding="utf-8")):
        if command.needs_opencl and not has_opencl:
            continue
        status, out, both = run(command.line, folder)
        assert status == command.status, f"$ {command.line}\n{both}"
        assert not command.shown or matches(command.shown, out) or matches(command.shown, both), (
            f"$ {command.line}\n{both}"
        )


@pytest.mark.parametrize("page", [*pages_with("python")])
def test_python(page, folder):
    program = "\n".join(text for text, _ in blocks(page.read_text(encoding="utf-8"), "python"))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment(), text=True, timeout=SECONDS, capture_output=True
    )
    assert done.returncode == 0, done.stderr


GRADIENTS = (REPOSITORY / "docs" / "guide" / "gradients.md").read_text(encoding="utf-8")
NEEDS = {"jax": (), "blackjax": ("jax",), "numpyro": ("jax",), "pymc": (), "torch": ()}  # blocks that come before


@pytest.mark.slow
@pytest.mark.parametrize("library", NEEDS)
def test_examples_of_libraries(library):
    """Of libraries that plltool does not need; each is skipped without its own."""
    pytest.importorskip(library, reason=f"{library} cannot be imported", exc_type=ImportError)
    kinds = ["python", *(f"python {name}" for name in (*NEEDS[library], library))]
    program = "\n".join(text for kind in kinds for text, _ in blocks(GRADIENTS, kind))
    if library == "jax":  # a gradient that goes through all of it
        program += "\nprint(jax.jit(jax.grad(log_density))(jnp.array(start)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, env=os.environ, text=True, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "nan" not in done.stdout
    assert "-inf" not in done.stdout


def test_every_example_of_a_library_is_listed():
    kinds = {line.removeprefix("```python ") for line in GRADIENTS.splitlines() if line.startswith("```python ")}
    assert kinds == set(NEEDS)


TUTORIALS = REPOSITORY / "docs/guide/tutorial_commands.md"
PROGRAMS = {name: program for program, names in FRONT_ENDS.items() for name in names}
ROW = re.compile(r"\| `(.*?)` \| (.*?) \| (\S*) \| (\S*?)\*? \|(?: (\S*?)\*? \|)?")
LNL = re.compile(r"(?:BEST SCORE FOUND : |Final LogLikelihood: |all lengths: LogLk = )(-\d+\.\d+)")
ENDS = 0.05  # lnL: another end of an optimisation
BELOW = 0.1  # lnL by which plltool may be below another program: ties of a search


def run_front_end(line, monkeypatch):
    """The exit status of a command, and what it printed; `<` and `>` as in a shell."""
    told, source, target = re.fullmatch(r"(.*?)(?: < (\S+))?(?: > (\S+))?", line).groups()
    program, *words = shlex.split(told)
    if source:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(source).read_bytes())))
    printed = io.StringIO()
    with redirect_stdout(printed):
        status = run_program(PROGRAMS[program], words)
    if target:
        Path(target).write_text(printed.getvalue())
    return status, printed.getvalue()


@pytest.mark.slow
def test_rows_of_tutorials(tmp_path, monkeypatch, capsys):
    """Accepted or refused as the row says, the files, and lnL beside the other program's."""
    shutil.copytree(REPOSITORY / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for command in commands(TUTORIALS.read_text(encoding="utf-8")):
        assert run_line(command.line, tmp_path)[0] == 0, command.line
    rows = ROW.findall(TUTORIALS.read_text(encoding="utf-8"))
    assert len(rows) == TUTORIALS.read_text(encoding="utf-8").count("\n| `")
    for line, result, lnl, *others in rows:
        status, out = run_front_end(line, monkeypatch)
        err = capsys.readouterr().err
        if result.startswith("refused: "):
            assert (status, result.removeprefix("refused: ") in err) == (2, True), (line, err)
            continue
        assert status == 0, (line, err)
        assert all(Path(name).stat().st_size for name in re.findall("`(.*?)`", result)), line
        if lnl:
            found = float(LNL.findall(out + err)[-1])
            assert found == pytest.approx(float(lnl), abs=ENDS), line
            assert all(found >= float(there) - BELOW for there in filter(None, others)), line


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_command_line_stands_elsewhere(page):
    text = page.read_text(encoding="utf-8")
    outside = re.sub(r"^```console\n(?:.*\n)*?```$", "", text, flags=re.MULTILINE)
    code = [*re.findall(r"^ {4,}.*$", outside, re.MULTILINE), *re.findall(r"^```(?:.*\n)*?```$", outside, re.MULTILINE)]
    assert [line for block in code for line in block.splitlines() if re.match(r"\s*(?:\$ |plltool )", line)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        (["lnL: -5719.357", "..."], "lnL: -5719.359\nmodel: JC\n", True),
        (["lnL: -5719.357"], "lnL: -5719.357\nmodel: JC\n", False),
        (["lnL: -5719.357"], "lnL: -6000.0\n", False),
        (["...", "tree: a.nwk"], "x\ny\ntree: a.nwk\n", True),
        (["seconds: 1.1"], "seconds: 25.0\n", True),
        (["a (20 replicates, 4.6 s)"], "a (20 replicates, 11 s)\n", True),
        (["a (20 replicates, 4.6 s)"], "a (10 replicates, 11 s)\n", False),
        (["model: HKY{1.0/14.18...}+G4"], "model: HKY{1.0/14.183345}+G4\n", True),
        (["  1.2 s  nni round 1"], "      0.7 s  nni             round 1\n", True),
    ],
)
def test_matching_of_output(shown, printed, expected):
    assert matches(shown, printed) is expected
