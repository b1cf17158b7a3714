"""The recipes of other package managers ask for what pyproject.toml asks for, and the citation names the version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import plltool

REPOSITORY = Path(__file__).resolve().parents[1]
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
