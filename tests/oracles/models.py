"""What the values of a model mean, as mixtures that the other oracles take. Imports nothing of plltool.

A model is any object with `sites`, `classes` and, if it is not time-reversible, `exchangeabilities`, whose numbers are
taken as they are: matrices, rates over sites and their weights are made of them here.
"""

import numpy as np
from oracles.substitution import gamma_category_means, gamma_category_medians, q_matrix
from scipy.linalg import null_space


def site_categories(sites):
    """(weight, rate) of each kind of site."""
    if sites.kind == "free":
        categories = list(zip(sites.weights, sites.rates, strict=True))
    elif sites.kind == "gamma":
        quantiles = gamma_category_medians if sites.median else gamma_category_means
        categories = [(1 / sites.n_categories, rate) for rate in quantiles(sites.alpha, sites.n_categories)]
    else:
        categories = [(1.0, 1.0)]
    if not sites.invariable:
        return categories
    return [(sites.pinv, 0.0), *((w * (1 - sites.pinv), rate / (1 - sites.pinv)) for w, rate in categories)]


def directed_matrix(rates):
    """Q of rates AC AG AT CA .. TG, one substitution per unit of time, and its stationary frequencies."""
    q = np.zeros((4, 4))
    q[~np.eye(4, dtype=bool)] = rates
    np.fill_diagonal(q, -q.sum(axis=1))
    pi = null_space(q.T)[:, 0]
    pi /= pi.sum()
    return q / -(pi @ np.diag(q)), pi


def processes_of(model):
    """(weight, frequencies, Q of one substitution per unit of time, rate) of each process of a mixture."""
    categories = site_categories(model.sites)
    if model.spec.is_directed:
        q, pi = directed_matrix(model.exchangeabilities)
        return [(weight, pi, q, rate) for weight, rate in categories]
    classes = model.classes
    shared = np.broadcast_to(classes.exchangeabilities, (len(classes.weights), classes.exchangeabilities.shape[1]))
    pairs = [(pi, q_matrix(own, pi)) for own, pi in zip(shared, classes.frequencies, strict=True)]
    if model.spec.is_tied:
        return [(*own[:1], *pair, *own[1:]) for own, pair in zip(categories, pairs, strict=True)]
    rates = classes.rates / (classes.weights @ classes.rates)
    rows = zip(classes.weights, pairs, rates, strict=True)
    return [(share * w, *pair, own * rate) for share, pair, own in rows for w, rate in categories]


def components_of(model):
    """What `oracles.likelihood` takes of a model."""
    return [(weight, pi, q * rate) for weight, pi, q, rate in processes_of(model)]
