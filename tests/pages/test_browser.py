"""Reports in a browser: the script runs under the page's policy, and names do nothing. Skipped without Chromium."""

import shutil
import subprocess

import pytest
from page_reader import read_page, texts_of
from page_records import HOSTILE, NAMES, quoted_tree, record_of_search, write

import plltool

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-dev-shm-usage", "--enable-logging=stderr", "--virtual-time-budget=3000",
)  # fmt: skip
SECONDS = 60.0
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")


def open_page(path, folder, *flags):
    """What Chromium prints of a page, and what its console says."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_the_script_draws_the_tree_and_no_name_runs(tmp_path):
    names = (*NAMES, *HOSTILE)
    write(tmp_path / "x.json", record_of_search(names, quoted_tree(names)))
    plltool.report(tmp_path / "x").write()
    dom, console = open_page(tmp_path / "x.html", tmp_path, "--dump-dom")
    assert console == []
    elements = read_page(dom)
    assert not [name for name, _, _ in elements if name in ("img", "iframe")]
    (toolbar,) = [given for _, given, _ in elements if given.get("id") == "toolbar"]
    assert "hidden" not in toolbar, "the script has not run"
    assert [given["data-number"] for name, given, _ in elements if given.get("class") == "hit"], "no tree of the script"
    shown = texts_of(elements, "text")
    assert [shown.count(name) for name in names] == [1] * len(names)


def test_a_picture_of_the_page(prefix):
    plltool.report(prefix).write()
    picture = prefix.with_name("page.png")
    _, console = open_page(prefix.with_name("run.html"), prefix.parent, f"--screenshot={picture}")
    assert console == []
    assert picture.read_bytes().startswith(b"\x89PNG")
