"""Ancestral states under a model that is not time-reversible, against all states of all inner nodes."""

import re

import numpy as np
import pytest
from scipy.linalg import expm, null_space

import plltool

TREE = "((a:0.1,b:0.5):0.15,(c:0.3,(d:0.2,e:0.4):0.2):0.05);"
LENGTHS = [0.15, 0.05, 0.2, 0.1, 0.5, 0.3, 0.2, 0.4]  # to ab, cde, de, a, b, c, d and e
PARENTS = [1, 1, 2, 3, 3]  # of the tips, among root, ab, cde and de
RATES = [2, 5, 1, 0.5, 1, 9, 3, 1, 0.6, 1.5, 8, 1]
MODEL = f"UNREST{{{'/'.join(map(str, RATES))}}}"
ROWS = {"a": "ACGTANT", "b": "CCGTTAG", "c": "GAGCTCA", "d": "TAGCRCG", "e": "AATGCGA"}
STATES = {"A": [0], "C": [1], "G": [2], "T": [3], "R": [0, 2], "N": [0, 1, 2, 3]}


def joint_tables():
    """For each column two (4, 4, 4, 4), by states of inner nodes: probability of the data, and of their best states."""
    q = np.zeros((4, 4))
    q[~np.eye(4, dtype=bool)] = RATES
    np.fill_diagonal(q, -q.sum(axis=1))
    pi = null_space(q.T)[:, 0]
    pi /= pi.sum()
    p = [expm(q / -(pi @ np.diag(q)) * length) for length in LENGTHS]
    for column in zip(*ROWS.values(), strict=True):
        summed, best = np.zeros((2, 4, 4, 4, 4))
        for states in np.ndindex(4, 4, 4, 4):
            root, ab, cde, de = states
            inner = pi[root] * p[0][root, ab] * p[1][root, cde] * p[2][cde, de]
            tips = zip(p[3:], PARENTS, column, strict=True)
            shares = [change[states[parent], STATES[letter]] for change, parent, letter in tips]
            summed[states] = inner * np.prod([share.sum() for share in shares])
            best[states] = inner * np.prod([share.max() for share in shares])
        yield summed, best


@pytest.mark.parametrize("device", ["numpy", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_states_with_a_root(device):
    found = plltool.ancestral_states(ROWS, TREE, MODEL, fixed=True, device=device)
    assert re.sub(r":[^,()]+", "", found.labelled) == "((a,b)Node2,(c,(d,e)Node4)Node3)Node1;"
    nodes = [found.nodes.index(f"Node{number}") for number in range(1, 5)]
    part, lnl, joint_lnl = found.ancestors[0], 0.0, 0.0
    for site, (summed, best) in enumerate(joint_tables()):
        marginal = [summed.sum(axis=tuple({0, 1, 2, 3} - {node})) / summed.sum() for node in range(4)]
        np.testing.assert_allclose(part.probabilities[nodes, site], marginal, rtol=1e-9, err_msg=str(site))
        states = tuple(part.joint[nodes, site].tolist())
        assert best[states] == pytest.approx(best.max(), rel=1e-9)  # another history may be as probable
        lnl, joint_lnl = lnl + np.log(summed.sum()), joint_lnl + np.log(best.max())
    assert found.lnl == pytest.approx(lnl, rel=1e-10)
    assert part.joint_lnl == pytest.approx(joint_lnl, rel=1e-9)
    assert "(root)" not in "".join(found.texts().values())
