"""Random sequences of calls on BEAGLE's library (3.1) and on `Instance`: all numbers that they return are the same."""

from dataclasses import replace

import numpy as np
import pytest
from beagle_library import Library, load_library
from sequences import Player, Shape

from plltool.beagle import Flag, Instance

LIBRARY = load_library()
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="libhmsbeagle.so.1 is not installed (Debian: libhmsbeagle1v5)")
TOLERANCE = {"double": 1e-10, "single": 1e-4}  # of a number's size, or of 1
SEQUENCES = 200


def compare(shape, seed, framework):
    """Play one sequence on both, and compare all answers.

    The library's automatic scaling is wrong by some units of lnL now and then, on which its header remarks that it may
    not work; so without scaling it says what is right there. In single precision its matrices of complex eigenvalues
    are off by 1e-3, because it makes them in single precision, too; so it works in double there.
    """
    apart = replace(
        shape,
        mode="none" if shape.mode == "auto" else shape.mode,
        precision="double" if shape.is_complex else shape.precision,
    )
    library = Library(LIBRARY, *shape.sizes, required=apart.flags)
    own = Instance(*shape.sizes, requirement_flags=shape.flags | framework)
    try:
        expected = Player(library, shape, seed).play()
        found = Player(own, shape, seed).play()
    finally:
        library.finalize()
        own.finalize()
    assert [name for name, _ in found] == [name for name, _ in expected]
    for number, ((name, value), (_, wanted)) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(
            value, wanted, rtol=TOLERANCE[shape.precision], atol=TOLERANCE[shape.precision], err_msg=f"{number} {name}"
        )
    return len(found)


def shapes(n_states, count, precision="double"):
    rng = np.random.default_rng([n_states, precision == "single"])
    return [Shape.random(rng, n_states, precision) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(("n_states", "share"), [(4, 0.5), (20, 0.3), (61, 0.2)])
@pytest.mark.parametrize("precision", TOLERANCE)
def test_numpy(n_states, share, precision):
    n_sequences = int(share * SEQUENCES) // (1 if precision == "double" else 4)
    for seed, shape in enumerate(shapes(n_states, n_sequences, precision)):
        assert compare(shape, seed, Flag.FRAMEWORK_CPU) > 3, shape


@pytest.mark.slow
@pytest.mark.opencl
@pytest.mark.parametrize(("n_states", "n_categories", "n"), [(4, 4, 20), (20, 2, 8), (61, 2, 3)])  # as other tests
def test_opencl(n_states, n_categories, n):
    for seed, shape in enumerate(shapes(n_states, n)):
        own = replace(shape, n_categories=n_categories)
        assert compare(own, seed, Flag.FRAMEWORK_OPENCL) > 3, own
