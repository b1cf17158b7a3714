"""How well does an alignment determine the shape of its rates? Profiles of alpha and of the GTR rates on a fixed tree.

    python scripts/profile_alpha.py data/primates.phy
"""

import sys

from plltool.analyses.likelihood import Likelihood
from plltool.analyses.search import search

alignment = sys.argv[1]
tree = search(alignment, model="GTR+F+G4", seed=1).tree
with Likelihood(alignment, tree, model="GTR+F+G4") as likelihood:
    best = likelihood.optimise()
    print(f"lnL {best:.3f} under {likelihood.model_string}")
    alpha, rates = likelihood.alpha, likelihood.exchangeabilities
    for factor in (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0):
        likelihood.alpha = alpha * factor
        print(f"alpha {likelihood.alpha:8.4f}   lnL {likelihood.optimise('lengths', 'rates') - best:+9.3f}")
    likelihood.alpha = alpha
    for index, pair in enumerate(("A-C", "A-G", "A-T", "C-G", "C-T")):
        for factor in (0.5, 1.0, 2.0):
            likelihood.exchangeabilities = [r * factor if k == index else r for k, r in enumerate(rates)]
            print(f"{pair} {rates[index] * factor:8.4f}   lnL {likelihood.optimise('lengths') - best:+9.3f}")
