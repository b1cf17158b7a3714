"""Random sequences of calls that suit BEAGLE's library and `plltool.beagle.Instance` alike; they return all numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plltool.beagle import Flag

NONE = -1
MODES = ("none", "write", "accumulate", "read", "auto", "always")


@dataclass(frozen=True)
class Shape:
    """The size of an instance, and what kind of calls it gets."""

    n_states: int
    n_categories: int
    n_tips: int
    n_patterns: int
    mode: str
    n_partitions: int
    is_complex: bool = False
    precision: str = "double"

    @classmethod
    def random(cls, rng, n_states, precision="double"):
        mode = str(rng.choice(MODES))
        n_patterns = int(rng.integers(1, 14))
        most = min(3, n_patterns) if mode in ("none", "write", "accumulate") else 1
        return cls(
            n_states,
            int(rng.integers(1, 9)),
            int(rng.integers(3, 8)),
            n_patterns,
            mode,
            int(rng.integers(1, most + 1)) if rng.random() < 0.5 else 1,
            bool(rng.random() < 0.2),
            precision,
        )

    @property
    def flags(self):
        scaling = {"auto": Flag.SCALING_AUTO, "always": Flag.SCALING_ALWAYS}.get(self.mode, Flag.SCALING_MANUAL)
        eigen = Flag.EIGEN_COMPLEX if self.is_complex else Flag.EIGEN_REAL
        precision = Flag.PRECISION_SINGLE if self.precision == "single" else Flag.PRECISION_DOUBLE
        padding = Flag.VECTOR_NONE if self.n_states % 2 else Flag(0)  # else the library's partials are padded
        return scaling | eigen | precision | padding | Flag.COMPUTATION_SYNCH

    @property
    def sizes(self):
        """The arguments that create an instance: two sets of inner buffers and matrices, see `Player`."""
        n_inner = self.n_tips - 1
        n_matrices = 2 * 2 * self.n_tips + 4
        n_scales = 2 * n_inner + 4
        return (
            self.n_tips, self.n_tips + 2 * n_inner, self.n_tips, self.n_states, self.n_patterns, 3, n_matrices,
            self.n_categories, n_scales,
        )  # fmt: skip


def random_system(rng, n, is_complex):
    """Eigenvectors, their inverse, eigenvalues, frequencies: of a process that is reversible, or circles."""
    pi = rng.dirichlet(np.full(n, 5.0))
    rates = rng.random((n, n)) + 0.1
    if is_complex:
        rates += n * np.roll(np.eye(n), 1, axis=1)
        q = rates * pi
    else:
        q = (rates + rates.T) * pi
    np.fill_diagonal(q, 0)
    q -= np.diag(q.sum(axis=1))
    q /= -(pi * np.diag(q)).sum()
    if not is_complex:
        root = np.sqrt(pi)
        values, vectors = np.linalg.eigh(q * root[:, None] / root)
        return vectors / root[:, None], vectors.T * root, values, pi
    values, vectors = np.linalg.eig(q)
    order = np.lexsort([-values.imag, np.abs(values.imag), values.real])
    values, vectors = values[order], vectors[:, order]
    right, place = vectors.real.copy(), 0
    while place < n:
        if values[place].imag != 0:
            right[:, place + 1] = vectors[:, place].imag
            place += 1
        place += 1
    return right, np.linalg.inv(right), np.concatenate([values.real, values.imag]), pi


class Player:
    """Plays a sequence on an instance; the same seed makes the same calls.

    Buffers: tips, then two sets of inner nodes; node k of set s is n_tips + s (n_tips - 1) + k. Matrices: one for each
    node, first of all the tips, in two sets, then four for derivatives and products. Scale buffers: one for each inner
    node of both sets, then cumulative ones.
    """

    def __init__(self, instance, shape, seed):
        self.instance, self.shape = instance, shape
        self.rng = np.random.default_rng(seed)
        self.answers = []
        self.n_inner = shape.n_tips - 1
        self.total = 2 * self.n_inner  # the first cumulative scale buffer
        self.spare = 2 * 2 * shape.n_tips  # the first matrix for derivatives
        self.partition_of = np.zeros(shape.n_patterns, dtype=int)

    def note(self, name, value):
        for number, part in enumerate(value if isinstance(value, tuple) else (value,)):
            self.answers.append((f"{name} {number}", np.array(part, dtype=float)))

    def play(self):
        self.set_data()
        self.set_model()
        self.set_partitions()
        for round_ in range(2):
            self.children = self.draw_tree()
            self.make_matrices(round_)
            self.make_partials(round_)
            self.ask(round_)
        return self.answers

    def set_data(self):
        shape, rng = self.shape, self.rng
        for tip in range(shape.n_tips):
            kind = rng.random()
            if kind < 0.6:
                self.instance.set_tip_states(tip, rng.integers(0, shape.n_states + 1, shape.n_patterns))
            elif kind < 0.8:
                sets = (rng.random((shape.n_patterns, shape.n_states)) < 0.4).astype(float)
                sets[:, 0] = 1.0
                self.instance.set_tip_partials(tip, sets)
            else:
                self.instance.set_tip_partials(tip, rng.random((shape.n_patterns, shape.n_states)))
        self.instance.set_pattern_weights(rng.integers(1, 6, shape.n_patterns))

    def set_model(self):
        shape, rng = self.shape, self.rng
        for number in range(3):
            right, left, values, pi = random_system(rng, shape.n_states, shape.is_complex)
            self.instance.set_eigen_decomposition(number, right, left, values)
            self.instance.set_state_frequencies(number, pi)
            self.instance.set_category_weights(number, rng.dirichlet(np.full(shape.n_categories, 3.0)))
        rates = rng.gamma(1.0, 1.0, shape.n_categories)
        if rng.random() < 0.3 and shape.n_categories > 1:  # of impossible patterns both would give rounding errors
            rates[0] = 0.0
        self.instance.set_category_rates(rates)
        self.instance.set_category_rates_with_index(1, rng.gamma(1.0, 1.0, shape.n_categories))

    def set_partitions(self):
        shape, n = self.shape, self.shape.n_partitions
        if n > 1:
            own = np.concatenate([np.arange(n), self.rng.integers(0, n, shape.n_patterns - n)])
            self.partition_of = self.rng.permutation(own)
            self.instance.set_pattern_partitions(n, self.partition_of)

    def draw_tree(self):
        """The two children of each inner node, numbered behind the tips."""
        free, children = list(range(self.shape.n_tips)), []
        for node in range(self.shape.n_tips, 2 * self.shape.n_tips - 1):
            pair = [free.pop(int(self.rng.integers(len(free)))) for _ in range(2)]
            children.append(pair)
            free.append(node)
        return children

    def matrix(self, node, round_):
        return 2 * self.shape.n_tips * round_ + node

    def buffer(self, node, round_):
        return node if node < self.shape.n_tips else node + round_ * self.n_inner

    def make_matrices(self, round_):
        rng, n_nodes = self.rng, 2 * self.shape.n_tips - 1
        nodes = [self.matrix(node, round_) for node in range(n_nodes)]
        lengths = rng.exponential(0.2, n_nodes)
        if rng.random() < 0.5:
            self.instance.update_transition_matrices(int(rng.integers(3)), nodes, None, None, lengths)
        else:
            models, rates = rng.integers(0, 3, n_nodes), rng.integers(0, 2, n_nodes)
            self.instance.update_transition_matrices_with_multiple_models(models, rates, nodes, None, None, lengths)
        kind = rng.random()
        if kind < 0.3:
            made = rng.dirichlet(np.ones(self.shape.n_states), (self.shape.n_categories, self.shape.n_states))
            self.instance.set_transition_matrix(nodes[0], made)
        elif kind < 0.6:
            self.instance.convolve_transition_matrices(nodes[:2], nodes[2:4], [self.spare, nodes[4]])
        for node in rng.integers(0, n_nodes, 2):
            self.note("matrix", self.instance.get_transition_matrix(nodes[node]))

    def make_partials(self, round_):
        mode, instance = self.shape.mode, self.instance
        rows = []
        for k, (a, b) in enumerate(self.children):
            ends = [self.buffer(a, round_), self.matrix(a, round_), self.buffer(b, round_), self.matrix(b, round_)]
            scale = self.n_inner * round_ + k if mode in ("write", "accumulate", "read") else NONE
            if mode == "write" and self.rng.random() < 0.3:
                scale = NONE
            rows.append([self.buffer(self.shape.n_tips + k, round_), scale, NONE, *ends])
        self.scaled = [row[1] for row in rows if row[1] != NONE]
        total = self.total + round_ if mode == "write" else NONE
        if mode == "write":
            instance.reset_scale_factors(total)
        if self.shape.n_partitions > 1:
            for partition in self.rng.permutation(self.shape.n_partitions).tolist():
                instance.update_partials_by_partition([[*row, partition, total] for row in rows])
        else:
            cut = int(self.rng.integers(0, len(rows) + 1))
            for some in (rows[:cut], rows[cut:]):
                if some:
                    instance.update_partials(some, total)
        if mode == "read":
            again = [[row[0], NONE, row[1], *row[3:]] for row in rows]
            instance.update_partials(again, NONE)
        if mode in ("accumulate", "read"):
            self.accumulate(round_)
        instance.wait_for_partials([row[0] for row in rows])

    def accumulate(self, round_):
        instance, total = self.instance, self.total + round_
        if self.shape.n_partitions > 1:
            for partition in range(self.shape.n_partitions):
                instance.reset_scale_factors(total, partition)
                instance.accumulate_scale_factors(self.scaled, total, partition)
        else:
            instance.reset_scale_factors(total)
            instance.accumulate_scale_factors(self.scaled, total)
        if self.rng.random() < 0.5 and len(self.scaled) > 1:
            instance.remove_scale_factors(self.scaled[:1], total)
            instance.accumulate_scale_factors(self.scaled[:1], total)

    def ask(self, round_):
        shape, rng, instance = self.shape, self.rng, self.instance
        scale = self.total + round_ if shape.mode in ("write", "accumulate", "read") else NONE
        root = self.buffer(2 * shape.n_tips - 2, round_)
        weights, frequencies = (int(rng.integers(3)) for _ in range(2))
        if shape.n_partitions > 1:
            n = shape.n_partitions
            lists = [[root] * n, rng.integers(0, 3, n), rng.integers(0, 3, n), [scale] * n, np.arange(n)]
            self.note("root by partition", instance.calculate_root_log_likelihoods_by_partition(*lists))
            self.note("sites", instance.get_site_log_likelihoods())
            self.ask_edge_by_partition(round_, scale)
            return
        self.note("root", instance.calculate_root_log_likelihoods([root], [weights], [frequencies], [scale]))
        self.note("sites", instance.get_site_log_likelihoods())
        if shape.mode not in ("auto", "always"):
            self.note("partials", instance.get_partials(root))
            other = self.buffer(int(rng.integers(shape.n_tips, 2 * shape.n_tips - 1)), round_)
            self.note("partials", instance.get_partials(other))
            self.ask_edge(round_, scale, weights, frequencies)
            if round_ and shape.mode in ("none", "accumulate"):
                both = [self.buffer(2 * shape.n_tips - 2, k) for k in range(2)]
                scales = [NONE if scale == NONE else self.total + k for k in range(2)]
                found = instance.calculate_root_log_likelihoods(both, [0, 1], [frequencies] * 2, scales)
                self.note("two roots", found)

    def ends(self, round_):
        """The buffers of the two children of the root, first one of partials, if there is one."""
        return sorted((self.buffer(child, round_) for child in self.children[-1]), key=lambda k: k < self.shape.n_tips)

    def ask_edge(self, round_, scale, weights, frequencies):
        """Across the edge between the two children of the root, with and without derivatives."""
        order = int(self.rng.integers(0, 3))
        spare = [self.spare + k for k in range(3)]
        eigen, length = int(self.rng.integers(3)), self.rng.exponential(0.3, 1)
        lists = [spare[:1], spare[1:2] if order > 0 else None, spare[2:] if order > 1 else None]
        if self.shape.is_complex and order:
            lists[1:], order = [None, None], 0  # the library has no derivatives there
        self.instance.update_transition_matrices(eigen, *lists, length)
        for own in lists:
            if own is not None:
                self.note("matrix", self.instance.get_transition_matrix(own[0]))
        upper, lower = self.ends(round_)
        if upper < self.shape.n_tips:
            return
        found = self.instance.calculate_edge_log_likelihoods(
            [upper], [lower], *lists, [weights], [frequencies], [scale]
        )
        self.note("edge", found)
        self.note("sites", self.instance.get_site_log_likelihoods())
        if order == 2:
            self.note("site derivatives", self.instance.get_site_derivatives())

    def ask_edge_by_partition(self, round_, scale):
        upper, lower = self.ends(round_)
        if upper < self.shape.n_tips:
            return
        n = self.shape.n_partitions
        with_derivatives = bool(self.rng.random() < 0.5) and not self.shape.is_complex
        spare = [self.spare + k for k in range(3)]
        lists = [[k] if with_derivatives or not k - self.spare else None for k in spare]
        self.instance.update_transition_matrices(0, *lists, self.rng.exponential(0.3, 1))
        repeated = [own and own * n for own in lists]
        found = self.instance.calculate_edge_log_likelihoods_by_partition(
            [upper] * n, [lower] * n, *repeated, [0] * n, [1] * n, [scale] * n, np.arange(n)
        )
        self.note("edge by partition", found)
