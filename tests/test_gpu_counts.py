"""What `scripts/gpu/gpu_counts.py` reads and reckons; the counts themselves need Oclgrind."""

import gpu_counts as module
import pytest

from plltool.engine import program as prog

HISTOGRAMS = """Instructions executed for kernel 'pmatrices':
            1792 - fmul

Instructions executed for kernel 'traverse':
           24128 - getelementptr
           12288 - load local (98304 bytes)
            9216 - call llvm.fmuladd.f64()
            4608 - fmul
             128 - load global (1024 bytes)
              96 - call llvm.lifetime.end.p0i8()
              32 - fdiv
"""


def test_histograms_of_oclgrind():
    """As version 21.10 prints them; a multiply-add is two operations."""
    assert module.read_histograms(HISTOGRAMS) == [(2 * 9216 + 4608 + 32, 12288)]


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("NEWVIEW, two CLAs", (4, 4, 64), 3 * 4 * (4 * 8 + 4) + 2 * 4 * 16 * 8 / 64),
        ("NEWVIEW, a tip and a CLA", (4, 4, 64), 2 * 4 * (4 * 8 + 4) + 1 + 2 * 4 * 16 * 8 / 64),
        ("TRIPLET", (61, 1, 32), 3 * (61 * 8 + 4) + 9 * 61 * 62 * 8 / 32),  # a column of row sums
    ],
)
def test_bytes_of_an_instruction(name, shape, expected):
    assert module.count_bytes(module.INSTRUCTIONS[name], module.make_layout(*shape)) == expected


def test_names_of_instructions():
    rows = [prog.newview(0, ~0, 0, ~1, 1), prog.newview(0, 1, 0, ~1, 1), prog.insert(0, 0, 4, 1, 5, 2)]
    names = ["NEWVIEW, two tips", "NEWVIEW, a tip and a CLA", "INSERT"]
    assert [module.name_of(row[0]) for row in rows] == names


def test_the_longest_time_bounds():
    """Of an H100 by its data sheet: 3.35 TB/s, and 34e12 operations a second."""
    of_memory = module.bound({"bytes": 3350, "operations": 1, "local_loads": 0})["H100 SXM"]
    assert of_memory == {"limit": "memory", "billions": pytest.approx(1)}
    of_arithmetic = module.bound({"bytes": 1, "operations": 34_000, "local_loads": 0})["H100 SXM"]
    assert of_arithmetic == {"limit": "arithmetic", "billions": pytest.approx(1)}


def test_a_prediction_adds_instructions_and_calls():
    use = {"bytes": 3350.0, "operations": 1.0, "local_loads": 0.0}
    counts = {"by_instruction": {"EVALUATE": 7}, "launches": 10, "waits": 3}
    found = module.predict(counts, {"EVALUATE": use})["H100 SXM"]
    assert found == pytest.approx({"peak": 7e-9 * 100_000, "half": 14e-9 * 100_000, "calls": 10 * 5e-6 + 3 * 20e-6})
