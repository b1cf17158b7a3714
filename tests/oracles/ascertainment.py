"""Corrections for ascertainment bias, with their formulas written out. Imports nothing of plltool.

Lewis 2001 conditions on variability: the likelihood of a site is divided by the probability that a site varies.
Leaché et al. 2015 give n unseen invariable sites of unknown state (felsenstein), or n_c of each state (stamatakis).
Models, trees and columns are those of `oracles.likelihood`.
"""

import math

import numpy as np
from oracles.likelihood import pruning


def invariable_lnl(branches, lengths, components, n_tips, without_data=()):
    """lnL of the site that has state c in all tips, for each c; tips `without_data` may have any state."""
    n_states = len(components[0][1])
    any_state = (1 << n_states) - 1
    columns = [[any_state if tip in without_data else 1 << c for tip in range(n_tips)] for c in range(n_states)]
    return pruning(branches, lengths, columns, components)


def correction(kind, unseen, lnl, n_sites):
    """What is added to lnL, from lnL of each invariable site; everything in logarithms."""
    if kind == "stamatakis":
        return sum(number * value for number, value in zip(unseen, lnl, strict=True))
    largest = max(lnl)
    log_sum = largest + math.log(sum(math.exp(value - largest) for value in lnl))
    if kind == "felsenstein":
        return unseen[0] * log_sum
    return -n_sites * math.log(-math.expm1(log_sum))


def corrected_lnl(kind, unseen, branches, lengths, columns, weights, components):
    """lnL of an alignment whose columns occur `weights` times."""
    sites = pruning(branches, lengths, columns, components)
    alike = invariable_lnl(branches, lengths, components, len(columns[0]))
    return float(np.dot(weights, sites)) + correction(kind, unseen, alike.tolist(), float(np.sum(weights)))
