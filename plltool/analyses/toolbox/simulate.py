"""Alignments that evolve along a tree under a model: `simulate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath

import numpy as np

from plltool.alignment.alignment import Sequences
from plltool.alignment.spaces import OWN_STATES, NamedSpace, find_space
from plltool.alignment.states import UNKNOWN_CELL, StateSpace, join_cells, spell
from plltool.constants import DEFAULT_SEED, ROOT_NAME
from plltool.errors import InputError, check_least, shorten, show_name, show_object
from plltool.io.alignment_formats import PHYLIP_ENDINGS, format_fasta, format_phylip, format_table
from plltool.io.model_reader import read_scheme
from plltool.io.newick import is_newick, unrooted_tree
from plltool.io.newick_writer import write_newick
from plltool.io.table_reader import read_table
from plltool.io.tree_files import load_nodes, read_tree
from plltool.model.components import evolve
from plltool.model.model import Model
from plltool.model.named import COUNTED_MODES
from plltool.model.scheme import Scheme, assign_sites
from plltool.progress import log
from plltool.run.inputs import TreeLike, as_tree, link_lengths
from plltool.run.messages import remarks_on_lengths, remarks_on_values
from plltool.run.rooting import mean_tree
from plltool.run.site_rates import refuse_site_rates
from plltool.seeds import SIMULATION, generator
from plltool.tree.topology import Tree

_SOURCE = "the simulated alignment"
ANY_RESOLUTION = 0  # a seed: the branches that resolve a node are so short that nothing evolves along them


@dataclass(frozen=True, eq=False)
class Simulation:
    """An alignment that `simulate` made.

    Attributes
    ----------
    names, sequences : names and sequences of the taxa, in the tree's order
    is_table : whether states have names; `sequences` then have tabs between them
    states : state space of the whole alignment; None if parts differ
    newick, models : the tree along which it evolved, and the model string of each part, with all values
    warnings : what a user should know, one line each
    """

    names: tuple[str, ...]
    sequences: tuple[str, ...]
    is_table: bool
    states: StateSpace | None
    newick: str
    models: tuple[str, ...]
    seed: int
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        n_sites = len(self.sequences[0].split("\t") if self.is_table else self.sequences[0])
        size = f"{len(self.names)} taxa, {n_sites} sites"
        return f"<Simulation: {size}, {shorten('; '.join(self.models))}, seed {self.seed}>"

    def format_alignment(self, name: str | PathLike[str] = "") -> str:
        """The alignment as PHYLIP if a file of that `name` is to have it that ends in .phy or .phylip, else as FASTA.

        States with names make a table, separated by tabs, whatever its name.

        Raises InputError for a taxon with blanks in its name, which PHYLIP cannot have.
        """
        if self.is_table:
            return format_table(self.names, self.sequences)
        format_ = format_phylip if fspath(name).endswith(PHYLIP_ENDINGS) else format_fasta
        return format_(self.names, self.sequences)

    def as_sequences(self) -> Sequences:
        """The alignment in the form that `plltool.search` and the other analyses take."""
        if self.is_table:
            return read_table(self.format_alignment().encode(), _SOURCE)
        rows = tuple(sequence.encode("ascii") for sequence in self.sequences)
        return Sequences(self.names, rows, _SOURCE, self.states, told=self.states is not None)


def simulate(
    tree: TreeLike, model: str | PathLike[str] | Model | Sequence[Model], n_sites: int, seed: int = DEFAULT_SEED
) -> Simulation:
    """Let an alignment evolve along a tree.

    Parameters
    ----------
    tree : file, Newick string, Tree, or tree of dendropy, Biopython or ete, with branch lengths; nodes may have any
        number of branches. For several parts a file may hold one tree for each part, all of the same topology
    model : a string with values, such as "HKY{1/4}+FU{0.3/0.2/0.2/0.3}+G4{0.5}"; a file, such as the record of a run
        or a partition file, whose parts get their columns, and the tree's lengths times their scalers; or a Model.
        Parameters without values have their start values, and a warning says so
    n_sites : number of columns; a codon has three
    seed : seed of all random draws

    Raises InputError if tree or model cannot be used, the model counts frequencies in an alignment, there are no sites,
    or a part has columns beyond the last one.
    """
    check_least("sites", n_sites, 1)
    check_least("seed", seed, 0)
    scheme, models = _fill(model)
    refuse_site_rates(models, "a simulation")
    rooted = not all(own.spec.is_reversible for own in models)
    for own in models:  # a correction says which columns are kept, not how they evolve
        if own.spec.ascertainment is not None:
            found = f"model {own.spec.shown}: a simulation cannot use a correction for ascertainment bias (+ASC)"
            raise InputError(f"{found}, expected the model without it; remove invariable columns afterwards")
    on = _as_tree(tree, len(models))
    if rooted and not (on.is_rooted or on.root_place):
        why = "because the model is not time-reversible"
        raise InputError(f"the tree given: found no root, expected one, with two branches, {why}")
    on = as_tree(on, (ROOT_NAME, *on.names)) if rooted and not on.is_rooted else on  # columns evolve from it
    if on.lengths.ndim > 1:
        on = link_lengths(on, len(models))
    columns = assign_sites(scheme, n_sites, f"an alignment of {n_sites} sites") if scheme else [np.arange(n_sites)]
    spaces = [find_space(own.spec.data, own.spec.n_states) for own in models]
    written = []
    for number, (own, space, sites) in enumerate(zip(models, spaces, columns, strict=True)):
        its_tree = on if on.lengths.ndim == 1 else on.with_lengths(on.lengths[:, number])
        n_cells, left = divmod(len(sites), space.width)
        if left:
            raise InputError(f"sites: found {len(sites)} of {space.name} data, expected a multiple of {space.width}")
        states = evolve(its_tree, own.components(), n_cells, generator(seed, SIMULATION, number))
        written.append(spell(states % space.n_states, space.symbols, space.width))
    is_table = any(isinstance(space, NamedSpace) for space in spaces)
    if is_table and not all(space.name.startswith(OWN_STATES) for space in spaces):
        found = "found partitions with named states and other partitions"
        raise InputError(f"model: {found}, expected named states only, or none")
    cells = np.full((on.n_taxa, n_sites), UNKNOWN_CELL if is_table else "-", dtype=np.result_type(*written))
    for sites, texts in zip(columns, written, strict=True):
        cells[:, sites] = texts
    remarks = (*on.warnings, *remarks_on_values(models), *remarks_on_lengths(on))
    for remark in remarks:
        log.warning(remark)
    return Simulation(
        on.names[rooted:],
        tuple(join_cells(cells[rooted:])),
        is_table,
        spaces[0] if len(set(map(id, spaces))) == 1 else None,
        write_newick(mean_tree(on, np.array([len(sites) for sites in columns]))),
        tuple(own.to_string() for own in models),
        seed,
        remarks,
    )


def _fill(given: str | PathLike[str] | Model | Sequence[Model]) -> tuple[Scheme, list[Model]]:
    """The parts, none if a model is given as an object, and the models."""
    if isinstance(given, Model):
        return (), [given]
    if not isinstance(given, (str, PathLike)):
        if not (isinstance(given, (list, tuple)) and len(given) == 1 and isinstance(given[0], Model)):
            found = f"{len(given)} models" if isinstance(given, (list, tuple)) else show_object(given)
            raise InputError(f"model: found {found}, expected one, or a partition file")
        return (), list(given)
    scheme = read_scheme(fspath(given))
    models = []
    for part in scheme:
        if part.model is None:
            raise InputError(f"{part.where}: partition {show_name(part.name)} has no model, expected one with values")
        counts = f"model {part.model.shown} counts"
        if part.model.frequency_mode in COUNTED_MODES:
            raise InputError(f"{counts} frequencies in an alignment, expected values: +FU{{...}}")
        if part.model.sites.counted:
            raise InputError(f"{counts} invariable sites in an alignment, expected a value: +IU{{...}}")
        models.append(Model(part.model))
    return scheme, models


def _as_tree(given: TreeLike, n_parts: int) -> Tree:
    if isinstance(given, Tree):
        return given
    if n_parts > 1 and isinstance(given, (str, PathLike)) and not is_newick(given):
        return read_tree(given, resolve_seed=ANY_RESOLUTION, unlinked=True)
    return unrooted_tree(*load_nodes(given), resolve_seed=ANY_RESOLUTION)
