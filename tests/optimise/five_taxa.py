"""Five taxa on a small tree: sequences of any kind of data, and lnL of a model by the oracles."""

from itertools import product

import numpy as np
from oracles.codons import IUPAC, sense_codons
from oracles.likelihood import pruning, with_root
from oracles.models import components_of

TREE = "((a:0.1,b:0.3):0.2,c:0.15,(d:0.25,e:0.4):0.1);"
ROOTED = f"((a:0.1,b:0.3):{0.2 / 3!r},(c:0.15,(d:0.25,e:0.4):0.1):{0.4 / 3!r});"  # at a third of the third branch
ENDS = [(0, 5), (1, 5), (5, 6), (2, 6), (6, 7), (3, 7), (4, 7)]
LENGTHS = np.array([0.1, 0.3, 0.2, 0.15, 0.1, 0.25, 0.4])
SYMBOLS = {4: "ACGT", 20: "ARNDCQEGHILKMFPSTWYV", 61: sense_codons(1), "GT10": "ACGTMRWSYK"}
DOUBLETS = {"a": "ACGURCAGGU", "b": "GCGUGCACGC", "c": "GCAUGYA-GC", "d": "AUGUUWCAGU", "e": "ACGUGCAUNU"}
STEMS = "stems = 1:10 2:9 3:8 4:7 5:6"
GENOTYPES = {"a": "A1CTRKNE", "b": "AAC6RGNM", "c": "EACTAK-1", "d": "CAGPGGSE", "e": "1ACTGG3I"}
PHASED = "ACGT123456EFIJLP"
UNPHASED = {"M": "1E", "R": "2F", "W": "3I", "S": "4J", "Y": "5L", "K": "6P", "N": PHASED, "-": PHASED}


def rows_of(kind, n_cells=24):
    """Five sequences, and the states (5, n, S) that each cell allows; `kind` is a number of states or a name.

    With a number of states, 61 being codons, one of the cells is a gap, and one of bases and amino acids is ambiguous.
    """
    if kind == "doublets":
        pairs = ["".join(pair) for pair in product("ACGT", repeat=2)]
        return DOUBLETS, np.array([
            [[a in IUPAC[row[k]] and b in IUPAC[row[9 - k]] for a, b in pairs] for k in range(5)]
            for row in DOUBLETS.values()
        ])  # fmt: skip
    if kind == "genotypes":
        letters = [[list(UNPHASED.get(cell, cell)) for cell in row] for row in GENOTYPES.values()]
        return GENOTYPES, np.array([[np.isin(list(PHASED), cell) for cell in row] for row in letters])
    symbols = SYMBOLS.get(kind) or "0123456789AB"[:kind]
    n, width = len(symbols), len(symbols[0])
    rng = np.random.default_rng(n)
    first = rng.integers(n, size=n_cells)
    states = np.array([np.where(rng.random(n_cells) < 0.5, rng.integers(n, size=n_cells), first) for _ in range(5)])
    if kind in range(5, 13):  # ordered states: there is hardly any larger step
        states = rng.integers(n - 2, size=n_cells) + rng.integers(3, size=(5, n_cells))
        states[2:, 0] = n - 2
    states[:2, 0] = n - 1  # so that the data show all states
    tips = np.eye(n)[states]
    texts = ["".join(symbols[k] for k in row) for row in states]
    texts[2] = "-" * width + texts[2][width:]
    tips[2, 0] = 1.0
    if kind in (4, 20):
        letter, allowed = {4: ("R", [0, 2]), 20: ("B", [2, 3])}[kind]
        texts[3] = texts[3][:1] + letter + texts[3][2:]
        tips[3, 1] = np.eye(n)[allowed].sum(axis=0)
    return dict(zip("abcde", texts, strict=True)), tips


def columns_of(tips):
    """What `pruning` takes of the states that cells allow."""
    return [[sum(1 << int(s) for s in np.flatnonzero(cell)) for cell in column] for column in np.swapaxes(tips, 0, 1)]


def lnl_of(model, columns, lengths=LENGTHS):
    """lnL of a model's values, the root at a third of the third branch if there is one."""
    branches = with_root(ENDS, lengths, 5, 2, 1 / 3) if model.spec.is_directed else (ENDS, lengths)
    return pruning(*branches, columns, components_of(model)).sum()
