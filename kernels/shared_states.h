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
 * Local memory holds the task and the instruction's job (traverse.cl, job.h). Besides, it is used by one of these at a time:
 *   products   REAL [column][PADDED_STATES], REAL [column][lane]
 *   terms      SUM [worker][lane]
 *   lanes      WIDE [2][row of COLUMN_TILE][lane, one more against bank conflicts]
 * A CLA is read and written in global memory. A NEWVIEW may overwrite the CLA that it reads: the barrier after the reads has
 * a global fence, so that all come before the first write. The barrier at the end of an instruction shows the CLA to the
 * other workers.
 *
 * Registers: compilers keep an array in registers only if they know every index, so products and sums move through fixed
 * places, and loops that load numbers ahead are not unrolled. `scripts/gpu/gpu_registers.py` shows what a change does.
 *
 * Functions are INLINE throughout: PyPI's PoCL 3.0 may end the process where one of their own takes local memory.
 *
 * Macros from the host: STATE_WORKERS, OWN_STATES, COLUMN_TILE, SHARED_DOUBLES, JOB_BYTES (Layout.macros).
 * Twin: numpy_engine.py. Tests: tests/engine/test_shared_states.py, test_many_states.py.
 */

#if SHARED_STATES
#define ITEM ((int)get_local_id(0))
#define WORKER (ITEM / VW)
#define FIRST_STATE (WORKER * OWN_STATES)
#define PADDED_STATES (STATE_WORKERS * OWN_STATES)
#define LANE_STRIDE (VW + 1)
/* The most products and sums over states of an instruction that this program can run. */
#define MAX_PRODUCTS (CAN(TRIPLET) ? 9 : CAN(DERIVATIVE) && !REVERSIBLE ? 3 : 2)
#define MAX_SUMS (CAN(TRIPLET) ? TRIPLET_VALUES : CAN(DERIVATIVE) ? DERIVATIVE_VALUES : 1)
/* Whether all products of an instruction are those of a P matrix, or its slopes, with the end b of the branch. */
#define ACROSS_BRANCH(op) (IS(op, EVALUATE) || IS(op, MASS_GRADIENT) || (IS(op, DERIVATIVE) && !REVERSIBLE))
#define OWNS(r) (FIRST_STATE < N_STATES - (r))      /* whether own state r is no padding */

/* How many products an instruction needs for each component. */
INLINE int count_products(int op)
{
    if (IS(op, DERIVATIVE) && !REVERSIBLE)
        return 3;
    return IS(op, TRIPLET) ? MAX_PRODUCTS : IS(op, PROPAGATE) || IS(op, EVALUATE) || IS(op, MASS_GRADIENT) ? 1 : 2;
}

/* How many sums over states an instruction makes. */
INLINE int count_sums(int op)
{
    if (IS(op, TRIPLET) || IS(op, DERIVATIVE))
        return IS(op, TRIPLET) ? TRIPLET_VALUES : DERIVATIVE_VALUES;
    return IS(op, NEWVIEW) || IS(op, EVALUATE) || IS(op, INSERT);
}

/* Which operand a product takes: 0, 1 or 2 for a, b or c. */
INLINE int product_end(int op, int k)
{
    return IS(op, TRIPLET) ? k / 3 : ACROSS_BRANCH(op) ? 1 : k;
}

INLINE const __global REAL *product_table(const JOB_SPACE Job *job, int op, int component, int k)
{
    if ((IS(op, DERIVATIVE) && REVERSIBLE) || IS(op, RATE_MATRIX_GRADIENT))
        return job->model + component * MODEL_VALUES + N_STATES + k * MATRIX_VALUES;
    const int which = product_end(op, k);
    const int order = IS(op, TRIPLET) || IS(op, DERIVATIVE) ? k % 3 : 0;
    const __global REAL *p = which == 0 ? job->pa : which == 1 ? job->pb : job->pc;
    const __global REAL *q = which == 0 ? job->qa : which == 1 ? job->qb : job->qc;
    return (order ? q + (order - 1) * MATRIX_REALS : p) + component * MATRIX_VALUES;
}

/* The number of own state r, 0 for padding. A constant offset from a pointer takes no register. */
INLINE SUM own_value(const __global REAL *values, int r)
{
    return OWNS(r) ? (SUM)(values + FIRST_STATE)[r] : 0;
}

INLINE REAL operand_entry(const JOB_SPACE Operand *o, int block, int component, int state, int lane)
{
    if (o->is_tip)
        return o->state_sets[(size_t)o->code[(size_t)block * VW + lane] * N_STATES + state];
    return o->cla[((size_t)block * BLOCK_REALS + component * N_STATES + state) * VW + lane];
}

INLINE SUM own_entry(const JOB_SPACE Operand *o, int block, int component, int r)
{
    if (!OWNS(r))
        return 0;
    if (o->is_tip)
        return (SUM)(o->state_sets + (size_t)o->code[(size_t)block * VW + LANE] * N_STATES + FIRST_STATE)[r];
    return (SUM)(o->cla + ((size_t)block * BLOCK_REALS + component * N_STATES + FIRST_STATE) * VW + LANE)[r * VW];
}

/* How many columns of M a product needs: none where it is itself a column in every lane. */
INLINE int count_columns(const JOB_SPACE Operand *o, int block)
{
    int largest = 0;
    if (o->is_tip)
        #pragma unroll 4
        for (int l = 0; l < VW; l++)
            largest = max(largest, (int)o->code[(size_t)block * VW + l]);
    return o->is_tip && largest <= N_STATES ? 0 : N_STATES;
}

/* Columns first .. first + n - 1 of M, padded, and these states of x. */
INLINE void load_columns(const __global REAL *table, const JOB_SPACE Operand *o, int block, int component, int first, int n,
    __local REAL *columns, __local REAL *x)
{
    #pragma unroll 1
    for (int e = ITEM; e < n * PADDED_STATES; e += GROUP_ITEMS) {
        const int i = e % PADDED_STATES, j = first + e / PADDED_STATES;
        columns[e] = i < N_STATES ? table[j * N_STATES + i] : 0;
    }
    #pragma unroll 1
    for (int e = ITEM; e < n * VW; e += GROUP_ITEMS)
        x[e] = operand_entry(o, block, component, first + e / VW, e % VW);
}

/* Own rows of the columns times x, added to y. */
INLINE void add_columns(const __local REAL *columns, const __local REAL *x, int n, SUM *y)
{
    #pragma unroll 1
    for (int j = 0; j < n; j++) {
        const SUM xj = x[j * VW + LANE];
        #pragma unroll
        for (int r = 0; r < OWN_STATES; r++)
            y[r] = columns[j * PADDED_STATES + FIRST_STATE + r] * xj + y[r];
    }
}

/* Product k of n is y[MAX_PRODUCTS - n + k]. */
#define PRODUCT(n, k) y[MAX_PRODUCTS - (n) + (k)]

/* Store a product at `place`. Arrays whose indices are known when a program is compiled stay in registers: so each product
 * takes the last place, and those before it move forward. The nine of TRIPLET are too many for registers. */
INLINE void keep_product(const SUM *product, int place, SUM y[][OWN_STATES])
{
    #pragma unroll
    for (int r = 0; r < OWN_STATES; r++) {
#if CAN(TRIPLET)
        y[place][r] = product[r];
#else
        #pragma unroll
        for (int k = 1; k < MAX_PRODUCTS; k++)
            y[k - 1][r] = y[k][r];
        y[MAX_PRODUCTS - 1][r] = product[r];
#endif
    }
}

/* Sum v of n is sum[MAX_SUMS - n + v] once all n are made: each is taken from the first place and put in the last. */
#define TOTAL(n, v) sum[MAX_SUMS - (n) + (v)]

INLINE void keep_total(SUM total, SUM *sum)
{
    #pragma unroll
    for (int v = 1; v < MAX_SUMS; v++)
        sum[v - 1] = sum[v];
    sum[MAX_SUMS - 1] = total;
}

/* The lane's product, where a tip looks it up. */
INLINE void look_up(const __global REAL *table, const JOB_SPACE Operand *o, int block, SUM *y)
{
    const int code = o->is_tip ? o->code[(size_t)block * VW + LANE] : N_STATES + 1;
    if (code <= N_STATES)
        #pragma unroll
        for (int r = 0; r < OWN_STATES; r++)
            y[r] = own_value(table + code * N_STATES, r);
}

/* Terms of the own states in the instruction's sums over one component. For a NEWVIEW, the last product becomes the result,
 * and the sum is its maximum. */
INLINE void make_terms(const JOB_SPACE Job *job, int op, int block, int component, SUM y[][OWN_STATES], SUM *sum)
{
    const __global REAL *m = job->model + component * MODEL_VALUES;
    const __global REAL *d = job->decay + component * 3 * N_STATES;
    #pragma unroll
    for (int v = 0; v < MAX_SUMS; v++)
        sum[v] = 0;
    #pragma unroll
    for (int r = 0; r < OWN_STATES; r++) {
        const SUM mass = own_value(m, r);
        if (IS(op, NEWVIEW)) {
            PRODUCT(1, 0)[r] = (REAL)(PRODUCT(2, 0)[r] * PRODUCT(2, 1)[r]);
            sum[0] = PRODUCT(1, 0)[r] > sum[0] ? PRODUCT(1, 0)[r] : sum[0];
        } else if (IS(op, EVALUATE)) {
            sum[0] = (mass * own_entry(&job->a, block, component, r)) * PRODUCT(1, 0)[r] + sum[0];
        } else if (IS(op, DERIVATIVE) && !REVERSIBLE) {
            #pragma unroll
            for (int v = 0; v < DERIVATIVE_VALUES; v++)
                sum[v] = (mass * own_entry(&job->a, block, component, r)) * PRODUCT(DERIVATIVE_VALUES, v)[r] + sum[v];
        } else if (IS(op, DERIVATIVE)) {
            const SUM s = PRODUCT(2, 0)[r] * PRODUCT(2, 1)[r];
            sum[0] = (mass * own_entry(&job->a, block, component, r)) * own_entry(&job->b, block, component, r) + sum[0];
            #pragma unroll
            for (int v = 0; v < DERIVATIVE_VALUES; v++)
                sum[v] = own_value(d + v * N_STATES, r) * s + sum[v];
        } else if (IS(op, INSERT)) {
            sum[0] = (mass * own_entry(&job->c, block, component, r)) * (PRODUCT(2, 0)[r] * PRODUCT(2, 1)[r]) + sum[0];
        } else if (IS(op, TRIPLET)) {
            const SUM a[3] = {PRODUCT(9, 0)[r], PRODUCT(9, 1)[r], PRODUCT(9, 2)[r]};
            const SUM b[3] = {PRODUCT(9, 3)[r], PRODUCT(9, 4)[r], PRODUCT(9, 5)[r]};
            const SUM s[3] = {PRODUCT(9, 6)[r], PRODUCT(9, 7)[r], PRODUCT(9, 8)[r]};
            add_triplet_terms(mass, a, b, s, sum);
        }
    }
}

/* Own states of a component of the CLA that an instruction makes, brought to order 1 if `largest` is below the threshold. */
INLINE void store_cla(const JOB_SPACE Job *job, const JOB_SPACE Output *output, int op, int block, int component, const SUM *y,
    REAL largest)
{
    const BITS taken = IS(op, NEWVIEW) ? power_to_take(largest) : 0;
    const REAL factor = power_of_two(-taken);
    __global REAL *own = output->cla + ((size_t)block * BLOCK_REALS + component * N_STATES + FIRST_STATE) * VW + LANE;
    #pragma unroll
    for (int r = 0; r < OWN_STATES; r++)
        if (OWNS(r))
            own[r * VW] = (REAL)y[r] * factor;
    if (WORKER == 0)
        output->scale[((size_t)block * N_COMPONENTS + component) * VW + LANE] =
            load_scale(&job->a, block, component) + (IS(op, NEWVIEW) ? load_scale(&job->b, block, component) : 0) + (int)taken;
}

/* A pattern's sums over components, at the scale of the largest component so far, whose count is `largest`. */
typedef struct {
    SUM sum[MAX_SUMS];
    int largest;
} Pattern;

/* Add a component. A component of rate 0, whose likelihoods are 0 or 1 and never scaled, is impossible where its ends have no
 * state in common; its count is then left out. */
INLINE void add_component(const JOB_SPACE Job *job, int op, int block, int component, const SUM *sum, Pattern *pattern,
    int *counts)
{
    int count = load_scale(&job->a, block, component) + load_scale(&job->b, block, component);
    if (IS(op, INSERT) || IS(op, TRIPLET))
        count += load_scale(&job->c, block, component);
    const SUM likelihood =
        IS(op, TRIPLET) ? TOTAL(TRIPLET_VALUES, 0) : IS(op, DERIVATIVE) ? TOTAL(DERIVATIVE_VALUES, 0) : TOTAL(1, 0);
    if (job->model[(component + 1) * MODEL_VALUES - 1] == 0 && !(likelihood > 0))
        count = IMPOSSIBLE;
    const int largest = max(count, pattern->largest);
    const SUM before = power_of_two(pattern->largest - largest), factor = power_of_two(count - largest);
    #pragma unroll
    for (int v = 0; v < MAX_SUMS; v++)
        pattern->sum[v] = pattern->sum[v] * before + sum[v] * factor;
    pattern->largest = largest;
    counts[component] = count;
}

/* The values of a pattern, not weighted. Those of EVALUATE are also stored in `site` where the host asks for them. */
INLINE void make_values(const JOB_SPACE Job *job, int op, int block, const Pattern *pattern, WIDE *values)
{
    const SUM *sum = pattern->sum;
    if (IS(op, DERIVATIVE)) {
        derivative_values(job, block, TOTAL(DERIVATIVE_VALUES, 0), TOTAL(DERIVATIVE_VALUES, 1), TOTAL(DERIVATIVE_VALUES, 2),
            pattern->largest, values);
    } else if (IS(op, TRIPLET)) {
        triplet_values(job, block, sum, pattern->largest, values);
    } else if (IS(op, EVALUATE) || IS(op, INSERT)) {
        values[0] = log_likelihood(job, block, TOTAL(1, 0), pattern->largest);
        if (IS(op, EVALUATE) && job->site && WORKER == 0)
            job->site[(size_t)block * VW + LANE] = values[0];
    }
}

/* Own rows of the two factors whose products a gradient sums over lanes. For RATE_MATRIX_GRADIENT they are the two ends of the
 * branch, for MASS_GRADIENT the pattern's share and its terms. */
INLINE void make_factors(const JOB_SPACE Job *job, int op, int block, int component, const Pattern *pattern, int count,
    SUM y[][OWN_STATES], WIDE *left, WIDE *right)
{
    const __global REAL *m = job->model + component * MODEL_VALUES;
    const SUM factor = power_of_two(count - pattern->largest);
    const WIDE share = load_weights(job, block) / (WIDE)pattern->sum[MAX_SUMS - 1];
    #pragma unroll
    for (int r = 0; r < OWN_STATES; r++) {
        if (IS(op, RATE_MATRIX_GRADIENT)) {
            left[r] = share * (WIDE)(PRODUCT(2, 0)[r] * factor);
            right[r] = (WIDE)PRODUCT(2, 1)[r];
        } else {
            left[r] = share;
            right[r] = (WIDE)((own_value(m, r) * (factor * own_entry(&job->a, block, component, r))) * PRODUCT(1, 0)[r]);
        }
    }
}

/* Own rows first .. first + COLUMN_TILE - 1 to local memory. */
INLINE void share_rows(const WIDE *own, int first, __local WIDE *rows)
{
    const int row = FIRST_STATE - first;
    __local WIDE *to = rows + row * LANE_STRIDE + LANE;
    #pragma unroll
    for (int r = 0; r < OWN_STATES; r++)
        if (row >= -r && row < COLUMN_TILE - r)
            to[r * LANE_STRIDE] = own[r];
}

/* The weights, one row, and the values first .. first + COLUMN_TILE - 1 to local memory: the factors of all others. */
INLINE void share_values(const JOB_SPACE Job *job, int block, const WIDE *values, int first, __local WIDE *left,
    __local WIDE *right)
{
    if (WORKER != 0)
        return;
    left[LANE] = load_weights(job, block);
    #pragma unroll
    for (int v = 0; v < MAX_SUMS; v++)
        if (v >= first && v < first + COLUMN_TILE)
            right[(v - first) * LANE_STRIDE + LANE] = values[v];
}

/* partial[a][b] of a tile of both, from the rows in local memory; times difference[a][b] where there are differences.
 * Loops with barriers call this. PyPI's PoCL 3.0 takes out of them a condition that is about the work-item alone, such as the end
 * of a loop that begins with ITEM, and then asks the first work-item only. */
INLINE void sum_lanes(const __local WIDE *left, const __local WIDE *right, int first_left, int first_right,
    int n_left, int n_right, const __global REAL *difference, int first, __global WIDE_SUM *partial)
{
    for (int k = 0; k < (COLUMN_TILE * COLUMN_TILE + GROUP_ITEMS - 1) / GROUP_ITEMS; k++) {
        const int e = k * GROUP_ITEMS + ITEM, row = e / COLUMN_TILE, column = e % COLUMN_TILE;
        const int a = first_left + row, b = first_right + column;
        if ((row < COLUMN_TILE) & (a < n_left) & (b < n_right)) {       /* one condition, see above */
            WIDE sum = 0;
            #pragma unroll 4
            for (int l = 0; l < VW; l++)
                sum = left[row * LANE_STRIDE + l] * right[column * LANE_STRIDE + l] + sum;
            if (difference)
                sum *= (WIDE)difference[a * N_STATES + b];
            partial[a * n_right + b] = first ? to_wide_sum(sum) : add_wide_sums(partial[a * n_right + b], to_wide_sum(sum));
        }
    }
}

/* One instruction on one tile.
 * The gradients need a pattern's likelihood first: step 0 is an EVALUATE that leaves no values, and each further step takes
 * one component, for each table of differences. All other instructions are one step. */
INLINE void run_instruction(const JOB_SPACE Job *job, const JOB_SPACE Output *output, __local WIDE_SUM *shared)
{
    const int op = output->op;
    const int from_likelihoods = IS(op, RATE_MATRIX_GRADIENT) || IS(op, MASS_GRADIENT);
    const int makes_cla = IS(op, NEWVIEW) || IS(op, PROPAGATE);
    const int n_tables = IS(op, RATE_MATRIX_GRADIENT) ? DIFFERENCE_TABLES : 1;
    const int n_steps = from_likelihoods ? 1 + n_tables * N_COMPONENTS : 1;
    __local REAL *columns = (__local REAL *)shared, *x = columns + COLUMN_TILE * PADDED_STATES;
    __local SUM *terms = (__local SUM *)shared;
    __local WIDE *left_rows = (__local WIDE *)shared, *right_rows = left_rows + COLUMN_TILE * LANE_STRIDE;
    for (int block = 0; block < BLOCKS(job); block++) {
        const int columns_a = count_columns(&job->a, block), columns_b = count_columns(&job->b, block);
        const int columns_c = CAN(TRIPLET) ? count_columns(&job->c, block) : 0;
        Pattern pattern;
        int counts[N_COMPONENTS];
        pattern.largest = IMPOSSIBLE;
        #pragma unroll
        for (int v = 0; v < MAX_SUMS; v++)
            pattern.sum[v] = 0;
        for (int step = 0; step < n_steps; step++) {
            const int task = from_likelihoods && step == 0 ? EVALUATE : op;
            const int made = step ? step - 1 : 0, begin = made % N_COMPONENTS, end = step ? begin + 1 : N_COMPONENTS;
            WIDE values[MAX_SUMS], left[OWN_STATES] = {0}, right[OWN_STATES] = {0};      /* else registers keep the last */
            #pragma unroll 1
            for (int c = begin; c < end; c++) {
                SUM y[MAX_PRODUCTS][OWN_STATES] = {{0}};
                #pragma unroll 1
                for (int k = 0; k < count_products(task); k++) {
                    const int which = product_end(task, k);
                    const JOB_SPACE Operand *o = which == 0 ? &job->a : which == 1 ? &job->b : &job->c;
                    const __global REAL *table = product_table(job, task, c, k);
                    const int n_columns = which == 0 ? columns_a : which == 1 ? columns_b : columns_c;
                    SUM product[OWN_STATES];
                    #pragma unroll
                    for (int r = 0; r < OWN_STATES; r++)
                        product[r] = 0;
                    for (int j = 0; j < n_columns; j += COLUMN_TILE) {
                        const int n = min(COLUMN_TILE, N_STATES - j);
                        load_columns(table, o, block, c, j, n, columns, x);
                        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
                        add_columns(columns, x, n, product);
                        barrier(CLK_LOCAL_MEM_FENCE);
                    }
                    look_up(table, o, block, product);
                    keep_product(product, MAX_PRODUCTS - count_products(task) + k, y);
                }
                SUM sum[MAX_SUMS];
                make_terms(job, task, block, c, y, sum);
                #pragma unroll 1
                for (int v = 0; v < count_sums(task); v++) {
                    terms[ITEM] = sum[0];
                    barrier(CLK_LOCAL_MEM_FENCE);
                    SUM total = 0;
                    for (int w = 0; w < STATE_WORKERS; w++) {
                        const SUM term = terms[w * VW + LANE];
                        total = IS(task, NEWVIEW) ? (term > total ? term : total) : total + term;
                    }
                    keep_total(total, sum);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
                if (makes_cla)
                    store_cla(job, output, task, block, c, PRODUCT(1, 0), (REAL)TOTAL(1, 0));
                else if (step == 0)
                    add_component(job, task, block, c, sum, &pattern, counts);
                else
                    make_factors(job, task, block, c, &pattern, counts[c], y, left, right);
            }
            if (!from_likelihoods)
                make_values(job, op, block, &pattern, values);
            const int n_left = makes_cla || task != op ? 0 : IS(op, RATE_MATRIX_GRADIENT) ? N_STATES : 1;
            const int n_right = from_likelihoods ? N_STATES : count_sums(op);
            const __global REAL *difference =
                IS(op, RATE_MATRIX_GRADIENT) ? job->differences + (size_t)made * N_STATES * N_STATES : 0;
            __global WIDE_SUM *sums = output->partial + (size_t)made * n_left * n_right;
            for (int a = 0; a < n_left; a += COLUMN_TILE)
                for (int b = 0; b < n_right; b += COLUMN_TILE) {
                    if (from_likelihoods) {
                        share_rows(left, a, left_rows);
                        share_rows(right, b, right_rows);
                    } else {
                        share_values(job, block, values, b, left_rows, right_rows);
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                    sum_lanes(left_rows, right_rows, a, b, n_left, n_right, difference, output->begins && block == 0, sums);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}
#endif
