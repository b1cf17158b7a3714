"""How Sphinx builds the site: ``sphinx-build -W --keep-going docs build/docs``."""

import re

import plltool

project = "plltool"
copyright = "2026, the plltool authors"
version = release = plltool.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]
exclude_patterns = ["_build"]
root_doc = "index"

myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]

smartquotes = False  # help texts and docstrings are full of --options
default_role = "code"  # docstrings write `name` for what is typed
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # each docstring says what it takes

html_theme = "furo"
html_title = f"plltool {version}"
html_static_path = ["static"]
html_css_files = ["plltool.css"]
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

SECTIONS = ("Parameters", "Attributes", "Returns", "Raises")
ENTRY = re.compile(r"(?P<names>[\w*, ]+?) : (?P<text>.*)")


def list_sections(_app, _what, _name, _object, _options, lines):
    """Turn the sections of a docstring, a heading and lines of `name : text`, into lists that Sphinx knows."""
    made, section = [], None
    for number, line in enumerate(lines):
        underlined = number + 1 < len(lines) and set(lines[number + 1]) == {"-"}
        if line in SECTIONS and underlined:
            section = line
            made += ["", f"**{section}**", ""]
        elif section and set(line) == {"-"}:
            continue
        elif section and line and not line.startswith(" "):
            entry = ENTRY.fullmatch(line)
            names = [name.strip() for name in (entry["names"] if entry else line).split(",")]
            made.append(f"- {', '.join(f'**{name}**' for name in names)}: {entry['text'] if entry else ''}")
        elif section:
            made.append(f"  {line.strip()}" if line else "")
        else:
            made.append(line)
    lines[:] = made


def setup(app):
    app.connect("autodoc-process-docstring", list_sections)
