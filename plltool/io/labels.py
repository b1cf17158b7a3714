"""Which taxon a label in a tree stands for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from plltool.errors import InputError, show_name

LISTED_NAMES = 5  # how many names an error lists before it counts the rest

_MARK_IN_NAME = re.compile(r"[^A-Za-z0-9_.|/-]")  # for which IQ-TREE writes an underscore


def match_labels(labels: Sequence[str], bare: set[str], names: Sequence[str]) -> dict[str, int]:
    """The place in `names` of each name, and of each label that stands for one: see `parse_newick`."""
    numbers = {name: number for number, name in enumerate(names)}
    unused = numbers.keys() - set(labels)
    spaced: dict[str, list[str]] = {}
    for label in labels:
        if " " in label and label not in numbers:
            spaced.setdefault(label.replace(" ", "_"), []).append(label)
    spare: dict[str, list[int]] = {}
    for name in unused:
        if len(spaced.get(name, ())) == 1:
            numbers[spaced[name][0]] = numbers[name]
            continue
        whole_and_first = [name, *name.split()[:1]]
        plain = [_MARK_IN_NAME.sub("_", text) for text in whole_and_first]
        for short in {name.replace(" ", "_"), *whole_and_first[1:], *plain}:
            spare.setdefault(short, []).append(numbers[name])
    numbers.update(
        (label, spare[label][0])
        for label in labels
        if label in bare and label not in numbers and len(spare.get(label, ())) == 1
    )
    return numbers


def number_labels(
    labels: Sequence[str], bare: set[str], source: str, names: Sequence[str] | None, whose: str = "the alignment"
) -> list[int]:
    """The number of each tip among `names`, given the labels of the tips; see `plltool.io.newick.number_tips`."""
    refuse_duplicates(labels, f"{source}: the tree")
    if names is None:
        return list(range(len(labels)))
    refuse_duplicates(names, whose)
    numbers = match_labels(labels, bare, names)
    unknown = [label for label in labels if label not in numbers]
    used = {numbers[label] for label in labels if label in numbers}
    missing = [name for number, name in enumerate(names) if number not in used]
    differences = [
        f"{what}: {list_names(taxa)}"
        for what, taxa in (("missing from the tree", missing), (f"unknown to {whose}", unknown))
        if taxa
    ]
    if differences:
        raise InputError(f"{source}: the taxa are not those of {whose}: {'; '.join(differences)}")
    return [numbers[label] for label in labels]


def refuse_duplicates(names: Sequence[str], owner: str) -> None:
    """Raise InputError if a name occurs twice."""
    if len(set(names)) < len(names):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        raise InputError(f"{owner} has the same taxon more than once: {list_names(repeated)}")


def list_names(names: Iterable[str]) -> str:
    """The first few names and the number of the others."""
    names = list(names)
    listed = ", ".join(map(show_name, names[:LISTED_NAMES]))
    return listed if len(names) <= LISTED_NAMES else f"{listed} and {len(names) - LISTED_NAMES} more"
