#!/usr/bin/env bash
# Sets up a virtual environment in .venv and runs the checks: ruff, mypy, the size of the code, the documentation, which
# it builds into build/docs, the tests on an OpenCL device, which must be there, and then, without OpenCL, those that may
# end differently there: of commands, the README, the Python interface and the choice of a device. Other tests name the
# engine that they use, so that they would run the same code again. Both runs use all cores, and leave out tests marked `slow`.
# The tests should take less than 10 minutes on two cores. For the slow ones: .venv/bin/python -m pytest -n auto --dist loadfile -m slow
# Needs Python 3.11 or newer ($PYTHON, or python3) and pip.
# Arguments are passed on to both runs of pytest, such as: scripts/check.sh -x
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
export PATH="$PWD/.venv/bin:$PATH"
python -m pip install --quiet --editable ".[pocl,dev]"

# Tests start hundreds of processes; each would compile plltool's modules again if no bytecode were written.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX="$PWD/.venv/bytecode"

echo "== ruff"
ruff check .
ruff format --check plltool tests scripts
echo "== mypy"
mypy
echo "== size"
python scripts/checks/size.py
echo "== documentation"
sphinx-build --fail-on-warning --keep-going --quiet --fresh-env docs build/docs
echo "== tests on an OpenCL device"
python -m pytest -n auto --dist loadfile --require-opencl --durations=10 "$@"
echo "== tests without OpenCL"
python -m pytest -n auto --dist loadfile --no-opencl "$@" \
    "tests/docs/test_commands.py::test_commands[README.md]" "tests/docs/test_commands.py::test_commands[docs/guide/install.md]" \
    tests/cli --ignore=tests/cli/test_{mpi,cli_resume,terminal}.py \
    tests/analyses/test_{api,hardware}.py tests/engine/test_{devices,environment,select}.py
echo "== all checks passed"
