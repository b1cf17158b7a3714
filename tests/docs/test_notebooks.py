"""The notebook of the documentation runs, shows what it promises, and is committed without outputs."""

import re
import shutil

import nbformat
import pytest
from nbclient import NotebookClient
from pages import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))
SECONDS = 300  # for one cell
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_outputs(path):
    """Outputs would be those of an older version; the site makes its own. `jupyter nbconvert --clear-output` helps."""
    notebook = nbformat.read(path, as_version=4)
    assert path.read_text(encoding="utf-8").endswith("}\n")
    assert set(notebook.metadata) == {"kernelspec"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None), f"{path}: cell {cell.id} has been run"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    folder = tmp_path / "docs" / "notebooks"
    folder.mkdir(parents=True)
    shutil.copytree(REPOSITORY / "data", tmp_path / "data")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    kinds = [set(output.get("data", ())) for output in outputs]
    pages = ["".join(output["data"]["text/html"]) for output in outputs if "text/html" in output.get("data", ())]
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    assert sum(WIDGET in own for own in kinds) == 1, "the progress bar"
    assert sum("<svg" in page for page in pages) == 3, "a search, its supports, and a drawing"
    assert sum('class="dataframe"' in page for page in pages) == 6
    assert re.search(r"<th[^>]*>Homo \+ Pan</th>", "".join(pages))
    assert {file.name for file in folder.iterdir()} == {"first_tree.nwk", "first_tree.json"}
