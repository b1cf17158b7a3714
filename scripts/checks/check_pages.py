#!/usr/bin/env python3
"""Open reports in a browser and check them: HTML, accessibility, console, width, and what they load.

    plltool search data/primates.phy --prefix primates
    python scripts/checks/check_pages.py primates.html

Each page is seen wide, narrow as a phone, light, dark and printed, by Chromium, which puppeteer drives. html-validate
reads the HTML, axe looks for what people with impairments cannot use. Pictures of all views are for you to look at.
The exit status is 1 if anything is found. Without node, npm or Chromium nothing is checked, and a line says so.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = REPOSITORY / "build" / "page-tools"  # where npm installs
PACKAGES = ("html-validate@10.17.0", "axe-core@4.14.1", "puppeteer-core@24.43.1")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def install() -> None:
    """Let npm fetch the packages, unless they are there; puppeteer brings no browser of its own."""
    listed = TOOLS / "package.json"
    if listed.exists() and all(name.rpartition("@")[2] in listed.read_text(encoding="utf-8") for name in PACKAGES):
        return
    TOOLS.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--save-exact", *PACKAGES]
    subprocess.run(command, cwd=TOOLS, env=os.environ | {"PUPPETEER_SKIP_DOWNLOAD": "1"}, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path, help="reports, such as primates.html")
    pictures = REPOSITORY / "build" / "page-pictures"
    parser.add_argument("--pictures", type=Path, default=pictures, help="folder for pictures (build/page-pictures)")
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    missing = [name for name in ("node", "npm") if shutil.which(name) is None] + ["Chromium"] * (browser is None)
    if missing:
        print(f"nothing is checked: found no {' and no '.join(missing)}")
        return 0
    install()
    options.pictures.mkdir(parents=True, exist_ok=True)
    paths = [path.resolve() for path in (options.pictures, *options.pages)]
    command = ["node", Path(__file__).with_suffix(".mjs"), str(browser), *paths]
    return subprocess.run(command, cwd=TOOLS, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
