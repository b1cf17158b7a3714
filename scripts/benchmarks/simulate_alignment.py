"""Simulate a DNA alignment on a random tree: GTR+G4, with gaps, ambiguous bases and one duplicated sequence.

    python scripts/benchmarks/simulate_alignment.py --seed 2024 --out data/simulated

writes data/simulated.fasta and data/simulated.nwk, the tree along which it evolved; `--taxa` and `--sites` set
their size. A large alignment with short branches and a gap in every second sequence:

    python scripts/benchmarks/simulate_alignment.py --seed 1 --taxa 10000 --sites 1000 --mean-length 0.03
        --gaps 5000 --out large
"""

import argparse
from pathlib import Path

import numpy as np

import plltool
from plltool.io.alignment_formats import format_fasta
from plltool.io.newick_writer import write_newick
from plltool.tree.moves import random_tree

N_TAXA, N_SITES = 30, 500  # defaults; the last taxon is the duplicate
MODEL = "GTR{1.5/4.0/0.8/1.2/5.0/1.0}+FU{0.32/0.18/0.21/0.29}+G4{0.5}"
MEAN_LENGTH = 0.06  # of a branch, in expected substitutions per site; exponentially distributed
N_AMBIGUOUS, N_UNKNOWN, N_GAPS, LONGEST_GAP = 40, 20, 25, 20
AMBIGUOUS = {"A": "RWM", "C": "YSM", "G": "RSK", "T": "YWK"}  # pairs of bases, one of them the true one
DUPLICATED = "t07"


def blur(rng, letters, n_gaps):
    """Put ambiguous bases, unknown bases and `n_gaps` gaps at random places of `letters` (n_tips, n_sites)."""
    n_tips, n_sites = letters.shape
    for _ in range(N_AMBIGUOUS):
        row, site = rng.integers(n_tips), rng.integers(n_sites)
        letters[row, site] = AMBIGUOUS.get(letters[row, site], "NNN")[rng.integers(3)]
    letters[rng.integers(n_tips, size=N_UNKNOWN), rng.integers(n_sites, size=N_UNKNOWN)] = "N"
    for _ in range(n_gaps):
        row, start = rng.integers(n_tips), rng.integers(n_sites)
        letters[row, start : start + rng.integers(1, LONGEST_GAP + 1)] = "-"


def make(seed, n_taxa=N_TAXA, n_sites=N_SITES, mean_length=MEAN_LENGTH, n_gaps=N_GAPS):
    """The sequences by name, and the tree without the duplicate as Newick text."""
    rng = np.random.default_rng(seed)
    tree = random_tree([f"t{number:02}" for number in range(1, n_taxa)], rng)
    tree.lengths[:] = rng.exponential(mean_length, tree.n_edges).round(6)
    made = plltool.simulate(tree, MODEL, n_sites, seed)
    letters = np.array([list(sequence) for sequence in made.sequences])
    blur(rng, letters, n_gaps)
    sequences = {name: "".join(row) for name, row in zip(made.names, letters, strict=True)}
    sequences[f"t{n_taxa:02}"] = sequences[min(DUPLICATED, f"t{n_taxa - 1:02}")]
    return sequences, write_newick(tree)


def main():
    parser = argparse.ArgumentParser(description="Simulate a DNA alignment on a random tree.")
    parser.add_argument("--seed", type=int, default=2024)
    parser.add_argument("--taxa", type=int, default=N_TAXA)
    parser.add_argument("--sites", type=int, default=N_SITES)
    parser.add_argument("--mean-length", type=float, default=MEAN_LENGTH, help="of exponential branch lengths")
    parser.add_argument("--gaps", type=int, default=N_GAPS, help=f"number of gaps of 1 to {LONGEST_GAP} sites")
    parser.add_argument("--out", required=True, help="OUT.fasta and OUT.nwk are written")
    arguments = parser.parse_args()
    sequences, tree = make(arguments.seed, arguments.taxa, arguments.sites, arguments.mean_length, arguments.gaps)
    Path(f"{arguments.out}.fasta").write_text(format_fasta(list(sequences), list(sequences.values())))
    Path(f"{arguments.out}.nwk").write_text(tree + "\n")


if __name__ == "__main__":
    main()
