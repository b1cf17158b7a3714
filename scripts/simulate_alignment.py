"""Simulate a DNA alignment on a random tree: GTR+G4, with gaps, ambiguous bases and one duplicated sequence.

    python scripts/simulate_alignment.py --seed 2024 --out data/simulated

writes data/simulated.fasta and data/simulated.nwk, the tree that it evolved on; `--taxa` and `--sites` make others.
Uses numpy alone and nothing of plltool, so that tests may rely on it.
"""

import argparse
from pathlib import Path

import numpy as np

BASES = "ACGT"
N_TAXA, N_SITES = 30, 500  # unless told otherwise; the last taxon is the duplicate
RATES = {"AC": 1.5, "AG": 4.0, "AT": 0.8, "CG": 1.2, "CT": 5.0, "GT": 1.0}
FREQUENCIES = np.array([0.32, 0.18, 0.21, 0.29])
CATEGORY_RATES = np.array([0.0334, 0.2519, 0.8203, 2.8944])  # gamma, shape 0.5, four equal classes: Yang 1994
MEAN_LENGTH = 0.06  # of a branch, in expected substitutions per site; exponentially distributed
N_AMBIGUOUS, N_UNKNOWN, N_GAPS, LONGEST_GAP = 40, 20, 25, 20
AMBIGUOUS = {"A": "RWM", "C": "YSM", "G": "RSK", "T": "YWK"}  # pairs of bases, one of them the true one
DUPLICATED = "t07"


def rate_matrix():
    """GTR rates (4, 4), one substitution per unit of time at equilibrium."""
    q = np.zeros((4, 4))
    for pair, rate in RATES.items():
        i, j = (BASES.index(base) for base in pair)
        q[i, j], q[j, i] = rate * FREQUENCIES[j], rate * FREQUENCIES[i]
    np.fill_diagonal(q, -q.sum(axis=1))
    return q / -(FREQUENCIES * np.diag(q)).sum()


def transition_matrix(t):
    """exp(Q t) from the eigenvectors of the symmetric matrix that is similar to Q."""
    root = np.sqrt(FREQUENCIES)
    values, vectors = np.linalg.eigh(rate_matrix() * root[:, None] / root)
    p = np.clip((vectors / root[:, None] * np.exp(values * t)) @ (vectors.T * root), 0, None)
    return p / p.sum(axis=1, keepdims=True)


def join_at_random(rng, n_tips):
    """Children of each inner node, [(child, length), ...], from the first join to the root, which has three.

    Nodes are numbered: tips first, then inner nodes in this order. Lengths have the six decimals that are written.
    """
    loose, joins = list(range(n_tips)), []
    while len(loose) > 1:
        n_children = 3 if len(loose) == 3 else 2
        children = [loose.pop(int(rng.integers(len(loose)))) for _ in range(n_children)]
        joins.append([(child, round(float(rng.exponential(MEAN_LENGTH)), 6)) for child in children])
        loose.append(n_tips + len(joins) - 1)
    return joins


def evolve(rng, joins, n_tips, n_sites):
    """States (n_tips, n_sites) drawn from the root to the tips."""
    states = np.empty((n_tips + len(joins), n_sites), dtype=int)
    states[-1] = rng.choice(4, n_sites, p=FREQUENCIES)
    category = rng.integers(len(CATEGORY_RATES), size=n_sites)
    for node in reversed(range(len(joins))):
        for child, length in joins[node]:
            p = np.array([transition_matrix(length * rate) for rate in CATEGORY_RATES])
            cumulated = p[category, states[n_tips + node]].cumsum(axis=1)
            states[child] = (rng.random((n_sites, 1)) > cumulated).sum(axis=1).clip(max=3)
    return states[:n_tips]


def format_tree(joins, names):
    """Newick text."""
    texts = list(names)
    for children in joins:
        texts.append("(" + ",".join(f"{texts[child]}:{length:.6f}" for child, length in children) + ")")
    return texts[-1] + ";\n"


def blur(rng, letters):
    """Put ambiguous bases, unknown ones and gaps at random places of letters (n_tips, n_sites)."""
    n_tips, n_sites = letters.shape
    for _ in range(N_AMBIGUOUS):
        row, site = rng.integers(n_tips), rng.integers(n_sites)
        letters[row, site] = AMBIGUOUS.get(letters[row, site], "NNN")[rng.integers(3)]
    letters[rng.integers(n_tips, size=N_UNKNOWN), rng.integers(n_sites, size=N_UNKNOWN)] = "N"
    for _ in range(N_GAPS):
        row, start = rng.integers(n_tips), rng.integers(n_sites)
        letters[row, start : start + rng.integers(1, LONGEST_GAP + 1)] = "-"


def simulate(seed, n_taxa=N_TAXA, n_sites=N_SITES):
    """Sequences by name, and the tree of all but the duplicate, as Newick text."""
    rng = np.random.default_rng(seed)
    names = [f"t{number:02}" for number in range(1, n_taxa)]
    joins = join_at_random(rng, len(names))
    letters = np.array(list(BASES))[evolve(rng, joins, len(names), n_sites)]
    blur(rng, letters)
    sequences = {name: "".join(row) for name, row in zip(names, letters, strict=True)}
    sequences[f"t{n_taxa}"] = sequences[DUPLICATED]
    return sequences, format_tree(joins, names)


def main():
    parser = argparse.ArgumentParser(description="Simulate a DNA alignment on a random tree.")
    parser.add_argument("--seed", type=int, default=2024)
    parser.add_argument("--taxa", type=int, default=N_TAXA)
    parser.add_argument("--sites", type=int, default=N_SITES)
    parser.add_argument("--out", required=True, help="OUT.fasta and OUT.nwk are written")
    arguments = parser.parse_args()
    sequences, tree = simulate(arguments.seed, arguments.taxa, arguments.sites)
    fasta = "".join(f">{name}\n{sequence}\n" for name, sequence in sequences.items())
    Path(f"{arguments.out}.fasta").write_text(fasta)
    Path(f"{arguments.out}.nwk").write_text(tree)


if __name__ == "__main__":
    main()
