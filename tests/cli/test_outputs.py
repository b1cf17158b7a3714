"""What a command writes: never a file that it reads, never an existing one without --redo, anything into a pipe."""

import os
import threading

import pytest
from command_line import all_commands

from plltool.cli.options import WrittenPath

QUICK = ("--model", "JC", "--device", "numpy")
TREE = "(Tarsius_syrichta:1,Lemur_catta:1,((Homo_sapiens:1,Pan:1):1,(Gorilla:1,Pongo:1):1):1);\n"
COMMANDS = {  # how each command that has such options is called, with FILE for its option and TREE and DATA for inputs
    "search": ("DATA", *QUICK, "--effort", "fast"),
    "evaluate": ("DATA", "TREE", *QUICK, "--fixed"),
    "bootstrap": ("DATA", *QUICK, "--replicates", 1, "--workers", 1),
    "alrt": ("DATA", "TREE", *QUICK, "--replicates", 10),
    "test": ("DATA", "TREES", *QUICK, "--replicates", 10),
    "ancestral": ("DATA", "TREE", *QUICK),
    "select-model": ("DATA", "--device", "numpy", "--no-free-rates"),
    "sample": ("DATA", *QUICK, "--generations", 20),
    "marginal-likelihood": ("DATA", *QUICK, "--generations", 60, "--sample-every", 2, "--steps", 2),
    "concordance": ("TREE", "TREES"),
    "genes": ("FOLDER", *QUICK),
    "place": ("--reference", "DATA", "--tree", "TREE", "--queries", "DATA", *QUICK),
    "date": ("DATA", "TREE", "--dates", "DATA", *QUICK),
    "compare": ("DATA", "--a", "numpy", "--b", "numpy"),
    "simulate": ("--tree", "TREE", "--model", "JC", "--sites", 10),
    "show": ("TREE",),
    "trees distances": ("TREE", "TREES"),
    "trees consensus": ("TREES",),
    "trees root": ("TREE", "--root", "midpoint"),
    "bench": ("--quick", "--compare", "TREE"),
}


OPTIONS = [
    (name, option.opts[0])
    for name, command in all_commands()
    for option in command.params
    if isinstance(option.type, WrittenPath)
]


@pytest.fixture
def files(small, tmp_path):
    (tmp_path / "tree.nwk").write_text(TREE)
    (tmp_path / "trees.nwk").write_text(TREE + TREE)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "gene.fasta").write_bytes(small.read_bytes())
    return {"DATA": small, "TREE": tmp_path / "tree.nwk", "TREES": tmp_path / "trees.nwk", "FOLDER": folder}


def call(plltool, files, name, *more, **expected):
    given = [files.get(word, word) for word in COMMANDS[name]]
    return plltool(*name.split(), *given, *more, **expected)


def inputs_of(files, name):
    named = [files[word] for word in COMMANDS[name] if word in files]
    return [path for own in named for path in (own.iterdir() if own.is_dir() else [own])]


def test_every_command_that_writes_is_tried():
    assert {name for name, _ in OPTIONS} == COMMANDS.keys()


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_no_output_is_an_input_and_none_is_replaced_unasked(plltool, files, tmp_path, name, option):
    has_redo = any("--redo" in own.opts for own in dict(all_commands())[name].params)
    redo = ["--redo"] if has_redo else []
    for number, path in enumerate(inputs_of(files, name)):
        before = path.read_bytes()
        soft, hard = tmp_path / f"soft{number}", tmp_path / f"hard{number}"
        soft.symlink_to(path)
        os.link(path, hard)
        for written in (path, soft, hard):
            told = f"{written}: cannot write the file: the command reads it"
            call(plltool, files, name, option, written, *redo, status=1, told=told)
            assert path.read_bytes() == before
    mine = tmp_path / "mine"
    mine.write_text("mine")
    call(plltool, files, name, option, mine, status=1, told=f"{mine}: exists already")
    assert mine.read_text() == "mine"


def test_a_run_that_reads_nothing_leaves_the_log_as_it_was(plltool, files, tmp_path):
    named = ("--prefix", tmp_path / "run")
    wrong = (*named, "--model", "NONE", "--redo")  # the last option counts
    assert call(plltool, files, "search", *wrong).exit_code == 1
    assert not list(tmp_path.glob("run.*"))
    assert call(plltool, files, "search", *named).exit_code == 0
    log = (tmp_path / "run.log").read_text()
    assert call(plltool, files, "search", *wrong).exit_code == 1
    assert (tmp_path / "run.log").read_text() == log
    assert call(plltool, files, "search", *named, "--redo").exit_code == 0
    assert (tmp_path / "run.log").read_text().count("finished") == 1


def test_files_with_the_prefix_are_no_inputs(plltool, files, tmp_path):
    tree = tmp_path / "run.support.nwk"
    tree.write_text(TREE)
    done = plltool("support", tree, files["TREES"], "--prefix", tmp_path / "run", "--redo", status=1)
    assert f"{tree}: cannot write the file: the command reads it" in done.stderr
    assert tree.read_text() == TREE


def test_progress_is_replaced_with_redo_and_goes_on_where_the_run_does(plltool, files, tmp_path):
    path = tmp_path / "progress.jsonl"
    given = ("search", files["DATA"], *QUICK, "--effort", "fast", "--prefix", tmp_path / "run", "--json-progress", path)
    assert plltool(*given).exit_code == 0
    first = path.read_text()
    assert plltool(*given).exit_code == 1
    assert path.read_text() == first
    assert plltool(*given, "--redo").exit_code == 0
    assert path.read_text().count('"event": "begin"') == 1


@pytest.mark.parametrize("kind", ["--json-progress", "--site-lnl"])
def test_pipes_get_what_is_written(plltool, files, tmp_path, kind):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    call(plltool, files, "evaluate", kind, pipe, status=0)
    reader.join()
    assert len(read[0].splitlines()) > 1
    assert pipe.is_fifo()


def test_devices_stay_what_they_are(plltool, files):
    for option in ("--json-progress", "--site-lnl"):
        call(plltool, files, "evaluate", option, "/dev/null", status=0)
    assert not os.path.isfile("/dev/null")
