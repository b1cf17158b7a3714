"""How the package is built: by setuptools, with manual pages made from the help of the commands for each wheel."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

ROOT = Path(__file__).resolve().parents[1]
MAN = ROOT / "build" / "man"  # from where pyproject.toml installs them
IMPORTED = ["click>=8.1", "lazy-loader>=0.4"]  # by the commands as far as their help needs


def get_requires_for_build_wheel(config_settings=None):
    return [*build_meta.get_requires_for_build_wheel(config_settings), *IMPORTED]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    shutil.rmtree(MAN, ignore_errors=True)  # a command may be gone
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, ROOT / "scripts" / "tools" / "make_man_pages.py", MAN]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True)
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
