"""Alignments, trees, constraints and models from what the user gives: files, objects, text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TypeAlias

import numpy as np

from plltool.alignment.alignment import Sequences, refuse_constant_sites
from plltool.alignment.facts import may_be_invariable
from plltool.alignment.patterns import empirical_frequencies
from plltool.alignment.spaces import CODON, detect_states, genetic_code_of
from plltool.alignment.states import StateSpace
from plltool.arrays import ArrayLike
from plltool.constants import DEFAULT_LINKAGE, DEFAULT_MODELS, LINKAGES, ROOT_NAME, SCALED
from plltool.errors import InputError, check_one_of, show_name, show_object
from plltool.io.alignment_reader import read_alignment
from plltool.io.bridge import AlignmentObject, TreeObject, alignment_from_object
from plltool.io.files import source_name
from plltool.io.model_reader import read_model, read_scheme
from plltool.io.newick import ROOT_REMOVED, is_newick, unrooted_tree
from plltool.io.table_reader import read_frequencies
from plltool.io.tree_files import load_nodes, read_tree, read_tree_set
from plltool.model.checks import check_frequencies, check_scaler
from plltool.model.model import Model
from plltool.model.partition import Dataset, check_states, cut_alignment
from plltool.model.scheme import PartSpec, Scheme, assign_sites, check_files, split_by_states
from plltool.model.spec import ModelSpec
from plltool.run.messages import refuse_invariable
from plltool.tree.rooted import add_root
from plltool.tree.splits import TreeSet
from plltool.tree.topology import Tree

GAPS = b"-?"  # of which a taxon that a part lacks has nothing else there
AlignmentLike: TypeAlias = str | PathLike[str] | Sequences | Dataset | AlignmentObject
TreeLike: TypeAlias = str | PathLike[str] | Tree | TreeObject
TreesLike: TypeAlias = str | PathLike[str] | Sequence[TreeLike] | TreeSet
FrequenciesLike: TypeAlias = str | PathLike[str] | ArrayLike
ModelLike: TypeAlias = str | PathLike[str] | ModelSpec | Model | Sequence[Model]


def as_data(given: AlignmentLike) -> Sequences | Dataset:
    """An alignment from a file or an object, or as it is; errors as `read_alignment`, `alignment_from_object`."""
    if isinstance(given, (Sequences, Dataset)):
        return given
    if isinstance(given, (str, PathLike)):
        return read_alignment(given)
    return alignment_from_object(given)


def resolve_inputs(
    alignment: AlignmentLike, model: ModelLike | None, brlen: str = DEFAULT_LINKAGE, rooted: bool = False
) -> tuple[Dataset, list[Model]]:
    """An alignment, cut into the parts that have separate models, and new objects of these models.

    model : see `plltool.search`; a list of models, one for each part, needs an alignment that is cut already
    brlen : how the branch lengths of the parts are linked, one of LINKAGES; if they are scaled, the models of several
        parts have scalers
    rooted : whether models may need a root, because they are not time-reversible; the alignment then has a row for it

    Raises InputError if the alignment or the model cannot be used, or they do not fit each other.
    """
    data, models = cut_inputs(alignment, model, brlen)
    needy = [model for model in models if not model.spec.is_reversible]
    if needy and not rooted:
        found = f"model {needy[0].spec.shown} is not time-reversible"
        raise InputError(f"{found}, but this analysis needs a time-reversible model, such as GTR+G4 or LG+G4")
    return (data.with_root() if needy else data), models


def cut_inputs(alignment: AlignmentLike, model: ModelLike | None, brlen: str) -> tuple[Dataset, list[Model]]:
    """As `resolve_inputs`, for analyses that use only the parts: the models may need a root, without a row."""
    data = as_data(alignment)
    scheme = _as_scheme(model)
    if isinstance(data, Dataset):
        return data, _make_models(model, scheme, data, brlen)
    if data.told and data.states is not None:
        scheme = tuple(replace(part, model=part.model and part.model.for_data(data.states.name)) for part in scheme)
    if len(scheme) > 1 and not isinstance(model, (str, PathLike)):
        found = f"found models of {len(scheme)} partitions for an alignment without partitions"
        raise InputError(f"model: {found}, expected a file that gives their columns, such as the record of a run")
    scheme = split_by_states(data, scheme)
    cut = cut_alignment(data, scheme)
    return cut, _make_models(model, scheme, cut, brlen)


def is_reversible(model: ModelLike | None) -> bool:
    """Whether a model, see `plltool.search`, is time-reversible, with parts all models; trees of others have a root."""
    return all(part.model is None or part.model.is_reversible for part in _as_scheme(model))


def cut_parts(alignment: AlignmentLike, partitions: str | PathLike[str]) -> dict[str, Sequences]:
    """The alignments of the parts, by their names, without the taxa that have only gaps there.

    Parameters
    ----------
    alignment : a file, or what `read_alignment` returns, as text
    partitions : a partition file, or the lines of one; see `plltool.search`

    Raises InputError if one of them cannot be read, a part has columns beyond the alignment or of another part, or
    fewer taxa than 3; for an alignment with added constant sites, and for a table of states.
    """
    data, scheme = as_data(alignment), read_scheme(fspath(partitions))
    if not isinstance(data, Sequences):
        raise InputError(f"alignment: found {data!r}, expected a file, or what read_alignment returns")
    data.refuse_table("what is cut into parts")
    if data.constant_sites:
        refuse_constant_sites(data.source, "parts")
    check_files(scheme, data.source)
    parts = {}
    for part, sites in zip(scheme, assign_sites(scheme, data.n_sites, data.source), strict=True):
        rows = dict(zip(data.names, data.columns(sites), strict=True))
        kept = {name: row for name, row in rows.items() if row.strip(GAPS)}
        states = data.declared_at(sites)
        parts[part.name] = replace(
            data,
            names=tuple(kept),
            rows=tuple(kept.values()),
            source=f"{data.source}: {part.name}",
            states=states or detect_states(kept.values()),
            told=states is not None,
            kinds=(),
            positions=None,
            site_weights=tuple(data.site_weights[site] for site in sites.tolist()) if data.site_weights else (),
        )
    return parts


def resolve_scheme(data: Sequences, scheme: Scheme, brlen: str = DEFAULT_LINKAGE) -> tuple[Dataset, list[Model]]:
    """An alignment, cut into parts that are described already, and their models; errors as in `resolve_inputs`."""
    cut = cut_alignment(data, scheme)
    return cut, _make_models(None, scheme, cut, brlen)


def _make_models(given: ModelLike | None, scheme: Scheme, data: Dataset, brlen: str) -> list[Model]:
    """The models of a scheme that was made from `given`; errors as in `resolve_inputs`."""
    check_one_of("brlen", brlen, LINKAGES)
    if len(scheme) != len(data.parts):
        raise InputError(f"{data.source}: found {len(scheme)} models, expected one for each of {len(data.parts)} parts")
    for wanted, part in zip(scheme, data.parts, strict=True):
        if wanted.model is not None:
            refuse_invariable(wanted.model, part, data.constant_sites)
    if isinstance(given, Model):
        return [given.copy()]
    if not (given is None or isinstance(given, (str, PathLike, ModelSpec))):
        return [own.copy() for own in given]
    models = []
    lengths = [wanted.tree_length for wanted in scheme if wanted.tree_length is not None]
    mean = np.average(lengths, weights=[part.n_sites for part in data.parts]) if len(lengths) == len(scheme) else None
    for wanted, part in zip(scheme, data.parts, strict=True):
        states = part.alignment.states
        spec = (wanted.model or default_model(states)).for_data(states.name).with_states(states.n_states)
        check_states(part.alignment, spec)
        if len(scheme) > 1 and brlen == SCALED:
            spec = replace(spec, scaled=True)
            if mean and wanted.tree_length:  # of IQ-TREE, where the mean scaler is 1
                spec = replace(spec, scaler=check_scaler(float(wanted.tree_length / mean)))
        elif len(scheme) > 1 and spec.scaled:
            found = f"{wanted.where}: partition {show_name(wanted.name)}: found a scaler (+B) in {spec.shown}"
            raise InputError(f"{found}, expected none where lengths are {brlen}")
        own = part.alignment
        invariable = own.count_sites(may_be_invariable(own)) / own.count_sites() if spec.sites.counted else None
        models.append(Model(spec, empirical_frequencies(part.alignment, states), invariable))
    return models


def with_site_frequencies(
    data: Dataset, models: Sequence[Model], given: FrequenciesLike
) -> tuple[Dataset, list[Model]]:
    """An alignment and its model with frequencies of each site (+SSF), from a file or an array (n_columns, n_states).

    Equal columns with different frequencies become separate patterns. Raises InputError if the frequencies cannot be
    used, for several parts, codons or added constant sites, and for a model whose frequencies cannot be replaced.
    """
    part, model, symbols = data.parts[0], models[0], models[0].spec.symbols
    if len(data.parts) > 1 or part.columns.shape[1] > 1 or data.constant_sites:
        found = "found partitions, codons or added constant sites"
        raise InputError(f"{data.source}: {found}, expected none of these with frequencies of each site")
    if isinstance(given, (str, PathLike)):
        where, rows = f"{source_name(given)}: ", read_frequencies(given, data.n_columns, symbols)
    else:
        try:
            where, rows = "", np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"site_frequencies: found {show_object(given)}, expected numbers") from None
    if rows.shape != (data.n_columns, len(symbols)):
        expected = f"({data.n_columns}, {len(symbols)})"
        raise InputError(f"expected frequencies of each site, an array of shape {expected}, found one of {rows.shape}")
    own = np.empty((len(part.sites), len(symbols)))
    for row, site in zip(own, part.sites.tolist(), strict=True):
        try:
            row[:] = check_frequencies(rows[site].tolist(), symbols)
        except InputError as problem:
            raise InputError(f"{where}site {site + 1}: {problem}") from None
    distinct, labels = np.unique(own, axis=0, return_inverse=True)
    labels = labels.ravel()
    part = replace(part, alignment=replace(part.alignment, labels=labels))
    cut = replace(data, parts=(part,))
    (patterns,) = cut.patterns
    row_of = np.empty(patterns.n_patterns, dtype=np.intp)
    row_of[patterns.site_pattern] = labels
    return cut, [model.with_site_frequencies(distinct, row_of, patterns.weights)]


def default_model(states: StateSpace) -> ModelSpec:
    data = states.name
    spec = read_model(DEFAULT_MODELS[data if genetic_code_of(data) is None else CODON])
    return spec.for_data(data).with_states(states.n_states)


def _as_scheme(given: ModelLike | None) -> Scheme:
    if given is None or isinstance(given, ModelSpec):
        return (PartSpec(given),)
    if isinstance(given, Model):
        return (PartSpec(given.spec),)
    if isinstance(given, (str, PathLike)):
        return read_scheme(fspath(given))
    if not (isinstance(given, (list, tuple)) and given and all(isinstance(model, Model) for model in given)):
        raise InputError(f"model: found {show_object(given)}, expected a string, a file, or the models of a result")
    return tuple(PartSpec(model.spec) for model in given)


def as_tree(given: TreeLike, names: Sequence[str], several: bool = False, multifurcations: bool = False) -> Tree:
    """A tree whose tips are numbered as `names`.

    It comes from a file, a Newick string (which begins with a parenthesis or a comment), a tree of dendropy, Biopython
    or ete, or a Tree, which is copied with its `root_place`; its branches keep their numbers if its tips are numbered
    so already. With `several` a file may hold one tree for each part, and with `multifurcations` these stay, see
    `read_tree`. Where ROOT_NAME is the first name, the tree has a root, see `plltool.tree.rooted`: that with two
    branches, or one on the first branch.

    Raises InputError if it cannot be read, is not accepted, is not binary, or its taxa are not `names`.
    """
    if isinstance(given, Tree) and given.added is not None and not (multifurcations and names[0] != ROOT_NAME):
        found = "found nodes of more than three branches, which this analysis or model does not keep"
        raise InputError(f"the tree given: {found}; resolve such nodes at random with --resolve SEED")
    if names[0] == ROOT_NAME and not (isinstance(given, Tree) and given.is_rooted):
        tree = given if isinstance(given, Tree) else as_tree(given, names[1:], several)
        rooted = as_tree(add_root(tree, *(tree.root_place or (0, 0.5))), names)
        rooted.warnings = tuple(warning for warning in tree.warnings if ROOT_REMOVED not in warning)
        rooted.root_is_given = tree.root_place is not None
        return rooted
    if isinstance(given, Tree):
        differing = sorted(set(given.names) ^ set(names))
        if differing:
            where = "the alignment" if differing[0] in given.names else "the tree"
            missing = f"{show_name(differing[0])} is missing from {where}"
            raise InputError(f"the taxa of the tree are not those of the alignment: {missing}")
        wrong = ~(np.isfinite(given.lengths) & (given.lengths >= 0))
        if wrong.any():
            found = f"branch {int(np.argwhere(wrong)[0, 0])} with the length {given.lengths[wrong][0]:g}"
            raise InputError(f"the tree given: found {found}, expected lengths of at least 0")
        tree = given.with_lengths(given.lengths) if given.names == tuple(names) else given.with_tips(names)
        tree.warnings, tree.root_is_given = given.warnings, given.is_rooted
        return tree
    if isinstance(given, (str, PathLike)) and not is_newick(given):
        return read_tree(given, names, unlinked=several, multifurcations=multifurcations)
    return unrooted_tree(*load_nodes(given), names, multifurcations=multifurcations)


def link_lengths(tree: Tree, n_lengths: int) -> Tree:
    """The tree with `n_lengths` lengths of each branch: 1, or with unlinked lengths one for each part.

    Raises InputError if it has another number of lengths, unless that is 1.
    """
    found = tree.lengths[0].size
    if found not in (1, n_lengths):
        several = f" or one for each of {n_lengths} partitions" if n_lengths > 1 else ""
        raise InputError(f"the tree given: found branch lengths of {found} trees, expected 1{several}")
    return tree.unlink(n_lengths) if found < n_lengths else tree


def as_tree_set(trees: TreesLike, names: Sequence[str] | None = None) -> TreeSet:
    """A set of trees from a file (Newick or NEXUS, compressed or not), Newick text, or several of these or of trees.

    The taxa are in the order of `names`, or by default as in the first tree; a `TreeSet` stays as it
    is. Raises InputError if a file cannot be read, there is no tree, or the taxa are not the same in all.
    """
    if isinstance(trees, TreeSet):
        return trees
    if isinstance(trees, (str, PathLike)):
        return read_tree_set([trees], names)
    if isinstance(trees, Tree) or not isinstance(trees, Iterable):
        raise InputError(f"trees: found an object of type {type(trees).__name__}, expected a file, or a list of trees")
    return read_tree_set(list(trees), names)
