"""What `packaging/` has for workflow systems: modules, wrappers and tools, as far as these systems are installed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import pytest

import plltool

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGING = REPOSITORY / "packaging"
NF_CORE = PACKAGING / "nf-core" / "plltool" / "search"
SNAKEMAKE = PACKAGING / "snakemake" / "plltool" / "search"
GALAXY = PACKAGING / "galaxy" / "plltool_search.xml"
pytestmark = pytest.mark.slow


@pytest.fixture
def bash(tmp_path, data_dir):
    """Runs a script in a folder with a copy of data/, where this environment's plltool comes first on the path."""
    shutil.copytree(data_dir, tmp_path, dirs_exist_ok=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    def run(script, **variables):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path, env=os.environ | {"PATH": path} | variables, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


# --- nf-core ---------------------------------------------------------------------------------------------


def nf_core_script(kind, values):
    """The bash of the module's `script` or `stub`, as Nextflow writes it with values of its variables."""
    text = (NF_CORE / "main.nf").read_text(encoding="utf-8").split(f"\n    {kind}:\n")[1]
    body = text.split('"""\n')[1]
    filled = re.sub(r"(?<!\\)\$\{([\w.]+)\}", lambda found: values[found[1]], body)
    assert not re.search(r"(?<!\\)\$", filled)
    return dedent(filled).replace("\\\\", "\\").replace("\\$", "$")


def nf_core_outputs():
    """Name to (file, whether it is optional) of the module's outputs."""
    text = (NF_CORE / "main.nf").read_text(encoding="utf-8")
    rows = re.findall(r'path[( ]"([^"]+)"\)? *, emit: (\w+) *(, optional: true)?', text)
    assert len(rows) == text.count("emit:")
    return {name: (file, bool(optional)) for file, name, optional in rows}


@pytest.mark.parametrize(
    ("values", "optional"),
    [
        ({"alignment": "hard.fasta", "partitions_arg": "", "args": "--effort fast --model JC"}, set()),
        (
            {
                "alignment": "primates.phy",
                "partitions_arg": "--partitions primates.part",
                "args": "--effort fast --bootstrap 3 --supports fbp",
            },
            {"model", "supports", "bootstraps"},
        ),
    ],
)
def test_the_script_of_the_nf_core_module(values, optional, bash, tmp_path):
    more = {"constraint_arg": "", "prefix": "sample", "task.cpus": "1", "task.process": "A:PLLTOOL_SEARCH"}
    bash(nf_core_script("script", values | more))
    outputs = nf_core_outputs()
    written = {name for name, (file, _) in outputs.items() if (tmp_path / file.replace("${prefix}", "sample")).exists()}
    assert written == {name for name, (_, is_optional) in outputs.items() if not is_optional} | optional
    assert (tmp_path / "versions.yml").read_text() == f'"A:PLLTOOL_SEARCH":\n    plltool: {plltool.__version__}\n'


def test_the_stub_of_the_nf_core_module(bash, tmp_path):
    bash(nf_core_script("stub", {"prefix": "sample", "task.process": "A"}))
    for file, optional in nf_core_outputs().values():
        assert optional or (tmp_path / file.replace("${prefix}", "sample")).exists()


def test_the_description_of_the_nf_core_module():
    yaml = pytest.importorskip("yaml")
    text = (NF_CORE / "main.nf").read_text(encoding="utf-8")
    described = yaml.safe_load((NF_CORE / "meta.yml").read_text(encoding="utf-8"))
    (given,) = re.findall(r"^    tuple (.*)$", text.split("input:")[1].split("output:")[0], re.MULTILINE)
    assert [next(iter(own)) for own in described["input"][0]] == re.findall(r"\((\w+)\)", given)
    files = {}
    for name, rows in described["output"].items():
        row = rows[0][1] if isinstance(rows[0], list) else rows[0]
        files[name] = next(iter(row))
    assert files == {name: file for name, (file, _) in nf_core_outputs().items()}
    for folder, suffix in ((NF_CORE, "yml"), (SNAKEMAKE, "yaml")):
        environment = yaml.safe_load((folder / f"environment.{suffix}").read_text(encoding="utf-8"))
        assert [own.replace(" ", "") for own in environment["dependencies"]] == [f"plltool={plltool.__version__}"]


# --- Snakemake -------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("snakemake") is None, reason="needs Snakemake: pip install snakemake")
def test_the_snakemake_wrapper(bash, tmp_path):
    shutil.copytree(SNAKEMAKE, tmp_path / "wrappers/master/bio/plltool/search")
    targets = "trees/hard.nwk trees/primates.support.nwk"
    snakefile = SNAKEMAKE / "test" / "Snakefile"
    prefix = f"--wrapper-prefix file://{tmp_path}/wrappers/"
    bash(f"snakemake --cores 1 --snakefile {snakefile} {prefix} {targets}", HOME=str(tmp_path / "home"))
    assert plltool.read_record(tmp_path / "trees/hard.json")["seed"] == 7
    assert "lnL: -" in (tmp_path / "logs/hard.log").read_text()
    made = {path.name for path in (tmp_path / "trees").glob("primates*")}
    assert made == {f"primates.{ending}" for ending in ("nwk", "model", "support.nwk", "bootstraps.nwk", "html")}
    assert (tmp_path / "trees/primates.bootstraps.nwk").read_text().count(";") == 4


# --- Galaxy ----------------------------------------------------------------------------------------------


def galaxy_tests():
    """The names and values of each test of the Galaxy tool, and its outputs."""
    root = ElementTree.parse(GALAXY).getroot()
    for test in root.iter("test"):
        yield {own.get("name"): own.get("value") for own in test.findall("param")}, test


@pytest.mark.parametrize(("given", "test"), [*galaxy_tests()])
def test_the_galaxy_tool(given, test, bash, tmp_path):
    """Its command, as Galaxy fills it in for each of its tests, writes what the test asserts."""
    template = pytest.importorskip("Cheetah.Template", reason="needs Cheetah: pip install CT3")
    root = ElementTree.parse(GALAXY).getroot()
    values = {}
    for own in root.find("inputs"):
        chosen = [option.get("value") for option in own.findall("option") if option.get("selected")]
        name = own.get("name") or own.get("argument").strip("-")
        values[name] = own.get("value") or "".join(chosen)
    assert given.keys() <= values.keys()
    filled = str(template.Template(root.findtext("command"), searchList=[values | given]))
    bash(filled.replace("\n", " "))  # as Galaxy does
    files = {
        own.get("name"): own for own in root.find("outputs") if own.find("filter") is None or given.get("supports")
    }
    assert len(files) == int(test.get("expect_num_outputs"))
    for own in files.values():
        assert (tmp_path / own.get("from_work_dir")).exists()
    for output in test.findall("output"):
        content = (tmp_path / files[output.get("name")].get("from_work_dir")).read_text(encoding="utf-8")
        for asserted in output.find("assert_contents"):
            assert holds(asserted, content), ElementTree.tostring(asserted)


def holds(asserted, content):
    """Whether a text is as an assertion of Galaxy says."""
    kind = asserted.tag
    if kind == "has_n_lines":
        return len(content.splitlines()) == int(asserted.get("n"))
    if kind == "has_text":
        return asserted.get("text") in content
    if kind == "has_json_property_with_value":
        return json.loads(content)[asserted.get("property")] == json.loads(asserted.get("value"))
    assert kind == "has_text_matching"
    return re.search(asserted.get("expression"), content) is not None


def test_the_galaxy_tool_is_of_this_version():
    root = ElementTree.parse(GALAXY).getroot()
    assert root.findtext("macros/token") == plltool.__version__


# --- OrthoFinder -----------------------------------------------------------------------------------------


def test_the_snippet_for_orthofinder(bash, tmp_path):
    """Its command writes the file that it names, and the guide shows the same."""
    (method,) = json.loads((PACKAGING / "orthofinder" / "config.json").read_text(encoding="utf-8")).values()
    names = {"INPUT": "proteins.fa", "PATH": str(tmp_path), "IDENTIFIER": "OG0000001"}
    rows = {name: "MKVLAAGIVGLLLAQWERTYHHKL"[: 24 - k] + "A" * k for k, name in enumerate("abcde")}
    (tmp_path / "proteins.fa").write_text("".join(f">{name}\n{row}\n" for name, row in rows.items()))

    def fill(text):
        return re.sub("|".join(names), lambda found: names[found[0]], text)

    assert bash(fill(method["cmd_line"])) == ""
    tree = plltool.read_tree(fill(method["ouput_filename"]))
    assert sorted(tree.names) == sorted(rows)
    guide = (REPOSITORY / "docs" / "guide" / "pipelines.md").read_text(encoding="utf-8")
    for text in method.values():
        assert json.dumps(text) in guide
