"""How well does an alignment determine the shape of its rates? Profiles of alpha and of the GTR rates on a fixed tree.

The argument is an alignment, such as data/primates.phy.
"""

import argparse

import plltool

MODEL = "GTR+F+G4"


def profile(alignment: str) -> None:
    """Search a tree, then print by how much lnL falls as alpha or one rate moves away from its best value."""
    tree = plltool.search(alignment, model=MODEL, seed=1).tree
    with plltool.Likelihood(alignment, tree, model=MODEL) as likelihood:
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alignment")
    profile(parser.parse_args().alignment)
