"""How Sphinx builds the site: ``sphinx-build -W --keep-going docs build/docs``."""

import re

import plltool
from plltool.registry import ANALYSES

project = "plltool"
copyright = "2026, the plltool authors"
version = release = plltool.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_click"]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
root_doc = "index"

myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]

nb_execution_mode = "force"  # notebooks are kept without outputs
nb_execution_in_temp = False  # where they find data/
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # pages load nothing

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
    """Turn the sections of a docstring, a heading over lines of `name : text`, into lists that Sphinx knows."""
    made, in_section = [], False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line in SECTIONS and set(following) == {"-"}:
            in_section = True
            made += ["", f"**{line}**", ""]
        elif not in_section:
            made.append(line)
        elif set(line) == {"-"}:
            continue
        elif entry := ENTRY.fullmatch(line):
            made.append(f"- {set_bold(entry['names'])}: {entry['text']}")
        elif line and not line.startswith(" ") and following.startswith(" "):  # the name of an exception or a type
            made.append(f"- {set_bold(line)}:")
        else:
            made.append(f"  {line.strip()}" if line.startswith(" ") else line)
    lines[:] = made


def name_functions(_app, _what, _name, _object, _options, signature, returned):
    """Show a default that is a function by its name."""
    return signature and re.sub(r"<function (\w+)>", r"\1", signature), returned


def set_bold(names):
    """Names separated by commas, each in bold."""
    return ", ".join(f"**{name.strip()}**" for name in names.split(","))


def list_files(_app, context, lines):
    """Add to a command's page what its help has below the options: the files that it writes, and examples."""
    option = getattr(context.command, "prefix_option", None)
    if option is not None:
        lines += ["**Files**", "", option.remark, ""]
        for row in option.table:
            lines += [f"``PREFIX.{row.ending}``", f"   {row.help}", ""]
    examples = getattr(context.command, "examples", ())
    if examples:
        lines += ["**Examples**", "", ".. code-block:: console", "", *(f"   $ {example}" for example in examples), ""]


def list_commands(_app, name, source):
    """List the pages of all commands on the page of commands, in the order of the help."""
    if name == "commands/index":
        stems = ("topology_tests" if name == "test" else name.replace("-", "_") for name in ANALYSES)
        source[0] = source[0].replace("ALL COMMANDS", "\n".join(stems))


def setup(app):
    app.connect("source-read", list_commands)
    app.connect("autodoc-process-docstring", list_sections)
    app.connect("autodoc-process-signature", name_functions)
    app.connect("sphinx-click-process-epilog", list_files)
