"""Packages: sources, wheel, manual pages, recipes of other package managers; nothing is missing, and a search runs."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import make_man_pages
import pytest
from make_man_pages import make_pages

import plltool
from plltool.cli import main

REPOSITORY = Path(__file__).resolve().parents[1]
LEFTOVERS = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "*.plltool.*")
pytestmark = pytest.mark.slow


def run(*arguments, **options):
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """Paths of the source distribution and of the wheel that was built from it.

    They are made from a copy of the repository: what an earlier build left behind would be packed as well.
    """
    pytest.importorskip("build")
    pytest.importorskip("setuptools", minversion="77")  # as pyproject.toml asks for; no isolation, so no download
    folder = tmp_path_factory.mktemp("packaging")
    shutil.copytree(REPOSITORY, folder / "source", ignore=LEFTOVERS)
    run("-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(distributions, tmp_path_factory):
    """The folder that the wheel was unpacked into."""
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(distributions[1]).extractall(folder)
    return folder


def files_below(folder, *patterns):
    return {path.relative_to(folder).as_posix() for pattern in patterns for path in folder.rglob(pattern)}


def test_the_wheel_has_kernels_and_all_modules(installed):
    kernels = files_below(REPOSITORY / "kernels", "*.cl", "*.h")
    assert {Path(name).suffix for name in kernels} == {".cl", ".h"}
    assert files_below(installed / "plltool" / "kernels", "*.cl", "*.h") == kernels
    modules = files_below(REPOSITORY / "plltool", "*.py") | {"kernels/__init__.py"}
    assert files_below(installed / "plltool", "*.py") == modules
    assert (installed / "plltool" / "py.typed").is_file()
    data = files_below(REPOSITORY / "plltool", "*.txt", "*.css", "*.js", "*.html")
    assert {Path(name).suffix for name in data} == {".txt", ".css", ".js", ".html"}
    assert files_below(installed / "plltool", "*.txt", "*.css", "*.js", "*.html") == data
    assert {path.name.split("-")[0] for path in installed.iterdir()} == {"plltool"}  # no tests, no scripts


def test_the_wheel_has_a_manual_page_of_each_command(installed):
    (folder,) = installed.glob("*.data/data/share/man/man1")
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == make_pages()


def test_the_package_index_would_take_them(distributions):
    pytest.importorskip("twine")
    run("-m", "twine", "check", "--strict", *distributions)


def test_the_source_distribution_is_complete(distributions):
    with tarfile.open(distributions[0]) as archive:
        names = {re.sub(r"^[^/]*/", "", name) for name in archive.getnames()}
    expected = {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml"}
    for folder in ("kernels", "data", "packaging", "scripts", "tests"):
        paths = [path for path in (REPOSITORY / folder).rglob("*") if path.is_file()]
        expected |= {path.relative_to(REPOSITORY).as_posix() for path in paths}
    left_out = {name for name in expected if name.endswith(".pyc") or ".plltool." in name}
    assert expected - left_out <= names


def test_a_search_runs_from_the_wheel(installed, data_dir, tmp_path):
    code = "import plltool; print(plltool.__file__); from plltool.cli import main; main(prog_name='plltool')"
    path = os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH", "")]))
    arguments = ("search", data_dir / "primates.phy", "--prefix", tmp_path / "run")
    done = run("-c", code, *arguments, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path})
    assert Path(done.stdout.splitlines()[0]).is_relative_to(installed)
    assert (tmp_path / "run.best.nwk").read_text().count("(") == 10


@pytest.mark.opencl
def test_the_wheels_kernels_build(installed, tmp_path):
    path = os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH", "")]))
    code = "from plltool.cli import main; main(['devices'], prog_name='plltool')"
    done = run("-c", code, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path})
    assert re.search(r"^ +test +passed$", done.stdout, re.MULTILINE)


PAGES = make_man_pages.make_pages()
COMMANDS = {f"plltool-{name}": command for name, command in main.commands.items()}
COMMANDS |= {f"plltool-trees-{name}": command for name, command in main.commands["trees"].commands.items()}


def test_every_command_has_a_page():
    assert PAGES.keys() == {f"{name}.1" for name in ("plltool", *COMMANDS)}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_all_sections_and_every_option(name):
    page, command = PAGES[f"{name}.1"], COMMANDS[name]
    assert re.match(rf'\.TH "{name.upper()}" "1" "" "plltool [0-9.]+" "plltool manual"\n\.SH NAME\n', page)
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"} <= set(re.findall(r"^\.SH (.*)$", page, re.MULTILINE))
    shown = page.replace("\\-", "-")
    assert [
        word for option in command.params for word in option.opts if word.startswith("--") and word not in shown
    ] == []


def test_wheels_install_what_is_built():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert make_man_pages.FOLDER == REPOSITORY / "build" / "man"
    assert project["tool"]["setuptools"]["data-files"] == {"share/man/man1": ["build/man/*.1"]}


PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DRIVER = "pocl"  # the OpenCL driver for CPUs, which pip users get as an extra


def dependencies(text):
    """Names and least versions of a list in YAML, without what only builds."""
    found = re.findall(r"^ +- ([a-z-]+)(?: (>=[0-9.]+))?$", text, re.MULTILINE)
    return {name: least for name, least in found if name not in ("pip", "conda-forge", "nodefaults", "setuptools")}


def expected():
    found = dict(re.fullmatch(r"([a-z-]+)(>=.*)", text).groups() for text in PROJECT["dependencies"])
    (driver,) = PROJECT["optional-dependencies"][DRIVER]
    return found | {"python": PROJECT["requires-python"], DRIVER: driver[driver.index(">=") :]}


def test_environment():
    text = (REPOSITORY / "packaging" / "environment.yml").read_text(encoding="utf-8")
    assert dependencies(text) == expected()


def test_conda_recipe():
    """As rattler-build reads it."""
    rattler_build = pytest.importorskip("rattler_build", reason="needs rattler-build: pip install py-rattler-build")
    recipe = rattler_build.Stage0Recipe.from_file(str(REPOSITORY / "packaging" / "conda" / "recipe.yaml"))
    (variant,) = recipe.render()
    package, wanted = variant.recipe.package, variant.recipe.requirements.run
    assert (str(package.name), str(package.version)) == (PROJECT["name"], plltool.__version__)
    assert dict(str(item).split() for item in wanted) == expected()


def test_citation():
    text = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == plltool.__version__
    assert re.search(r"^license: (.*)$", text, re.MULTILINE)[1] == PROJECT["license"]
    assert set(re.findall(r"^  - ([^:\n]+)$", text, re.MULTILINE)) == set(PROJECT["keywords"])


def test_the_image_and_the_workflow_run_what_the_readme_says():
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    image = (REPOSITORY / "packaging" / "Dockerfile").read_text(encoding="utf-8")
    assert "plltool search data/primates.phy" in image
    assert "plltool search data/primates.phy" in readme
    workflow = (REPOSITORY / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
    assert "run: scripts/check.sh" in workflow
    assert "scripts/check.sh" in readme
