"""The packages of plltool, as they are found; pyproject.toml has all else."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["plltool*"]), "plltool.kernels"])
