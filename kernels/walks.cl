/* walk: chains that walk through the space of trees, many moves (`walk_moves.h`) in one launch.
 *
 * Work: a work-group, which is one work-item, for each walker, or it takes several, one after another. It takes all tiles of all parts
 * through the NEWVIEWs that a proposal asks for, by the instructions of `traverse`. For CPU devices.
 *
 * Arrays:
 *   trees   int [walker][WALK_ROWS][node], see WalkRow in plltool/engine/contract.py
 *   walkers double [walker][WALK_WORDS], see WalkWord
 *   seeds   ulong [walker]
 *   split_weights double [table][N_SPLIT_KEYS], see `SplitWeights` in topology_moves.py; as many walkers have each table
 *   walk_lengths double [walker][set][side][node], of the branch above each node; its P matrix has the same place in each P set
 *   walk_program int [walker][n_taxa - 1][INSTRUCTION_WORDS], walk_tracks int [walker][TRACK_WORDS]: room for what a walker asks
 */

/* The logarithm of the prior density of all lengths, up to a constant, see `GammaDirichlet` and `Exponential` in priors.py. */
INLINE double log_prior(const Walker *w)
{
    const double at_tips = w->words[WALK_TIP_POWER], inner = w->words[WALK_INNER_POWER];
    double sum = 0.0;
    for (int set = 0; set < w->n_sets; set++) {
        double whole = 0.0, powers = 0.0;
        for (int node = 1; node < w->n_nodes; node++) {
            const double length = length_of(w, set, node);
            whole += length;
            if (at_tips != 0.0 || inner != 0.0)
                powers += (node < w->n_taxa || node == w->left[ROOT] ? at_tips : inner) * log(length);
        }
        sum += powers + w->words[WALK_TREE_POWER] * log(whole) - w->words[WALK_RATE] * whole;
    }
    return sum;
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

/* Write the program that makes the nodes in `order` again, in their other slots, and the likelihood. */
INLINE void write_program(Walker *w)
{
    __global int *row = w->program;
    for (int k = 0; k < w->n_made; k++, row += INSTRUCTION_WORDS) {
        const int node = w->order[k], a = w->left[node], b = w->right[node];
        w->slot_side[node] ^= 1;
        write_instruction(row, NEWVIEW, find_cla(w, node), find_cla(w, a), find_place(w, a), find_cla(w, b), find_place(w, b));
    }
    const int top = w->left[ROOT];
    write_instruction(row, EVALUATE, 0, ~ROOT, 0, find_cla(w, top), find_place(w, top));
}

/* Copy the rows of the tree from `from` on to those from `to` on. */
INLINE void copy_tree(Walker *w, int from, int to)
{
    __global int *rows = w->parent - WALK_PARENT * w->n_nodes;
    for (int k = 0; k < 3 * w->n_nodes; k++)
        rows[to * w->n_nodes + k] = rows[from * w->n_nodes + k];
}

/* Bring back the sides that a proposal has changed. */
INLINE void undo(Walker *w)
{
    for (int k = 0; k < w->n_made; k++)
        w->slot_side[w->order[k]] ^= 1;
    for (int k = 0; k < w->n_changed; k++)
        w->place_side[w->changed[k]] ^= 1;
    for (int node = 1; w->n_changed < 0 && node < w->n_nodes; node++)
        w->place_side[node] ^= 1;
}

/* Make the P matrices of all parts at a place. */
INLINE void make_place(const Walker *w, int place)
{
    const int n_places = 2 * w->n_nodes;
    for (int part = 0; part < w->n_parts; part++)
        for (int item = 0; item < N_COMPONENTS * SHARES; item++) {
            const int c = item / SHARES, set = w->n_sets > 1 ? part : 0;
            make_branches(w->eigen + ((size_t)part * N_COMPONENTS + c) * EIGEN_VALUES, w->lengths + set * n_places + place,
                w->at_tips + place, 0, c, item % SHARES * ITEM_COLUMNS, w->matrices + ((size_t)part * n_places + place) * BRANCH_VALUES, 0, 0, 0, 0, 0, 0, 0);
        }
}

/* Make those of the branches that a proposal changes. */
INLINE void make_changed(const Walker *w)
{
    const int all = w->n_changed < 0, n = all ? w->n_nodes : w->n_changed;
    for (int k = all; k < n; k++)
        make_place(w, find_place(w, all ? k : w->changed[k]));
}

/* Take the tiles of a span through the program. */
INLINE void run_span(Walker *w, const __global int *span)
{
    Task *task = &w->task;
    const int part = span[SPAN_PART];
    if (part != w->task_part) {
        w->task_part = part;
        task->model = w->model + (size_t)part * MODEL_REALS;
        task->matrices = w->matrices + (size_t)part * 2 * w->n_nodes * BRANCH_VALUES;
        task->has_zero_rates = find_zero_rates(task->model);
    }
    task->span = span;
    task->sums = w->partial + (size_t)span[SPAN_GROUP] * w->n_walkers + w->own;
    run_alone(task);
}

/* The likelihood of a proposal, whose CLAs are made. */
INLINE double find_lnl(Walker *w)
{
    make_changed(w);
    w->n_made = order_nodes(w);
    write_program(w);
    w->track[TRACK_END] = w->n_made + 1;
    w->words[WALK_NEWVIEWS] += w->n_made;
    w->words[WALK_EVALUATES] += 1.0;
    for (int s = 0; s < w->n_spans; s++)
        run_span(w, w->spans + SPAN_WORDS * s);
    for (int made = 0; made < w->n_made_rows; made++)
        add_row(w->partial, w->sum_tree, w->n_groups, made, w->n_walkers, w->own);
    double lnl = 0.0;
    for (int part = 0; part < w->n_parts; part++)
        lnl += w->partial[(size_t)(w->n_groups + w->n_made_rows - w->n_parts + part) * w->n_walkers + w->own];
    return lnl;
}

/* Whether a proposal of some kind is accepted, given the logarithm of its Hastings ratio. */
INLINE int accept(Walker *w, int kind, double ratio)
{
    __global double *words = w->words;
    const double lnl = find_lnl(w), new_prior = log_prior(w);
    const double gain = words[WALK_LNL_POWER] * (lnl - words[WALK_LNL]) + words[WALK_PRIOR_POWER] * (new_prior - w->prior) + ratio;
    const double probability = isnan(gain) ? 0.0 : exp(min(0.0, gain));
    words[WALK_PROBABILITY + kind] += probability;
    if (draw(w) >= probability)
        return 0;
    words[WALK_ACCEPTED + kind] += 1.0;
    words[WALK_LNL] = lnl;
    w->prior = new_prior;
    return 1;
}

/* Find the keys of the nodes in `order`. */
INLINE void find_keys(Walker *w)
{
    for (int k = 0; k < w->n_made; k++) {
        const int node = w->order[k];
        w->keys[node] = w->keys[w->left[node]] ^ w->keys[w->right[node]];
    }
}

/* Make a move, of a kind that is drawn. */
INLINE void make_move(Walker *w)
{
    const double drawn = draw(w) * w->words[WALK_BOUND + N_WALK_MOVES - 1];
    int kind = 0;
    while (drawn >= w->words[WALK_BOUND + kind])
        kind++;
    if (kind >= INTERCHANGE)
        copy_tree(w, WALK_PARENT, WALK_OLD_PARENT);
    const double ratio = propose(w, kind);
    w->words[WALK_TRIED + kind] += 1.0;
    if (w->is_possible && accept(w, kind, ratio)) {
        if (kind >= INTERCHANGE)
            find_keys(w);
        return;
    }
    undo(w);
    if (kind >= INTERCHANGE)
        copy_tree(w, WALK_OLD_PARENT, WALK_PARENT);
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
    const __global double *split_weights,
    __global int *walk_program,
    __global int *walk_tracks,
    const __global int *spans,
    const __global int *used_blocks,
    const __global int *sum_tree,
    __global WIDE_SUM *partial,
    __global int *bad_pattern,
    const int n_steps_walked,
    const int n_walkers,
    const int n_split_tables,
    const int walker_slots,                 /* of each walker */
    const int n_spans,
    const int n_groups,
    const int n_made_rows,
    const int n_parts,
    const int n_length_sets,                /* 1, or as many as parts */
    const int n_taxa,
    const int tile_blocks,
    const ulong n_lanes,
    const ulong tile_stride,
    const ulong slot_stride)
{
    const int n_nodes = 2 * n_taxa - 2;
    for (int own = get_group_id(0); own < n_walkers; own += get_num_groups(0)) {
        __global int *rows = trees + (size_t)own * WALK_ROWS * n_nodes, *track = walk_tracks + own * TRACK_WORDS;
        __global int *program = walk_program + (size_t)own * (n_taxa - 1) * INSTRUCTION_WORDS;
        __global double *words = walkers + own * WALK_WORDS;
        const size_t pset = (size_t)own * n_parts;      /* the first one */
        Walker walker = {
            .parent = rows + WALK_PARENT * n_nodes,
            .left = rows + WALK_LEFT * n_nodes,
            .right = rows + WALK_RIGHT * n_nodes,
            .slot_side = rows + WALK_SLOT_SIDE * n_nodes,
            .place_side = rows + WALK_PLACE_SIDE * n_nodes,
            .keys = rows + WALK_KEY * n_nodes,
            .split_weights = split_weights + own / (n_walkers / n_split_tables) * N_SPLIT_KEYS,
            .order = rows + WALK_ORDER * n_nodes,
            .lengths = walk_lengths + (size_t)own * n_length_sets * 2 * n_nodes,
            .words = words,
            .n_taxa = n_taxa, .n_nodes = n_nodes, .n_sets = n_length_sets, .first_slot = own * walker_slots - 2 * n_taxa,
            .least_length = words[WALK_LEAST_LENGTH], .largest_length = words[WALK_LARGEST_LENGTH],
            .n_changed = -1, .n_stale = -1,
            .random = seeds[own],
            .eigen = eigen + pset * N_COMPONENTS * EIGEN_VALUES,
            .model = model + pset * MODEL_REALS,
            .matrices = matrices + pset * 2 * n_nodes * BRANCH_VALUES,
            .at_tips = at_tips,
            .program = program, .track = track, .spans = spans, .sum_tree = sum_tree, .partial = partial,
            .own = own, .n_walkers = n_walkers, .n_parts = n_parts, .n_spans = n_spans, .n_groups = n_groups,
            .n_made_rows = n_made_rows,
            .task = {
                .clas = clas, .scales = scales, .tips = tips, .state_sets = state_sets, .weights = weights,
                .program = program, .track = track, .used_blocks = used_blocks, .bad_pattern = bad_pattern,
                .keep = 1, .n_taxa = n_taxa, .tile_blocks = tile_blocks,
                .n_lanes = n_lanes, .tile_stride = tile_stride, .slot_stride = slot_stride,
            },
            .task_part = -1,
        };
        track[TRACK_BEGIN] = track[TRACK_SLOT_SHIFT] = track[TRACK_PSET_SHIFT] = track[TRACK_VALUE_SHIFT] = 0;
        walker.prior = log_prior(&walker);
        make_changed(&walker);                          /* all of them, as the next two */
        walker.n_made = order_nodes(&walker);
        find_keys(&walker);
        for (int k = 0; k < n_steps_walked; k++)
            make_move(&walker);
    }
}
