/* One instruction on one tile where the work-items of a lane share its states: many states on a GPU.
 *
 * A work-group is VW lanes times STATE_WORKERS workers. A worker owns OWN_STATES consecutive states of every lane; the last
 * states of the last worker may be padding, whose numbers are 0. All instructions are the same step, so that barriers are in
 * loops that all work-items run equally often, and never in a branch:
 *
 *   products       y_k = M_k x_k, own rows only. COLUMN_TILE columns of M, which are consecutive in memory, and as many
 *                  rows of x are copied to local memory at a time; every column is read once per group and block. For a tip
 *                  with one state, or undetermined, y_k is a column of M (many_states.h), which is looked up.
 *   terms          what an instruction sums over states, or the maximum of a NEWVIEW: own states, then all workers in order
 *   components     added up at the scale of the largest one so far; a change of scale is a power of two
 *   lanes          partial[a][b] += sum over lanes of left_a right_b: weights and values, or both ends of a branch
 *
 * Local memory is used by one of these at a time:
 *   products   REAL [column][PADDED_STATES], REAL [column][lane]
 *   terms      SUM [worker][lane]
 *   lanes      double [2][row of COLUMN_TILE][lane, one more against bank conflicts]
 * A CLA is read and written in global memory. A NEWVIEW may overwrite the CLA that it reads: the barrier after the reads has
 * a global fence, so that all come before the first write. The barrier at the end of an instruction shows the CLA to the
 * other workers.
 *
 * Macros from the host: STATE_WORKERS, OWN_STATES, COLUMN_TILE, SHARED_DOUBLES (Layout.macros).
 * Twin: numpy_engine.py. Tests: tests/engine/test_shared_states.py, test_many_states.py.
 */

#if SHARED_STATES
#define GROUP_ITEMS (VW * STATE_WORKERS)
#define ITEM ((int)get_local_id(0))
#define WORKER (ITEM / VW)
#define FIRST_STATE (WORKER * OWN_STATES)
#define PADDED_STATES (STATE_WORKERS * OWN_STATES)
#define LANE_STRIDE (VW + 1)
#define MAX_PRODUCTS 9
/* Whether all products of an instruction are those of a P matrix, or its slopes, with the end b of the branch. */
#define ACROSS_BRANCH(op) ((op) == EVALUATE || (op) == MASS_GRADIENT || ((op) == DERIVATIVE && !REVERSIBLE))
#define OWN(state) min(FIRST_STATE + (state), N_STATES - 1)        /* so that padding reads within the array */

/* How many products an instruction needs for each component. */
static inline int count_products(int op)
{
    if (op == DERIVATIVE && !REVERSIBLE)
        return 3;
    return op == TRIPLET ? MAX_PRODUCTS : op == PROPAGATE || op == EVALUATE || op == MASS_GRADIENT ? 1 : 2;
}

/* How many sums over states an instruction makes. */
static inline int count_sums(int op)
{
    return op == TRIPLET ? TRIPLET_VALUES : op == DERIVATIVE ? DERIVATIVE_VALUES : op == NEWVIEW || op == EVALUATE || op == INSERT;
}

static inline Operand product_operand(const Job *job, int op, int k)
{
    const int which = op == TRIPLET ? k / 3 : ACROSS_BRANCH(op) ? 1 : k;
    return which == 0 ? job->a : which == 1 ? job->b : job->c;
}

static inline const __global REAL *product_table(const Job *job, int op, int component, int k)
{
    if ((op == DERIVATIVE && REVERSIBLE) || op == RATE_MATRIX_GRADIENT)
        return job->model + component * MODEL_VALUES + N_STATES + k * MATRIX_VALUES;
    const int which = op == TRIPLET ? k / 3 : ACROSS_BRANCH(op) ? 1 : k;
    const int order = op == TRIPLET || op == DERIVATIVE ? k % 3 : 0;
    const __global REAL *p = which == 0 ? job->pa : which == 1 ? job->pb : job->pc;
    const __global REAL *q = which == 0 ? job->qa : which == 1 ? job->qb : job->qc;
    return (order ? q + (order - 1) * MATRIX_REALS : p) + component * MATRIX_VALUES;
}

static inline REAL operand_entry(const Operand *o, int block, int component, int state, int lane)
{
    if (o->is_tip)
        return o->state_sets[(size_t)o->code[(size_t)block * VW + lane] * N_STATES + state];
    return o->cla[((size_t)block * BLOCK_REALS + component * N_STATES + state) * VW + lane];
}

static inline SUM own_entry(const Operand *o, int block, int component, int r)
{
    return FIRST_STATE + r < N_STATES ? (SUM)operand_entry(o, block, component, FIRST_STATE + r, LANE) : 0;
}

/* Whether the product is a column of M in every lane. */
static inline int all_look_up(const Operand *o, int block)
{
    int largest = 0;
    for (int l = 0; l < VW; l++)
        largest = max(largest, (int)o->code[(size_t)block * VW + l]);
    return largest <= N_STATES;
}

/* Columns first .. first + n - 1 of M, padded, and these states of x. */
static inline void load_columns(const __global REAL *table, const Operand *o, int block, int component, int first, int n,
    __local REAL *columns, __local REAL *x)
{
    for (int e = ITEM; e < n * PADDED_STATES; e += GROUP_ITEMS) {
        const int i = e % PADDED_STATES, j = first + e / PADDED_STATES;
        columns[e] = i < N_STATES ? table[j * N_STATES + i] : 0;
    }
    for (int e = ITEM; e < n * VW; e += GROUP_ITEMS)
        x[e] = operand_entry(o, block, component, first + e / VW, e % VW);
}

/* Own rows of the columns times x, added to y. */
static inline void add_columns(const __local REAL *columns, const __local REAL *x, int n, SUM *y)
{
    for (int j = 0; j < n; j++) {
        const SUM xj = x[j * VW + LANE];
        #pragma unroll
        for (int r = 0; r < OWN_STATES; r++)
            y[r] = columns[j * PADDED_STATES + FIRST_STATE + r] * xj + y[r];
    }
}

/* The lane's product, where a tip looks it up. */
static inline void look_up(const __global REAL *table, const Operand *o, int block, SUM *y)
{
    const int code = o->is_tip ? o->code[(size_t)block * VW + LANE] : N_STATES + 1;
    if (code <= N_STATES)
        for (int r = 0; r < OWN_STATES; r++)
            y[r] = FIRST_STATE + r < N_STATES ? table[code * N_STATES + FIRST_STATE + r] : 0;
}

/* Terms of the own states in the instruction's sums over one component. For a NEWVIEW, y[0] becomes the result, and the sum
 * is its maximum. */
static inline void make_terms(const Job *job, int op, int block, int component, SUM y[][OWN_STATES], SUM *sum)
{
    const __global REAL *m = job->model + component * MODEL_VALUES;
    const __global REAL *d = job->decay + component * 3 * N_STATES;
    for (int v = 0; v < TRIPLET_VALUES; v++)
        sum[v] = 0;
    for (int r = 0; r < OWN_STATES; r++) {
        const int i = OWN(r);
        if (op == NEWVIEW) {
            y[0][r] = (REAL)(y[0][r] * y[1][r]);
            sum[0] = y[0][r] > sum[0] ? y[0][r] : sum[0];
        } else if (op == EVALUATE) {
            sum[0] = (m[i] * own_entry(&job->a, block, component, r)) * y[0][r] + sum[0];
        } else if (op == DERIVATIVE && !REVERSIBLE) {
            for (int v = 0; v < DERIVATIVE_VALUES; v++)
                sum[v] = (m[i] * own_entry(&job->a, block, component, r)) * y[v][r] + sum[v];
        } else if (op == DERIVATIVE) {
            const SUM s = y[0][r] * y[1][r];
            sum[0] = (m[i] * own_entry(&job->a, block, component, r)) * own_entry(&job->b, block, component, r) + sum[0];
            for (int v = 0; v < DERIVATIVE_VALUES; v++)
                sum[v] = d[v * N_STATES + i] * s + sum[v];
        } else if (op == INSERT) {
            sum[0] = (m[i] * own_entry(&job->c, block, component, r)) * (y[0][r] * y[1][r]) + sum[0];
        } else if (op == TRIPLET) {
            const SUM a[3] = {y[0][r], y[1][r], y[2][r]};
            const SUM b[3] = {y[3][r], y[4][r], y[5][r]};
            const SUM s[3] = {y[6][r], y[7][r], y[8][r]};
            add_triplet_terms(m[i], a, b, s, sum);
        }
    }
}

/* Own states of a component of the CLA that an instruction makes, brought to order 1 if `largest` is below the threshold. */
static inline void store_cla(const Job *job, int op, int block, int component, const SUM *y, REAL largest, __global REAL *cla,
    __global int *scale)
{
    const BITS taken = op == NEWVIEW ? power_to_take(largest) : 0;
    const REAL factor = power_of_two(-taken);
    for (int r = 0; r < OWN_STATES; r++)
        if (FIRST_STATE + r < N_STATES)
            cla[((size_t)block * BLOCK_REALS + component * N_STATES + FIRST_STATE + r) * VW + LANE] = (REAL)y[r] * factor;
    if (WORKER == 0)
        scale[((size_t)block * N_COMPONENTS + component) * VW + LANE] =
            load_scale(&job->a, block, component) + (op == NEWVIEW ? load_scale(&job->b, block, component) : 0) + (int)taken;
}

/* A pattern's sums over components, at the scale of the largest component so far, whose count is `largest`. */
typedef struct {
    SUM sum[TRIPLET_VALUES];
    int largest;
    int count[N_COMPONENTS];
} Pattern;

/* Add a component. A component of rate 0, whose likelihoods are 0 or 1 and never scaled, is impossible where its ends have no
 * state in common; its count is then left out. */
static inline void add_component(const Job *job, int op, int block, int component, const SUM *sum, Pattern *pattern)
{
    int count = load_scale(&job->a, block, component) + load_scale(&job->b, block, component);
    if (op == INSERT || op == TRIPLET)
        count += load_scale(&job->c, block, component);
    if (job->model[(component + 1) * MODEL_VALUES - 1] == 0 && !(sum[0] > 0))
        count = IMPOSSIBLE;
    const int largest = max(count, pattern->largest);
    const SUM before = power_of_two(pattern->largest - largest), factor = power_of_two(count - largest);
    for (int v = 0; v < TRIPLET_VALUES; v++)
        pattern->sum[v] = pattern->sum[v] * before + sum[v] * factor;
    pattern->largest = largest;
    pattern->count[component] = count;
}

/* The values of a pattern, not weighted. Those of EVALUATE are also stored in `site` where the host asks for them. */
static inline void make_values(const Job *job, int op, int block, const Pattern *pattern, double *values)
{
    if (op == DERIVATIVE) {
        derivative_values(job, block, pattern->sum[0], pattern->sum[1], pattern->sum[2], pattern->largest, values);
    } else if (op == TRIPLET) {
        triplet_values(job, block, pattern->sum, pattern->largest, values);
    } else if (op == EVALUATE || op == INSERT) {
        values[0] = log_likelihood(job, block, pattern->sum[0], pattern->largest);
        if (op == EVALUATE && job->site && WORKER == 0)
            job->site[(size_t)block * VW + LANE] = values[0];
    }
}

/* Own rows of the two factors whose products are summed over lanes. For RATE_MATRIX_GRADIENT they are the two ends of the
 * branch, for MASS_GRADIENT the pattern's share and its terms, and for all others the weights (`share_weights`) and the values. */
static inline void make_factors(const Job *job, int op, int block, int component, const Pattern *pattern, SUM y[][OWN_STATES],
    const double *values, double *left, double *right)
{
    const __global REAL *m = job->model + component * MODEL_VALUES;
    const SUM factor = power_of_two(pattern->count[component] - pattern->largest);
    const double share = load_weights(job, block) / (double)pattern->sum[0];
    for (int r = 0; r < OWN_STATES; r++) {
        const int i = FIRST_STATE + r;
        if (op == RATE_MATRIX_GRADIENT) {
            left[r] = share * (double)(y[0][r] * factor);
            right[r] = (double)y[1][r];
        } else if (op == MASS_GRADIENT) {
            left[r] = share;
            right[r] = (double)((m[OWN(r)] * (factor * own_entry(&job->a, block, component, r))) * y[0][r]);
        } else {
            right[r] = i < TRIPLET_VALUES ? values[i] : 0;
        }
    }
}

/* Own rows first .. first + COLUMN_TILE - 1 to local memory. */
static inline void share_rows(const double *own, int first, __local double *rows)
{
    for (int r = 0; r < OWN_STATES; r++) {
        const int row = FIRST_STATE + r - first;
        if (row >= 0 && row < COLUMN_TILE)
            rows[row * LANE_STRIDE + LANE] = own[r];
    }
}

/* The weights, one row, to local memory. */
static inline void share_weights(const Job *job, int block, __local double *row)
{
    if (WORKER == 0)
        row[LANE] = load_weights(job, block);
}

/* partial[a][b] of a tile of both, from the rows in local memory; times difference[a][b] where there are differences. */
static inline void sum_lanes(const __local double *left, const __local double *right, int first_left, int first_right,
    int n_left, int n_right, const __global REAL *difference, int first, __global double *partial)
{
    for (int e = ITEM; e < COLUMN_TILE * COLUMN_TILE; e += GROUP_ITEMS) {
        const int row = e / COLUMN_TILE, column = e % COLUMN_TILE, a = first_left + row, b = first_right + column;
        if (a >= n_left || b >= n_right)
            continue;
        double sum = 0;
        for (int l = 0; l < VW; l++)
            sum = left[row * LANE_STRIDE + l] * right[column * LANE_STRIDE + l] + sum;
        if (difference)
            sum *= (double)difference[a * N_STATES + b];
        partial[a * n_right + b] = first ? sum : partial[a * n_right + b] + sum;
    }
}

/* One instruction on one tile: a CLA to `cla` and `scale`, or sums to `partial`, which begin with this tile if `first`.
 * The gradients need a pattern's likelihood first: step 0 is an EVALUATE that leaves no values, and each further step takes
 * one component, for each table of differences. All other instructions are one step. */
static inline void run_instruction(const Job *job, int op, __global REAL *cla, __global int *scale, __global double *partial,
    int first, __local double *shared)
{
    const int from_likelihoods = op == RATE_MATRIX_GRADIENT || op == MASS_GRADIENT, makes_cla = op == NEWVIEW || op == PROPAGATE;
    const int n_tables = op == RATE_MATRIX_GRADIENT ? DIFFERENCE_TABLES : 1;
    const int n_steps = from_likelihoods ? 1 + n_tables * N_COMPONENTS : 1;
    __local REAL *columns = (__local REAL *)shared, *x = columns + COLUMN_TILE * PADDED_STATES;
    __local SUM *terms = (__local SUM *)shared;
    __local double *left_rows = shared, *right_rows = shared + COLUMN_TILE * LANE_STRIDE;
    for (int block = 0; block < job->n_blocks; block++) {
        Pattern pattern;
        pattern.largest = IMPOSSIBLE;
        for (int v = 0; v < TRIPLET_VALUES; v++)
            pattern.sum[v] = 0;
        for (int step = 0; step < n_steps; step++) {
            const int task = from_likelihoods && step == 0 ? EVALUATE : op;
            const int made = step ? step - 1 : 0, begin = made % N_COMPONENTS, end = step ? begin + 1 : N_COMPONENTS;
            SUM y[MAX_PRODUCTS][OWN_STATES];
            for (int c = begin; c < end; c++) {
                for (int k = 0; k < count_products(task); k++) {
                    const Operand o = product_operand(job, task, k);
                    const __global REAL *table = product_table(job, task, c, k);
                    const int n_columns = o.is_tip && all_look_up(&o, block) ? 0 : N_STATES;
                    SUM product[OWN_STATES];
                    for (int r = 0; r < OWN_STATES; r++)
                        product[r] = 0;
                    for (int j = 0; j < n_columns; j += COLUMN_TILE) {
                        const int n = min(COLUMN_TILE, N_STATES - j);
                        load_columns(table, &o, block, c, j, n, columns, x);
                        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
                        add_columns(columns, x, n, product);
                        barrier(CLK_LOCAL_MEM_FENCE);
                    }
                    look_up(table, &o, block, product);
                    for (int r = 0; r < OWN_STATES; r++)
                        y[k][r] = product[r];
                }
                SUM sum[TRIPLET_VALUES];
                make_terms(job, task, block, c, y, sum);
                for (int v = 0; v < count_sums(task); v++) {
                    terms[ITEM] = sum[v];
                    barrier(CLK_LOCAL_MEM_FENCE);
                    SUM total = 0;
                    for (int w = 0; w < STATE_WORKERS; w++) {
                        const SUM term = terms[w * VW + LANE];
                        total = task == NEWVIEW ? (term > total ? term : total) : total + term;
                    }
                    sum[v] = total;
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
                if (makes_cla)
                    store_cla(job, task, block, c, y[0], (REAL)sum[0], cla, scale);
                else if (step == 0)
                    add_component(job, task, block, c, sum, &pattern);
            }
            double values[TRIPLET_VALUES], left[OWN_STATES], right[OWN_STATES];
            if (!from_likelihoods)
                make_values(job, op, block, &pattern, values);
            make_factors(job, task, block, begin, &pattern, y, values, left, right);
            const int n_left = makes_cla || task != op ? 0 : op == RATE_MATRIX_GRADIENT ? N_STATES : 1;
            const int n_right = from_likelihoods ? N_STATES : count_sums(op);
            const __global REAL *difference = op == RATE_MATRIX_GRADIENT ? job->differences + (size_t)made * N_STATES * N_STATES : 0;
            __global double *sums = partial + (size_t)made * n_left * n_right;
            for (int a = 0; a < n_left; a += COLUMN_TILE)
                for (int b = 0; b < n_right; b += COLUMN_TILE) {
                    if (from_likelihoods)
                        share_rows(left, a, left_rows);
                    else
                        share_weights(job, block, left_rows);
                    share_rows(right, b, right_rows);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    sum_lanes(left_rows, right_rows, a, b, n_left, n_right, difference, first && block == 0, sums);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}
#endif
