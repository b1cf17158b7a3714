"""What `packaging/` has for workflow systems: modules, wrappers and tools, as far as these systems are installed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import plltool

PACKAGING = Path(__file__).resolve().parents[1] / "packaging"
SNAKEMAKE = PACKAGING / "snakemake" / "plltool" / "search"
pytestmark = pytest.mark.slow


@pytest.fixture
def bash(tmp_path, data_dir):
    """Runs a script in a folder with a copy of data/, where this environment's plltool comes first on the path."""
    shutil.copytree(data_dir, tmp_path, dirs_exist_ok=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    def run(script):
        whole = os.environ | {"PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        done = subprocess.run(["bash", "-euc", script], cwd=tmp_path, env=whole, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize(("kind", "optional"), [("stub", set()), ("script", {"model", "supports", "bootstraps"})])
def test_the_nf_core_module(kind, optional, bash, tmp_path):
    """Its bash, as Nextflow fills it in, writes the files that it and its description name."""
    folder = PACKAGING / "nf-core" / "plltool" / "search"
    text = (folder / "main.nf").read_text(encoding="utf-8")
    values = {"alignment": "primates.phy", "partitions_arg": "--partitions primates.part", "constraint_arg": ""}
    values |= {
        "args": "--effort fast --bootstrap 3 --supports fbp",
        "prefix": "x",
        "task.cpus": "1",
        "task.process": "P",
    }
    body = text.split(f"\n    {kind}:\n")[1].split('"""\n')[1]
    filled = re.sub(r"(?<!\\)\$\{([\w.]+)\}", lambda found: values[found[1]], body)
    bash(dedent(filled).replace("\\\\", "\\").replace("\\$", "$"))
    outputs = re.findall(r'path[( ]"([^"]+)"\)? *, emit: (\w+) *(, optional: true)?', text)
    written = {name for file, name, _ in outputs if (tmp_path / file.replace("${prefix}", "x")).exists()}
    assert written == {name for _, name, may_lack in outputs if not may_lack} | optional
    assert f"plltool: {plltool.__version__}\n" in (tmp_path / "versions.yml").read_text()
    described = (folder / "meta.yml").read_text(encoding="utf-8")
    assert re.findall(r'^ +- "(\S+)":\n +type: file', described, re.MULTILINE) == [file for file, _, _ in outputs]


@pytest.mark.skipif(shutil.which("snakemake") is None, reason="needs Snakemake: pip install snakemake")
def test_the_snakemake_wrapper(bash, tmp_path):
    shutil.copytree(SNAKEMAKE, tmp_path / "wrappers/master/bio/plltool/search")
    where = f"--snakefile {SNAKEMAKE / 'test' / 'Snakefile'} --wrapper-prefix file://{tmp_path}/wrappers/"
    bash(f"snakemake --cores 1 {where} trees/hard.nwk trees/primates.support.nwk")
    assert plltool.read_record(tmp_path / "trees/hard.json")["seed"] == 7
    assert "lnL: -" in (tmp_path / "logs/hard.log").read_text()
    made = {path.name for path in (tmp_path / "trees").glob("primates*")}
    assert made == {f"primates.{ending}" for ending in ("nwk", "model", "support.nwk", "bootstraps.nwk", "html")}


@pytest.mark.skipif(shutil.which("augur") is None, reason="needs augur: pip install nextstrain-augur")
@pytest.mark.parametrize("method", ["iqtree", "fasttree", "raxml"])
def test_augur_as_it_is(method, bash, tmp_path):
    """`augur tree` finds the front ends on the path, and reads what they write."""
    bash("plltool front-ends bin")
    command = f"augur tree --method {method} --alignment genes/gene1.fasta --output tree.nwk"
    for path in (tmp_path / "bin").iterdir():  # each says that it was called
        path.write_text(path.read_text().replace("exec ", f"echo {path.name} >> {tmp_path}/called\nexec ", 1))
    bash(f"PATH=$PWD/bin:$PATH; {command}")
    called = (tmp_path / "called").read_text().lower().split()
    assert called
    assert all(name.startswith(method) for name in called)
    assert len(plltool.read_tree(tmp_path / "tree.nwk").names) == 12


def test_the_galaxy_tool_is_of_this_version():
    text = (PACKAGING / "galaxy" / "plltool_search.xml").read_text(encoding="utf-8")
    assert f'<token name="@TOOL_VERSION@">{plltool.__version__}</token>' in text


def test_the_method_of_orthofinder(bash, tmp_path):
    """Its command writes the file that it names, and the guide shows it."""
    (method,) = json.loads((PACKAGING / "orthofinder" / "config.json").read_text(encoding="utf-8")).values()
    names = {"INPUT": "proteins.fa", "PATH": str(tmp_path), "IDENTIFIER": "OG0000001"}
    rows = {name: "MKVLAAGIVGLLLAQWERTYHHKL"[: 24 - k] + "A" * k for k, name in enumerate("abcde")}
    (tmp_path / "proteins.fa").write_text("".join(f">{name}\n{row}\n" for name, row in rows.items()))
    command, file = (re.sub("|".join(names), lambda at: names[at[0]], text) for text in [*method.values()][1:])
    assert bash(command) == ""
    assert sorted(plltool.read_tree(file).names) == sorted(rows)
    guide = (PACKAGING.parent / "docs" / "guide" / "pipelines.md").read_text(encoding="utf-8")
    assert all(json.dumps(text) in guide for text in method.values())
