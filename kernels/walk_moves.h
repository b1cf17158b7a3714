/* The moves of walkers, see `walks.cl`: those of plltool/analyses/sampling that change nothing but the tree and its lengths and ask for
 * nothing but the likelihood: BranchMultiplier, NodeSlider, TreeMultiplier, Interchange and Extension. Their classes derive the Hastings
 * ratios; a move here draws the same numbers in the same order, and tests/analyses/sampling/test_walks.py compares them.
 *
 * A walker has two slots for each inner node and two places for the P matrix of each branch. One of both belongs to the present
 * tree. A proposal writes to the other one, and the two change places: again, if it is rejected.
 */

#define ROOT 0          /* the tip that trees hang from */

typedef struct {
    __global int *parent, *left, *right, *slot_side, *place_side, *keys, *order;
    __global double *lengths;           /* [set][side][node]: parts share a set, or each has its own */
    __global double *words;
    const __global double *split_weights;
    int n_taxa, n_nodes, n_sets, first_slot;    /* the slots of inner node u are first_slot + 2 u and the next one */
    double least_length, largest_length;
    double prior;                       /* the logarithm of the prior density of the present lengths, up to a constant */
    int changed[3], n_changed;          /* the branches that a proposal changes; -1: all */
    int stale[2], n_stale;              /* the inner nodes whose CLAs it changes, besides those above; -1: all nodes */
    int n_made;                         /* the CLAs that it makes, of the nodes in `order` */
    int is_possible;
    ulong random;
    const __global double *eigen;       /* of the P sets of this walker, as the next two */
    const __global REAL *model;
    __global REAL *matrices;
    const __global uchar *at_tips;
    __global int *program, *track;
    const __global int *spans, *sum_tree;
    __global WIDE_SUM *partial;
    int own, n_walkers, n_parts, n_spans, n_groups, n_made_rows;
    Task task;                          /* for the last span */
    int task_part;                      /* the part that it belongs to; -1: none yet */
} Walker;

/* A number from 0 to 1: SplitMix64 (Steele, Lea & Flood 2014). */
INLINE double draw(Walker *w)
{
    ulong z = w->random += 0x9e3779b97f4a7c15UL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebUL;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* A whole number from 0 to n - 1; if that is 0, nothing is drawn, as by numpy. */
INLINE int draw_below(Walker *w, int n)
{
    return n > 1 ? (int)(draw(w) * n) : 0;
}

INLINE double draw_factor(Walker *w, double step)
{
    return step * (draw(w) - 0.5);
}

/* A node from `first` on that is not the top. */
INLINE int draw_below_top(Walker *w, int first)
{
    const int node = first + draw_below(w, w->n_nodes - 1 - first);
    return node + (node >= w->left[ROOT]);
}

INLINE int sibling(const Walker *w, int node)
{
    const int parent = w->parent[node];
    return w->left[parent] == node ? w->right[parent] : w->left[parent];
}

INLINE void replace_child(Walker *w, int parent, int old, int new)
{
    (w->left[parent] == old ? w->left : w->right)[parent] = new;
    w->parent[new] = parent;
}

/* The place of the length and of the P matrix of a branch. */
INLINE int find_place(const Walker *w, int node)
{
    return w->place_side[node] * w->n_nodes + node;
}

INLINE double length_of(const Walker *w, int set, int node)
{
    return w->lengths[set * 2 * w->n_nodes + find_place(w, node)];
}

/* Write another length to the other place of a branch. */
INLINE void put_length(Walker *w, int set, int node, double length)
{
    w->lengths[(2 * set + !w->place_side[node]) * w->n_nodes + node] = length;
    w->is_possible = w->is_possible && length >= w->least_length && length <= w->largest_length;
}

/* Propose the lengths in the other place; each branch at most once. */
INLINE void change_branch(Walker *w, int node)
{
    w->place_side[node] ^= 1;
    w->changed[w->n_changed++] = node;
}

/* Propose another length of one set; those of the others come along. */
INLINE void change_length(Walker *w, int set, int node, double length)
{
    for (int k = 0; k < w->n_sets; k++)
        put_length(w, k, node, k == set ? length : length_of(w, k, node));
    change_branch(w, node);
}

INLINE void note_stale(Walker *w, int node)
{
    if (node != ROOT)
        w->stale[w->n_stale++] = node;
}

/* Each move returns the logarithm of its Hastings ratio. */
INLINE double multiply_branch(Walker *w, double step)
{
    const int n = w->n_nodes - 1, drawn = draw_below(w, w->n_sets * n), set = drawn / n, node = 1 + drawn % n;
    const double factor = draw_factor(w, step);
    change_length(w, set, node, length_of(w, set, node) * exp(factor));
    note_stale(w, w->parent[node]);
    return factor;
}

INLINE double slide_node(Walker *w, double step)
{
    const int n = w->n_taxa - 2, drawn = draw_below(w, w->n_sets * n), set = drawn / n;
    const int node = w->n_taxa + drawn % n, fixed = draw_below(w, 3);
    const int first = fixed == 0 ? w->left[node] : node, second = fixed == 2 ? w->left[node] : w->right[node];
    const double factor = draw_factor(w, step), before = length_of(w, set, first) + length_of(w, set, second);
    const double whole = before * exp(factor), share = draw(w);
    change_length(w, set, first, share * whole);
    change_length(w, set, second, (1.0 - share) * whole);
    note_stale(w, node);
    return 2.0 * factor;
}

INLINE double multiply_tree(Walker *w, double step)
{
    const int set = draw_below(w, w->n_sets);
    const double factor = draw_factor(w, step), multiplier = exp(factor);
    for (int node = 1; node < w->n_nodes; node++) {
        for (int k = 0; k < w->n_sets; k++)
            put_length(w, k, node, length_of(w, k, node) * (k == set ? multiplier : 1.0));
        w->place_side[node] ^= 1;
    }
    w->n_changed = w->n_stale = -1;
    return factor * (w->n_nodes - 1);
}

/* The weight of the split of an inner node; 0 for the top, which has none. */
INLINE double split_weight(const Walker *w, int node)
{
    return node == w->left[ROOT] ? 0.0 : w->split_weights[w->keys[node]];
}

INLINE double interchange(Walker *w)
{
    double whole = 0.0, sum = 0.0;
    for (int node = w->n_taxa; node < w->n_nodes; node++)
        whole += split_weight(w, node);
    const double drawn = draw(w) * whole;
    int lower = w->n_taxa - 1;
    while (sum <= drawn)
        sum += split_weight(w, ++lower);
    const int below = draw(w) < 0.5 ? w->left[lower] : w->right[lower];
    const int upper = w->parent[lower], beside = sibling(w, lower);
    const double old = w->split_weights[w->keys[lower]];
    const double new = w->split_weights[w->keys[lower] ^ w->keys[below] ^ w->keys[beside]];
    replace_child(w, lower, below, beside);
    replace_child(w, upper, beside, below);
    note_stale(w, lower);
    return log(new * whole / (old * (whole - old + new)));
}

INLINE double extend(Walker *w, double extension)
{
    const int node = draw_below_top(w, 1), joint = w->parent[node], home = sibling(w, node), above = w->parent[joint];
    const int may_rise = above != ROOT, may_sink = home >= w->n_taxa;
    if (!may_rise && !may_sink) {
        w->is_possible = 0;
        return 0.0;
    }
    const int begins_rising = may_rise && may_sink ? draw(w) < 0.5 : may_rise;
    int rises = begins_rising, edge = rises ? joint : home, is_open;
    do {
        if (rises) {
            rises = draw(w) < 0.5;
            edge = rises ? w->parent[edge] : sibling(w, edge);
        } else {
            edge = draw(w) < 0.5 ? w->left[edge] : w->right[edge];
        }
        is_open = rises ? w->parent[edge] != ROOT : edge >= w->n_taxa;
    } while (is_open && draw(w) < extension);
    for (int k = 0; k < w->n_sets; k++) {
        const double upper = length_of(w, k, joint), lower = length_of(w, k, home), far = length_of(w, k, edge);
        const double near = begins_rising ? upper : lower;
        if (!begins_rising)
            put_length(w, k, home, upper);
        if (rises)
            put_length(w, k, edge, near);
        put_length(w, k, joint, rises ? far : near);
    }
    if (!begins_rising)
        change_branch(w, home);
    if (rises)
        change_branch(w, edge);
    change_branch(w, joint);
    replace_child(w, above, joint, home);
    replace_child(w, w->parent[edge], edge, joint);
    replace_child(w, joint, home, edge);
    note_stale(w, joint);
    note_stale(w, above);
    return log(2.0 * (1.0 - extension)) * ((begins_rising ? may_sink : may_rise) - is_open);
}

/* Propose a move of some kind. */
INLINE double propose(Walker *w, int kind)
{
    w->n_changed = w->n_stale = w->n_made = 0;
    w->is_possible = 1;
    const double step = w->words[WALK_STEP + kind];
    switch (kind) {
    case MULTIPLY_BRANCH:
        return multiply_branch(w, step);
    case SLIDE_NODE:
        return slide_node(w, step);
    case MULTIPLY_TREE:
        return multiply_tree(w, step);
    case INTERCHANGE:
        return interchange(w);
    default:
        return extend(w, w->words[WALK_EXTENSION]);
    }
}
