#!/usr/bin/env bash
# Tests and measures plltool on the GPU of a machine without a network: one command, 20 minutes. What it finds lies in
# gpu_day/ (or $OUT), a JSON file for each part and all of them in gpu_day.json.
#
#   scripts/gpu/gpu_day.sh --collect        before, on a machine with a network: wheels into wheels/ (or $WHEELS)
#   scripts/gpu/gpu_day.sh [PART ...]       on the machine with the GPU: some parts, or all; --help lists them
#
# Python 3.11 or newer ($PYTHON, or python3). Packages that it has already, such as numpy and scipy, need no wheel.
set -euo pipefail
cd "$(dirname "$0")/../.."
wheels=${WHEELS:-wheels}
python=${PYTHON:-python3}
if [ "${1:-}" = --collect ]; then
    shift
    exec "$python" -m pip download --quiet --only-binary :all: --no-deps --dest "$wheels" \
        "${@:---python-version=3.12}" pyopencl platformdirs pytools siphash24 typing-extensions click dendropy lazy-loader \
        packaging pytest pluggy iniconfig pygments pytest-xdist execnet hypothesis sortedcontainers
fi
export PYTHONPATH="$PWD:$PWD/.gpu_day"
needed="numpy, scipy, pyopencl, click, dendropy, lazy_loader, xdist, hypothesis"
if [ "${1:-}" != --help ] && ! "$python" -c "import $needed" 2>/dev/null; then
    if ! compgen -G "$wheels/*.whl" >/dev/null; then
        echo "$python lacks one of $needed, and there are no wheels in $wheels/: scripts/gpu/gpu_day.sh --collect" >&2
        exit 1
    fi
    "$python" -m pip install --quiet --no-index --no-deps --target .gpu_day "$wheels"/*.whl
fi
exec "$python" scripts/gpu/gpu_day.py --out "${OUT:-gpu_day}" "$@"
