"""The source distribution and the wheel built from it: nothing is missing, and a search runs from the wheel alone."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from make_man_pages import make_pages

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
