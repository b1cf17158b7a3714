"""Slow, obvious codon models: what plltool's are checked against. Imports nothing of plltool."""

import itertools

import numpy as np

# https://www.ncbi.nlm.nih.gov/Taxonomy/Utils/wprintgc.cgi, codons in the order of TCAG
NCBI = {
    1: "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG",
    2: "FFLLSSSSYY**CCWWLLLLPPPPHHQQRRRRIIMMTTTTNNKKSS**VVVVAAAADDEEGGGG",
    5: "FFLLSSSSYY**CCWWLLLLPPPPHHQQRRRRIIMMTTTTNNKKSSSSVVVVAAAADDEEGGGG",
}
IUPAC = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT", "-": "ACGT", "?": "ACGT",
}  # fmt: skip


def amino_acids(code):
    """The amino acid of each codon, * for a stop."""
    return dict(zip(map("".join, itertools.product("TCAG", repeat=3)), NCBI[code], strict=True))


def sense_codons(code):
    return sorted(codon for codon, acid in amino_acids(code).items() if acid != "*")


def mask(triplet, code):
    """The sense codons that the letters of a triplet allow, as a bit mask."""
    allowed = {"".join(bases) for bases in itertools.product(*(IUPAC[letter] for letter in triplet.upper()))}
    return sum(1 << number for number, codon in enumerate(sense_codons(code)) if codon in allowed)


def columns(rows, code):
    """Each column of codons as the masks of all rows."""
    return [tuple(mask(row[k : k + 3], code) for row in rows) for k in range(0, len(rows[0]), 3)]


def position_frequencies(rows, code, per_position):
    """Frequencies of bases in the unambiguous codons of sequences, at each position or at all, (3, 4)."""
    found = [row[k : k + 3] for row in rows for k in range(0, len(row), 3) if row[k : k + 3] in sense_codons(code)]
    counts = np.array([[sum(codon[place] == base for codon in found) for base in "ACGT"] for place in range(3)])
    shares = counts / len(found)
    return shares if per_position else np.tile(shares.mean(axis=0), (3, 1))


def codon_frequencies(at_positions, code):
    """Products of the frequencies of bases, scaled to sum 1 over sense codons."""
    shares = [np.prod([at_positions[p]["ACGT".index(base)] for p, base in enumerate(c)]) for c in sense_codons(code)]
    return np.array(shares) / sum(shares)


def unscaled(code, frequencies, omega, transitions=1.0, transversions=1.0, at_positions=None):
    """Q without its scale: under GY, or with `at_positions` under MG."""
    codons, acids = sense_codons(code), amino_acids(code)
    q = np.zeros((len(codons), len(codons)))
    for (i, a), (j, b) in itertools.permutations(enumerate(codons), 2):
        places = [place for place in range(3) if a[place] != b[place]]
        if len(places) != 1:
            continue
        bases = {a[places[0]], b[places[0]]}
        rate = transitions if bases in ({"A", "G"}, {"C", "T"}) else transversions
        rate *= omega if acids[a] != acids[b] else 1.0
        base = "ACGT".index(b[places[0]])
        q[i, j] = rate * (frequencies[j] if at_positions is None else at_positions[places[0]][base])
    return q - np.diag(q.sum(axis=1))


def published(text, name, omega=1.0, transitions=1.0, transversions=1.0):
    """Q without its scale, and frequencies, of Kosiol, Holmes & Goldman 2007 from the text of their figures.

    A section begins with [name] and has 60 rows of the lower triangle and 61 frequencies, bases in the order TCAG. Each
    base that changes multiplies the rate, and so does omega if the amino acid changes.
    """
    codons = [codon for codon in amino_acids(1) if amino_acids(1)[codon] != "*"]
    lines = text.split(f"[{name}]")[1].splitlines()[1:62]
    pi = dict(zip(codons, map(float, lines[60].split()), strict=True))
    q = np.zeros((61, 61))
    place = {codon: number for number, codon in enumerate(sense_codons(1))}
    for i, line in enumerate(lines[:60], 1):
        for j, word in enumerate(line.split()):
            rate = float(word) * (omega if amino_acids(1)[codons[i]] != amino_acids(1)[codons[j]] else 1.0)
            for a, b in zip(codons[i], codons[j], strict=True):
                if a != b:
                    rate *= transitions if {a, b} in ({"A", "G"}, {"C", "T"}) else transversions
            q[place[codons[i]], place[codons[j]]] = rate * pi[codons[j]]
            q[place[codons[j]], place[codons[i]]] = rate * pi[codons[i]]
    frequencies = np.array([pi[codon] for codon in sense_codons(1)]) / sum(pi.values())
    return q - np.diag(q.sum(axis=1)), frequencies


def mean_rate(q, frequencies):
    return -float(np.asarray(frequencies) @ np.diag(q))


def mixture(matrices, weights, frequencies):
    """Components (weight, frequencies, Q), all divided by the mean rate over classes (Yang et al. 2000)."""
    mean = sum(w * mean_rate(q, frequencies) for w, q in zip(weights, matrices, strict=True))
    return [(w, frequencies, q / mean) for w, q in zip(weights, matrices, strict=True)]
