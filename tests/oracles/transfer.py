"""Transfer bootstrap expectation (Lemoine et al. 2018), slow and obvious: every pair of branches, sets of names."""


def transfer_distance(side, replicate_sides, everyone):
    """The least number of taxa that must change sides so that `side` becomes one of the replicate's branches."""
    return min(min(len(side ^ other), len(side ^ (everyone - other))) for other in replicate_sides)


def transfer_support(side, replicates, everyone):
    """The support of a branch, given as the set of names on one side.

    `replicates` are trees, each a list of such sets, one for every branch, those of tips included.
    """
    smaller = min(len(side), len(everyone - side))
    distances = [transfer_distance(side, sides, everyone) for sides in replicates]
    return 1 - sum(distances) / len(distances) / (smaller - 1)
