"""A move of all branch lengths at once, along their slopes."""

from __future__ import annotations

import numpy as np

from plltool.analyses.sampling.moves import ALL_NODES, Move, Proposal, divide_step
from plltool.analyses.sampling.state import State
from plltool.analyses.sampling.survey import Slopes
from plltool.arrays import FloatArray
from plltool.engine.contract import DERIVATIVE_VALUES

LARGEST_DRIFT = 1.0  # of the logarithm of a length; far from the hills, where slopes say little
LARGEST_LOG = 50.0  # of the change of a length; larger ones lead out of all bounds


class LengthLangevin(Move):
    """A step of Langevin dynamics of the logarithms of all K lengths, each with a scale from the second derivative.

    A chain of heat h has the density f(u) = posterior(exp(u))^h prod_i exp(u_i) of u_i = log b_i. With its slopes
    s_i = h b_i d(lnL + log prior) / db_i + 1 and the curvatures c_i = 1 + h max(0, -b_i^2 d2 lnL / db_i^2), all at u,
    the new point is u'_i = u_i + m_i(u) + a z_i / sqrt(c_i(u)), z_i standard normal. The drift m_i is (1 - k) s_i / c_i
    within LARGEST_DRIFT, with k and a by `divide_step`: if f were normal with these curvatures, this would be Langevin
    dynamics without an error of the step (Roberts & Stramer 2002; the metric of each point is that of Girolami &
    Calderhead 2011, but diagonal). The density of u' is
    q(u' | u) = prod_i sqrt(c_i(u) / 2 pi) / a exp(-c_i(u) (u'_i - u_i - m_i(u))^2 / (2 a^2)),
    that of b' is q / prod_i b'_i, and the Hastings ratio is q(u | u') prod_i b'_i / (q(u' | u) prod_i b_i). It is exact
    whatever drifts and curvatures are, as long as they depend on the point alone.
    """

    name = "Langevin step of all branches"
    step = 1.5
    target = 0.57  # Roberts & Rosenthal 1998
    repeats = 3

    def ask(self, state: State, rng: np.random.Generator) -> Slopes:
        return Slopes(state.topology.n_nodes)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        drift, curvature = self._force(state, step, heat)
        added = divide_step(step)[1]
        change = drift + added * rng.standard_normal(len(drift)) / np.sqrt(curvature)
        if not np.abs(change).max() <= LARGEST_LOG:  # nor if it is not a number
            return None
        lengths = [0.0, *(np.array(state.lengths[1:]) * np.exp(change)).tolist()]
        new = self.problem.moved(state, state.topology, lengths)
        there = _log_density(change - drift, curvature, added)
        return Proposal(new, float(change.sum()) - there, ALL_NODES, question=Slopes(state.topology.n_nodes))

    def log_ratio(self, old: State, proposal: Proposal, new: State, step: float, heat: float) -> float:
        drift, curvature = self._force(new, step, heat)
        change = np.log(np.array(old.lengths[1:]) / np.array(new.lengths[1:]))
        return proposal.log_ratio + _log_density(change - drift, curvature, divide_step(step)[1])

    def _force(self, state: State, step: float, heat: float) -> tuple[FloatArray, FloatArray]:
        """The drift and the curvature (K,) at a state."""
        assert state.known is not None, "the surroundings were asked for"
        lengths = np.array(state.lengths[1:])
        of_data = np.reshape(state.known.values, (-1, DERIVATIVE_VALUES))
        of_prior = self.problem.length_prior.slopes_of_lengths(state.topology, state.lengths)
        slope = heat * lengths * (of_data[:, 1] + of_prior) + 1.0
        curvature = 1.0 + heat * np.maximum(0.0, -(lengths**2) * of_data[:, 2])
        kept, _ = divide_step(step)
        return np.clip((1.0 - kept) * slope / curvature, -LARGEST_DRIFT, LARGEST_DRIFT), curvature


def _log_density(deviation: FloatArray, curvature: FloatArray, scale: float) -> float:
    """Of normal deviations with the variances scale^2 / curvature, up to a constant."""
    return float(np.log(curvature).sum() / 2.0 - (curvature * deviation**2).sum() / (2.0 * scale**2))
