#!/usr/bin/env bash
# Sets up a virtual environment in .venv, with a CPU OpenCL device from PyPI, and searches the tree of 12 primates.
# Needs Python 3.11 or newer ($PYTHON, or python3) and pip. Arguments are passed on to `plltool search`.
# DRIVER=intel takes Intel's driver, which is faster and larger, instead of PoCL.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
.venv/bin/python -m pip install --quiet ".[${DRIVER:-pocl}]"
.venv/bin/plltool search data/primates.phy --redo "$@"
