#!/usr/bin/env bash
# The path of a new user, timed: builds the wheel of the last commit, then, in an empty folder, makes a virtual environment, installs the
# wheel with PoCL from PyPI, searches the tree of 12 primates, and opens the report in a headless Chromium.
# Prints the seconds of each step, and where the picture is. Needs Python 3.11 or newer ($PYTHON, or python3), pip and
# chromium. The folder is $1, by default a new one.
set -euo pipefail
repository="$(cd "$(dirname "$0")/.." && pwd)"
folder="${1:-$(mktemp -d)}"
mkdir -p "$folder"
cd "$folder"
[ -z "$(ls -A)" ] || { echo "$folder: found files, expected an empty folder" >&2; exit 1; }
python="${PYTHON:-python3}"
chromium="$(command -v chromium || command -v chromium-browser || command -v google-chrome)"
mkdir source
git -C "$repository" archive HEAD | tar --extract --directory source
"$python" -m pip wheel --quiet --no-deps --wheel-dir dist ./source
cp "$repository/data/primates.phy" .

step() {  # the name of a step, and its command
    local name="$1" began="$SECONDS"
    shift
    "$@"
    echo "$name: $((SECONDS - began)) s"
}

SECONDS=0
step environment "$python" -m venv environment
step install environment/bin/pip install --quiet --find-links dist "plltool[pocl]"
step search environment/bin/plltool search primates.phy --model GTR+F+G4 --seed 7 --prefix primates --quiet
step picture "$chromium" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars \
    --user-data-dir="$PWD/profile" --virtual-time-budget=3000 --window-size=1200,1600 \
    --screenshot="$PWD/primates.png" "file://$PWD/primates.html" 2> chromium.log
echo "from pip to a picture: $SECONDS s"
echo "picture: $folder/primates.png"
