"""Simulate sequences sampled over years: a coalescent tree of serial samples, a strict or a relaxed clock, HKY.

    python scripts/benchmarks/simulate_dated.py --seed 1 --out data/dated

writes data/dated.fasta, data/dated.tsv with the date of each taxon, and data/dated.nwk, the tree along which it
evolved, with branch lengths in years. It prints the rate of the clock and the date of the root. With --spread the
logarithms of the rates of branches are normal, with this standard deviation and the mean rate 1.
"""

import argparse
import datetime
import re
from pathlib import Path

import numpy as np

import plltool

N_TAXA, N_SITES = 24, 800
FIRST_DAY, LAST_DAY = datetime.date(1990, 1, 1), datetime.date(2015, 12, 31)
POPULATION = 8.0  # mean time, in years, in which two lineages meet
RATE = 4e-3  # substitutions per site and year
MODEL = "HKY{5.0}+FU{0.30/0.20/0.22/0.28}"


def decimal_year(day):
    """The middle of a day as a number of years."""
    start, end = datetime.date(day.year, 1, 1), datetime.date(day.year + 1, 1, 1)
    return day.year + ((day - start).days + 0.5) / (end - start).days


def grow_tree(days, rng, population=POPULATION):
    """A coalescent tree of samples of ascending days, as Newick with lengths in years, and the date of its root."""
    width = len(str(len(days)))  # so that names sort as their days
    waiting = [(decimal_year(day), f"v{number:0{width}}") for number, day in enumerate(days, start=1)]
    active, now = [], waiting[-1][0]
    while waiting or len(active) > 1:
        pairs = len(active) * (len(active) - 1) / 2
        meeting = now - rng.exponential(population / pairs) if pairs else -np.inf
        if waiting and waiting[-1][0] >= meeting:
            active.append(waiting.pop())
            now = active[-1][0]
            continue
        now = meeting
        chosen = [active.pop(int(rng.integers(len(active)))) for _ in range(2)]
        active.append((now, "({})".format(",".join(f"{text}:{date - now:.6f}" for date, text in chosen))))
    return active[0][1] + ";", now


def make(seed, n_taxa=N_TAXA, n_sites=N_SITES, rate=RATE, spread=0.0, population=POPULATION, first=FIRST_DAY):
    """The sequences, the day of each taxon, the tree in years, and the date of its root."""
    rng = np.random.default_rng(seed)
    offsets = rng.integers(0, (LAST_DAY - first).days + 1, n_taxa).tolist()
    days = sorted(first + datetime.timedelta(days=offset) for offset in offsets)
    tree, root = grow_tree(days, rng, population)
    draw = (lambda: rng.lognormal(-(spread**2) / 2, spread)) if spread else (lambda: 1.0)
    clock = re.sub(r":([\d.]+)", lambda found: f":{float(found[1]) * rate * draw():.9f}", tree)
    made = plltool.simulate(clock, MODEL, n_sites, seed)
    rows = dict(sorted(zip(made.names, made.sequences, strict=True)))
    return rows, dict(zip(rows, days, strict=True)), tree, root


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True)
    parser.add_argument("--taxa", type=int, default=N_TAXA)
    parser.add_argument("--sites", type=int, default=N_SITES)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--population", type=float, default=POPULATION)
    parser.add_argument("--first", type=datetime.date.fromisoformat, default=FIRST_DAY)
    options = parser.parse_args()
    how = options.taxa, options.sites, options.rate, options.spread, options.population, options.first
    rows, days, tree, root = make(options.seed, *how)
    Path(f"{options.out}.fasta").write_text(plltool.format_fasta(list(rows), list(rows.values())))
    Path(f"{options.out}.tsv").write_text("name\tdate\n" + "".join(f"{name}\t{day}\n" for name, day in days.items()))
    Path(f"{options.out}.nwk").write_text(tree + "\n")
    print(f"rate: {options.rate:g}\nroot: {root:.2f}")


if __name__ == "__main__":
    main()
