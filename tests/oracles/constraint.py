"""The slow, obvious test of a constraint: list the splits of both trees over the constraint's taxa and compare."""


def newick(nested):
    """Nested tuples of names as Newick, without the semicolon."""
    return nested if isinstance(nested, str) else f"({','.join(map(newick, nested))})"


def nested_splits(nested):
    """Nontrivial splits, as frozensets of two frozensets, of a tree given as nested tuples of names."""
    clades = []

    def collect(node):
        if not isinstance(node, tuple):
            return frozenset([node])
        names = frozenset().union(*(collect(child) for child in node))
        clades.append(names)
        return names

    return _nontrivial(clades, collect(nested))


def edge_splits(ends, names, members):
    """The same of a tree given by its branches, tips being the numbers of `names`, as far as `members` go."""
    pairs = [tuple(map(int, pair)) for pair in ends]
    around = {}
    for a, b in pairs:
        around.setdefault(a, []).append(b)
        around.setdefault(b, []).append(a)
    clades = []
    for a, b in pairs:
        seen, waiting = {a}, [b]
        while waiting:
            node = waiting.pop()
            seen.add(node)
            waiting += [other for other in around[node] if other not in seen]
        seen.discard(a)
        clades.append(frozenset(names[node] for node in seen if node < len(names)) & members)
    return _nontrivial(clades, frozenset(members))


def _nontrivial(clades, everyone):
    return {frozenset([clade, everyone - clade]) for clade in clades if len(clade) > 1 and len(everyone - clade) > 1}


def obeys(ends, names, nested):
    """Whether the tree has every split of the constraint, given as nested tuples."""
    members = frozenset(_leaves(nested))
    return nested_splits(nested) <= edge_splits(ends, names, members)


def _leaves(nested):
    return [nested] if not isinstance(nested, tuple) else [leaf for child in nested for leaf in _leaves(child)]


def random_nested(rng, members, branching=0.5):
    """A random constraint over `members`, in nested tuples: groups are joined until few are left."""
    parts = list(members)
    while len(parts) > 3:
        size = min(len(parts) - 1, 2 + int(rng.geometric(branching)) - 1)
        chosen = sorted(rng.choice(len(parts), size, replace=False).tolist(), reverse=True)
        parts.append(tuple(parts.pop(k) for k in chosen))
    return tuple(parts)
