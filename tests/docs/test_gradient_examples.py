"""The examples of docs/guide/gradients.md for libraries that plltool does not need; each is skipped without its own."""

import os
import subprocess
import sys

import pytest
from examples import blocks
from pages import REPOSITORY

PAGE = (REPOSITORY / "docs" / "guide" / "gradients.md").read_text(encoding="utf-8")
NEEDS = {"jax": (), "blackjax": ("jax",), "numpyro": ("jax",), "pymc": (), "torch": ()}  # blocks that come before


@pytest.mark.slow
@pytest.mark.parametrize("library", NEEDS)
def test_example(library):
    pytest.importorskip(library, reason=f"{library} cannot be imported", exc_type=ImportError)
    kinds = ["python", *(f"python {name}" for name in (*NEEDS[library], library))]
    program = "\n".join(text for kind in kinds for text, _ in blocks(PAGE, kind))
    if library == "jax":  # a gradient that goes through all of it
        program += "\nprint(jax.jit(jax.grad(log_density))(jnp.array(start)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, env=os.environ, text=True, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "nan" not in done.stdout
    assert "-inf" not in done.stdout


def test_every_example_of_a_library_is_listed():
    kinds = {line.removeprefix("```python ") for line in PAGE.splitlines() if line.startswith("```python ")}
    assert kinds == set(NEEDS)
