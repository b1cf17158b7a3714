/* walk: chains that walk through the space of trees, many moves in one launch.
 *
 * The moves are those of plltool/analyses/sampling that change nothing but the tree and its lengths and ask for nothing but the
 * likelihood: BranchMultiplier, NodeSlider, TreeMultiplier, Interchange and Extension. Their classes derive the Hastings ratios; a step
 * here draws the same numbers in the same order, and tests/analyses/sampling/test_walks.py compares them.
 *
 * Work: a work-group, which is one work-item, for each walker, or it takes several, one after another. It takes all tiles of all parts
 * through the NEWVIEWs that a proposal asks for, by the instructions of `traverse`. For CPU devices.
 *
 * A walker has two slots for each inner node and two places for the P matrix of each branch. One of both belongs to the present
 * tree. A proposal writes to the other one, and the two change places: again, if it is rejected.
 *
 * Arrays:
 *   trees   int [walker][WALK_ROWS][node], see WalkRow in plltool/engine/contract.py
 *   walkers double [walker][WALK_WORDS], see WalkWord
 *   seeds   ulong [walker]
 *   walk_lengths double [walker][side][node], of the branch above each node; its P matrix has the same place in each P set
 *   walk_program int [walker][n_taxa - 1][INSTRUCTION_WORDS], walk_tracks int [walker][TRACK_WORDS]: room for what a walker asks
 */

#define ROOT 0          /* the tip that trees hang from */

typedef struct {
    __global int *parent, *left, *right, *slot_side, *place_side, *order;
    __global double *lengths;           /* [side][node] */
    __global double *words;
    int n_taxa, n_nodes, first_slot;    /* the slots of inner node u are first_slot + 2 u and the next one */
    double least_length, largest_length;
    int changed[3], n_changed;          /* the branches that a proposal changes, unless they are all */
    int stale[2], n_stale;              /* the inner nodes whose CLAs it changes, besides those above; -1: all nodes */
    int is_possible;
    ulong random;
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

INLINE double length_of(const Walker *w, int node)
{
    return w->lengths[find_place(w, node)];
}

/* Propose another length; each branch at most once. */
INLINE void set_length(Walker *w, int node, double length)
{
    w->place_side[node] ^= 1;
    w->lengths[find_place(w, node)] = length;
    w->is_possible = w->is_possible && length >= w->least_length && length <= w->largest_length;
}

INLINE void change_length(Walker *w, int node, double length)
{
    set_length(w, node, length);
    w->changed[w->n_changed++] = node;
}

INLINE void note_stale(Walker *w, int node)
{
    if (node != ROOT)
        w->stale[w->n_stale++] = node;
}

/* Each move returns the logarithm of its Hastings ratio. */
INLINE double multiply_branch(Walker *w, double step)
{
    const int node = 1 + draw_below(w, w->n_nodes - 1);
    const double factor = draw_factor(w, step);
    change_length(w, node, length_of(w, node) * exp(factor));
    note_stale(w, w->parent[node]);
    return factor;
}

INLINE double slide_node(Walker *w, double step)
{
    const int node = w->n_taxa + draw_below(w, w->n_taxa - 2), fixed = draw_below(w, 3);
    const int first = fixed == 0 ? w->left[node] : node, second = fixed == 2 ? w->left[node] : w->right[node];
    const double factor = draw_factor(w, step), whole = (length_of(w, first) + length_of(w, second)) * exp(factor), share = draw(w);
    change_length(w, first, share * whole);
    change_length(w, second, (1.0 - share) * whole);
    note_stale(w, node);
    return 2.0 * factor;
}

INLINE double multiply_tree(Walker *w, double step)
{
    const double factor = draw_factor(w, step), multiplier = exp(factor);
    for (int node = 1; node < w->n_nodes; node++)
        set_length(w, node, length_of(w, node) * multiplier);
    w->n_changed = w->n_stale = -1;
    return factor * (w->n_nodes - 1);
}

INLINE double interchange(Walker *w)
{
    const int lower = draw_below_top(w, w->n_taxa), below = draw(w) < 0.5 ? w->left[lower] : w->right[lower];
    const int upper = w->parent[lower], beside = sibling(w, lower);
    replace_child(w, lower, below, beside);
    replace_child(w, upper, beside, below);
    note_stale(w, lower);
    return 0.0;
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
    const double upper = length_of(w, joint), lower = length_of(w, home), far = length_of(w, edge);
    const double near = begins_rising ? upper : lower;
    if (!begins_rising)
        change_length(w, home, upper);
    if (rises)
        change_length(w, edge, near);
    change_length(w, joint, rises ? far : near);
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
    w->n_changed = w->n_stale = 0;
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

/* The logarithm of the prior density of all lengths, up to a constant, see `GammaDirichlet` and `Exponential` in priors.py. */
INLINE double log_prior(const Walker *w)
{
    const double at_tips = w->words[WALK_TIP_POWER], inner = w->words[WALK_INNER_POWER];
    double whole = 0.0, powers = 0.0;
    for (int node = 1; node < w->n_nodes; node++) {
        const double length = length_of(w, node);
        whole += length;
        if (at_tips != 0.0 || inner != 0.0)
            powers += (node < w->n_taxa || node == w->left[ROOT] ? at_tips : inner) * log(length);
    }
    return powers + w->words[WALK_TREE_POWER] * log(whole) - w->words[WALK_RATE] * whole;
}

/* Put the inner nodes to be made again into `order`, each behind those below it; returns their number. */
INLINE int order_nodes(Walker *w)
{
    int n = 0;
    if (w->n_stale < 0) {       /* all, found from the top down; what is found later is put in front */
        const int last = w->n_taxa - 3;
        int n_found = 1;
        w->order[last] = w->left[ROOT];
        for (n = 0; n < n_found; n++) {
            const int node = w->order[last - n];
            if (w->left[node] >= w->n_taxa)
                w->order[last - n_found++] = w->left[node];
            if (w->right[node] >= w->n_taxa)
                w->order[last - n_found++] = w->right[node];
        }
        return n;
    }
    int meeting = ROOT;         /* where the way up from the second stale node meets that from the first */
    if (w->n_stale == 2)
        for (meeting = w->stale[1]; meeting != ROOT; meeting = w->parent[meeting]) {
            int node = w->stale[0];
            while (node != ROOT && node != meeting)
                node = w->parent[node];
            if (node != ROOT)
                break;
            w->order[n++] = meeting;
        }
    for (int node = w->n_stale ? w->stale[0] : ROOT; node != ROOT; node = w->parent[node])
        w->order[n++] = node;
    return n;
}

INLINE void write_instruction(__global int *row, int opcode, int result, int a, int pa, int b, int pb)
{
    row[INSTRUCTION_OPCODE] = opcode;
    row[INSTRUCTION_RESULT] = result;
    row[INSTRUCTION_A] = a;
    row[INSTRUCTION_PA] = pa;
    row[INSTRUCTION_B] = b;
    row[INSTRUCTION_PB] = pb;
    row[INSTRUCTION_C] = row[INSTRUCTION_PC] = 0;
}

/* The CLA below a node, or the tip. */
INLINE int find_cla(const Walker *w, int node)
{
    return node < w->n_taxa ? ~node : w->first_slot + 2 * node + w->slot_side[node];
}

/* Write the program that makes these nodes again, in their other slots, and the likelihood. */
INLINE void write_program(Walker *w, int n, __global int *row)
{
    for (int k = 0; k < n; k++, row += INSTRUCTION_WORDS) {
        const int node = w->order[k], a = w->left[node], b = w->right[node];
        w->slot_side[node] ^= 1;
        write_instruction(row, NEWVIEW, find_cla(w, node), find_cla(w, a), find_place(w, a), find_cla(w, b), find_place(w, b));
    }
    const int top = w->left[ROOT];
    write_instruction(row, EVALUATE, 0, ~ROOT, 0, find_cla(w, top), find_place(w, top));
}

/* Copy or bring back the rows of the tree. */
INLINE void copy_tree(__global const int *from, __global int *to, int n_nodes)
{
    for (int k = 0; k < 3 * n_nodes; k++)
        to[k] = from[k];
}

/* Bring back the sides that a proposal has changed. */
INLINE void undo(Walker *w, int n_made)
{
    for (int k = 0; k < n_made; k++)
        w->slot_side[w->order[k]] ^= 1;
    for (int k = 0; k < w->n_changed; k++)
        w->place_side[w->changed[k]] ^= 1;
    for (int node = 1; w->n_changed < 0 && node < w->n_nodes; node++)
        w->place_side[node] ^= 1;
}

__attribute__((vec_type_hint(WIDEV)))     /* see traverse.cl */
__kernel void walk(
    __global REAL *clas,
    __global int *scales,
    const __global CODE *tips,
    const __global REAL *state_sets,
    const __global WIDE *weights,
    const __global REAL *model,
    const __global double *eigen,
    __global REAL *matrices,
    const __global uchar *at_tips,
    __global double *walk_lengths,
    __global int *trees,
    __global double *walkers,
    const __global ulong *seeds,
    __global int *walk_program,
    __global int *walk_tracks,
    const __global int *spans,
    const __global int *used_blocks,
    const __global int *sum_tree,
    __global WIDE_SUM *partial,
    __global int *bad_pattern,
    const int n_steps_walked,
    const int n_walkers,
    const int walker_slots,                 /* of each walker */
    const int n_spans,
    const int n_groups,
    const int n_made_rows,
    const int n_parts,
    const int n_taxa,
    const int tile_blocks,
    const ulong n_lanes,
    const ulong tile_stride,
    const ulong slot_stride)
{
    const int n_nodes = 2 * n_taxa - 2, n_places = 2 * n_nodes, most_rows = n_taxa - 1;
    for (int own = get_group_id(0); own < n_walkers; own += get_num_groups(0)) {
        __global int *rows = trees + (size_t)own * WALK_ROWS * n_nodes, *track = walk_tracks + own * TRACK_WORDS;
        __global int *own_program = walk_program + (size_t)own * most_rows * INSTRUCTION_WORDS;
        Walker walker = {
            .parent = rows + WALK_PARENT * n_nodes,
            .left = rows + WALK_LEFT * n_nodes,
            .right = rows + WALK_RIGHT * n_nodes,
            .slot_side = rows + WALK_SLOT_SIDE * n_nodes,
            .place_side = rows + WALK_PLACE_SIDE * n_nodes,
            .order = rows + WALK_ORDER * n_nodes,
            .lengths = walk_lengths + (size_t)own * n_places,
            .words = walkers + own * WALK_WORDS,
            .n_taxa = n_taxa,
            .n_nodes = n_nodes,
            .first_slot = own * walker_slots - 2 * n_taxa,
            .random = seeds[own],
        };
        Walker *w = &walker;
        __global double *words = w->words;
        w->least_length = words[WALK_LEAST_LENGTH];
        w->largest_length = words[WALK_LARGEST_LENGTH];
        track[TRACK_BEGIN] = track[TRACK_SLOT_SHIFT] = track[TRACK_PSET_SHIFT] = track[TRACK_VALUE_SHIFT] = 0;
        double prior = log_prior(w);
        w->n_changed = -1;                              /* all P matrices have to be made */
        for (int step = -1; step < n_steps_walked; step++) {   /* step -1 makes nothing else */
            int kind = 0;
            double ratio = 0.0;
            if (step >= 0) {
                const double drawn = draw(w) * words[WALK_BOUND + N_WALK_MOVES - 1];
                while (drawn >= words[WALK_BOUND + kind])
                    kind++;
                if (kind >= INTERCHANGE)
                    copy_tree(rows + WALK_PARENT * n_nodes, rows + WALK_OLD_PARENT * n_nodes, n_nodes);
                ratio = propose(w, kind);
                words[WALK_TRIED + kind] += 1.0;
            }
            int accepted = 0, n_made = 0;
            if (step < 0 || w->is_possible) {
                const int n = w->n_changed < 0 ? n_nodes : w->n_changed;
                for (int k = w->n_changed < 0; k < n; k++) {
                    const int place = find_place(w, w->n_changed < 0 ? k : w->changed[k]);
                    for (int part = 0; part < n_parts; part++)
                        for (int item = 0; item < N_COMPONENTS * SHARES; item++) {
                            const size_t pset = (size_t)own * n_parts + part;
                            const int c = item / SHARES;
                            make_branches(eigen + (pset * N_COMPONENTS + c) * EIGEN_VALUES, w->lengths + place, at_tips + place, 0, c,
                                item % SHARES * ITEM_COLUMNS, matrices + (pset * n_places + place) * BRANCH_VALUES, 0, 0, 0, 0, 0, 0);
                        }
                }
                if (step < 0)
                    continue;
                n_made = order_nodes(w);
                write_program(w, n_made, own_program);
                track[TRACK_END] = n_made + 1;
                words[WALK_NEWVIEWS] += n_made;
                words[WALK_EVALUATES] += 1.0;
                for (int s = 0; s < n_spans; s++) {
                    const __global int *span = spans + SPAN_WORDS * s;
                    const size_t pset = (size_t)own * n_parts + span[SPAN_PART];
                    const Task task = {
                        .clas = clas,
                        .scales = scales,
                        .tips = tips,
                        .state_sets = state_sets,
                        .weights = weights,
                        .model = model + pset * MODEL_REALS,
                        .matrices = matrices + pset * n_places * BRANCH_VALUES,
                        .program = own_program,
                        .track = track,
                        .span = span,
                        .used_blocks = used_blocks,
                        .sums = partial + (size_t)span[SPAN_GROUP] * n_walkers + own,
                        .bad_pattern = bad_pattern,
                        .keep = 1,
                        .n_taxa = n_taxa,
                        .tile_blocks = tile_blocks,
                        .n_lanes = n_lanes,
                        .tile_stride = tile_stride,
                        .slot_stride = slot_stride,
                        .has_zero_rates = find_zero_rates(model + pset * MODEL_REALS),
                    };
                    run_alone(&task);
                }
                for (int made = 0; made < n_made_rows; made++)
                    add_row(partial, sum_tree, n_groups, made, n_walkers, own);
                double lnl = 0.0;
                for (int part = 0; part < n_parts; part++)
                    lnl += partial[(size_t)(n_groups + n_made_rows - n_parts + part) * n_walkers + own];
                const double new_prior = log_prior(w);
                const double gain = words[WALK_LNL_POWER] * (lnl - words[WALK_LNL]) + words[WALK_PRIOR_POWER] * (new_prior - prior) + ratio;
                const double probability = isnan(gain) ? 0.0 : exp(min(0.0, gain));
                words[WALK_PROBABILITY + kind] += probability;
                accepted = draw(w) < probability;
                if (accepted) {
                    words[WALK_ACCEPTED + kind] += 1.0;
                    words[WALK_LNL] = lnl;
                    prior = new_prior;
                }
            }
            if (!accepted) {
                undo(w, n_made);
                if (kind >= INTERCHANGE)
                    copy_tree(rows + WALK_OLD_PARENT * n_nodes, rows + WALK_PARENT * n_nodes, n_nodes);
            }
        }
    }
}
