"""Slow, obvious substitution models: what plltool.model is checked against. Imports nothing of plltool."""

import itertools
import math

import numpy as np
from scipy import integrate, linalg, optimize


def q_matrix(exchangeabilities, frequencies):
    """Q of a reversible model, one element at a time; one expected substitution per unit of time.

    Exchangeabilities are those of the pairs of states in the order AC AG AT CG CT GT.
    """
    n = len(frequencies)
    q = np.zeros((n, n))
    for (i, j), rate in zip(itertools.combinations(range(n), 2), exchangeabilities, strict=True):
        q[i, j] = rate * frequencies[j]
        q[j, i] = rate * frequencies[i]
    for i in range(n):
        q[i, i] = -sum(q[i, j] for j in range(n) if j != i)
    return q / -sum(frequencies[i] * q[i, i] for i in range(n))


def transition_matrix(exchangeabilities, frequencies, t):
    """P(t) = expm(Q t) by scaling and squaring."""
    return linalg.expm(q_matrix(exchangeabilities, frequencies) * t)


def jukes_cantor(t):
    """P(t) of Jukes and Cantor 1969, in closed form."""
    decay = math.exp(-4 * t / 3)
    return np.full((4, 4), (1 - decay) / 4) + decay * np.eye(4)


def kimura80(kappa, t):
    """P(t) of Kimura 1980 in closed form; kappa is the rate of a transition over that of a transversion."""
    transversions = math.exp(-4 * t / (kappa + 2))
    transitions = math.exp(-2 * t * (kappa + 1) / (kappa + 2))
    p = np.full((4, 4), (1 - transversions) / 4)
    for i in range(4):
        p[i, i] = (1 + transversions + 2 * transitions) / 4
        p[i, (i + 2) % 4] = (1 + transversions - 2 * transitions) / 4
    return p


def felsenstein81(frequencies, t):
    """P(t) of Felsenstein 1981 in closed form."""
    pi = np.asarray(frequencies)
    decay = math.exp(-t / (1 - np.sum(pi**2)))
    return decay * np.eye(4) + (1 - decay) * pi


def gamma_category_means(alpha, n_categories):
    """Means of equally probable categories of the gamma distribution of mean 1: the density, integrated numerically.

    The variable is u = x^p with p = min(alpha, 1), in which the density is smooth at 0; limits of the categories are
    found by solving for them. Good for alpha from 0.1 to 10 and up to 10 categories.
    """
    integral, limit = _gamma_integrals(alpha)
    limits = [0.0, *(limit(i / n_categories) for i in range(1, n_categories))]
    means = [n_categories * integral(low, high, 1) for low, high in itertools.pairwise(limits)]
    return np.array([*means, n_categories - sum(means)])


def gamma_category_medians(alpha, n_categories):
    """Medians of the same categories, divided by their mean; likewise."""
    _, limit = _gamma_integrals(alpha)
    medians = np.array([limit((2 * i + 1) / (2 * n_categories)) for i in range(n_categories)]) ** (1 / min(alpha, 1.0))
    return medians / medians.mean()


def _gamma_integrals(alpha):
    """Integrals of x^power times the density between two u, and the u below which there is a given share."""
    p = min(alpha, 1.0)
    scale = math.exp(alpha * math.log(alpha) - math.lgamma(alpha)) / p

    def integral(low, high, power):
        """The integral of x^power times the density, from u = low to high."""

        def integrand(u):
            x = u ** (1 / p)
            return scale * x ** (alpha - p + power) * math.exp(-alpha * x)

        return integrate.quad(integrand, low, high, epsabs=1e-15, epsrel=1e-13, limit=200)[0]

    def limit(share):
        far = (1 + 10 / alpha + 10 / math.sqrt(alpha)) ** p
        return optimize.brentq(lambda u: integral(0.0, u, 0) - share, 0.0, far, xtol=1e-15, rtol=1e-14)

    return integral, limit
