"""The random choices of a run: one generator for each purpose, all from one seed."""

import numpy as np

STARTS, PERTURBATIONS, DIFFICULTY, BOOTSTRAP, BOOTSTOP, SUPPORTS, TESTS, SIMULATION, ULTRAFAST, RAPID = range(10)
QUARTETS, SAMPLING = 10, 11


def generator(seed: int, purpose: int, number: int = 0) -> np.random.Generator:
    """The generator for a purpose; each start tree, from 0, has its own, so that its choices depend on nothing else."""
    return np.random.default_rng(np.random.SeedSequence([seed, number, purpose]))
