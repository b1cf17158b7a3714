"""The older layout, which scripts/benchmarks/experiments.py times, against the oracle."""

import experiments
import numpy as np
import pytest
from oracles.likelihood import pruning

from plltool.hardware import Hardware

pytestmark = pytest.mark.opencl
TILE, N_PATTERNS = 4, 7


@pytest.mark.parametrize(("n_taxa", "factor"), [(6, 1.0), (300, 1000.0)], ids=["few taxa", "deep enough to rescale"])
def test_the_older_layout(n_taxa, factor):
    """Likelihoods of the patterns of the last tile, from the CLA towards the branch of the first taxon."""
    import pyopencl as cl
    from experiment_parts import OlderLayout

    from plltool.engine.opencl.device import list_devices, make_context

    likelihood, states = experiments.make_likelihood(n_taxa, N_PATTERNS, 4, 4, Hardware("numpy"))
    tree, components = likelihood.tree, likelihood.models[0].components()
    tree.lengths *= factor
    program, matrices = experiments.newviews_of(likelihood)
    context, device = make_context(list_devices()[0][0], None)
    layout = OlderLayout(cl.CommandQueue(context, device), matrices, 1 << states, program, TILE)
    layout.run()
    n_last = N_PATTERNS % TILE
    # the last branch of a likelihood is that at the root, the first taxon
    above = np.einsum("kij,pkj->pki", matrices[-1], layout.cla(program[-1, 0])[:n_last])
    known = (
        components.frequencies[:, states[0, -n_last:]].T
        * np.take_along_axis(above, states[0, -n_last:, None, None], axis=2)[..., 0]
    )
    weighted = components.weights * known
    assert weighted.shape == (n_last, 4)
    q = components.rates[:, None, None] * components.rate_matrices()
    mixture = list(zip(components.weights, components.frequencies, q, strict=True))
    expected = pruning(tree.ends.tolist(), tree.lengths, (1 << states).T[-n_last:].tolist(), mixture)
    assert expected.max() < -256 * np.log(2) or n_taxa == 6, "every pattern of the deep tree is rescaled"
    np.testing.assert_allclose(np.log(weighted.sum(axis=1)), expected, rtol=1e-11)  # both double
