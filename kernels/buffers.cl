/* buffers: what a client of explicit buffers asks of matrices, CLAs and scale factors. Only sums need to leave the device.
 *
 *   combine_matrices   made[k] = A B, A + B or the transpose of A, for the matrices A = pairs[0][k] and B = pairs[1][k]
 *   place_matrices     matrices[places[o][k]] = made[k], or its slope of order o = 1, 2, with tables for tips
 *   note_scales        steps, one after another, on rows of `logs`, which has a number for each lane: to = a + b, to = a - b, or
 *                      to = log of the largest entry of the CLA in slot a - b, 0 where it has none above 0; a row -1 is 0
 *   add_sites          for a query with operands x and y_k, sums s_k = sum_c sum_i m_ci x_ci y_ki,c. Of a pattern, values are
 *                      log s_0 less two rows of `logs` and plus a third, s_1 / s_0 and s_2 / s_0 - (s_1 / s_0)^2; for ratios,
 *                      s_1 / s_0 and its square. Likelihoods of the `n_sets` queries of an answer are added up. partial[group] gets
 *                      the weighted sums of values over the patterns of the group, site_rows the values
 *   add_products       partial[group][i S + j] = sum over queries and patterns of weight / L * sum_c m_ci x_ci y_cj, L from the site row
 *                      of the query
 *
 * Work: in the first two, a work-item for each matrix, component and row or order. In the others a work-group has VW work-items, each
 * of which owns a lane, and takes group_blocks blocks; in `add_sites` for one answer. In `note_scales` a CPU has one, which owns blocks
 * as vectors. In `add_products` a work-item takes a group and i.
 * Sums are double whatever REAL is. A component whose products are all 0 is left out when the largest count is chosen.
 * Arrays: clas, scales, tips, weights as in traverse.cl; made, slopes, matrices as in pmatrices.cl; masses [query][component][state];
 * logs, site_rows [row][lane]; partial [group][value]. Words of steps and queries: contract.py.
 * Compiled with layout.h, arithmetic.h and pmatrices.cl in front; macros come from Layout.macros. Host: plltool/engine/opencl/buffers.py.
 * Twin: plltool/engine/buffers.py. Test: tests/engine/test_buffers.py.
 */

#define MAX_PRODUCTS 3
#define ONES INT_MIN       /* the operand that is 1 everywhere */

__kernel void combine_matrices(
    const __global REAL *matrices,
    const __global int *pairs,
    __global REAL *made,
    const int combination,
    const int n_made)
{
    const int k = get_global_id(0), i = get_global_id(1), c = get_global_id(2);
    const __global REAL *a = matrices + (size_t)pairs[k] * BRANCH_VALUES + c * MATRIX_VALUES;
    const __global REAL *b = matrices + (size_t)pairs[n_made + k] * BRANCH_VALUES + c * MATRIX_VALUES;
    __global REAL *to = made + (size_t)k * BRANCH_VALUES + c * MATRIX_VALUES;
    double row_sum = 0;
    for (int j = 0; j < N_STATES; j++) {
        double value = 0;
        if (combination == PRODUCT_OF_TWO)
            for (int l = 0; l < N_STATES; l++)
                value += (double)a[ENTRY(i, l)] * b[ENTRY(l, j)];
        else
            value = combination == SUM_OF_TWO ? (double)a[ENTRY(i, j)] + b[ENTRY(i, j)] : a[ENTRY(j, i)];
        to[ENTRY(i, j)] = (REAL)value;
        row_sum += value;
    }
#if MANY_STATES
    to[ENTRY(i, N_STATES)] = (REAL)row_sum;
#endif
}

__kernel void place_matrices(
    const __global REAL *made,
    const __global REAL *slopes,
    const __global int *places,
    __global REAL *matrices,
    const int n_made)
{
    const int k = get_global_id(0), order = get_global_id(1), c = get_global_id(2), place = places[order * n_made + k];
    if (place < 0)
        return;
    const __global REAL *p = order ? slopes + ((size_t)k * 2 + order - 1) * MATRIX_REALS : made + (size_t)k * BRANCH_VALUES;
    __global REAL *of_place = matrices + (size_t)place * BRANCH_VALUES;
    for (int v = 0; v < MATRIX_VALUES; v++)
        of_place[c * MATRIX_VALUES + v] = p[c * MATRIX_VALUES + v];
#if TABLE_ROWS
    make_table(p + c * MATRIX_VALUES, (__global REALV *)(of_place + TABLES_START) + c * TABLE_ROWS);
#endif
}

/* Where block `block` of the CLA in `slot` lies, counted among all blocks. */
static inline size_t find_block(size_t block, int slot, int tile_blocks, ulong tile_stride, ulong slot_stride)
{
    return block / tile_blocks * tile_stride + slot * slot_stride + block % tile_blocks;
}

/* A row of logs in a block or a lane; 0 for row -1. */
static inline WIDEV load_logs(const __global double *logs, int row, ulong n_lanes, size_t block)
{
    return row < 0 ? (WIDEV)(0) : *((const __global WIDEV *)(logs + row * n_lanes) + block * STRIDE + LANE);
}

/* The largest entry of a block or a lane of a CLA, and its count; 0 if there is none above 0. */
static inline REALV find_largest(const __global REALV *x, const __global INTV *scale, INTV *count)
{
    REALV largest = 0;
    *count = 0;
    for (int c = 0; c < N_COMPONENTS; c++) {
        REALV entry = 0;
        for (int i = 0; i < N_STATES; i++) {
            const REALV value = x[(c * N_STATES + i) * STRIDE];
            entry = value > entry ? value : entry;
        }
        const INTV own = scale[c * STRIDE];
        const BITSV shift = CONVERT(BITS, clamp(own - *count, -EXPONENT_BIAS, EXPONENT_BIAS));
        const BITSV is_more = entry > 0 && (largest == 0 || entry * power_of_two(shift) > largest);
        largest = is_more ? entry : largest;
        *count = CONVERT(int, is_more) ? own : *count;
    }
    return largest;
}

__attribute__((vec_type_hint(WIDEV)))     /* see traverse.cl */
__kernel void note_scales(
    const __global REAL *clas,
    const __global int *scales,
    const __global int *steps,
    __global double *logs,
    const int n_steps,
    const int tile_blocks,
    const ulong group_blocks,
    const ulong n_lanes,
    const ulong tile_stride,
    const ulong slot_stride)
{
    const size_t first = get_group_id(0) * group_blocks;
    for (size_t block = first; block < min((ulong)(first + group_blocks), n_lanes / VW); block++)
        for (int step = 0; step < n_steps; step++) {
            const __global int *word = steps + step * STEP_WORDS;
            const int kind = word[STEP_KIND], a = word[STEP_A];
            const WIDEV b = load_logs(logs, word[STEP_B], n_lanes, block);
            WIDEV value;
            if (kind == LARGEST) {
                const size_t at = find_block(block, a, tile_blocks, tile_stride, slot_stride);
                INTV count;
                const WIDEV x = CONVERT(WIDE, find_largest((const __global REALV *)clas + at * BLOCK_REALS * STRIDE + LANE,
                    (const __global INTV *)scales + at * N_COMPONENTS * STRIDE + LANE, &count));
                value = x > 0 && x < (WIDE)INFINITY ? log_of(x) + CONVERT(WIDE, count) * LOG_2 - b : (WIDEV)(0);
            } else
                value = load_logs(logs, a, n_lanes, block) + (kind == ADD ? b : -b);
            *((__global WIDEV *)(logs + word[STEP_TO] * n_lanes) + block * STRIDE + LANE) = value;
        }
}

/* A row of logs in a lane; 0 for row -1. */
static inline double log_at(const __global double *logs, int row, ulong n_lanes, size_t lane)
{
    return row < 0 ? 0.0 : logs[row * n_lanes + lane];
}

/* An operand of a query in a lane: a slot, the tip ~operand, or 1 everywhere. */
typedef struct {
    const __global REAL *x;
    const __global int *scale;
    int code;
    int is_slot;
} Side;

static inline Side find_side(const __global REAL *clas, const __global int *scales, const __global CODE *tips, int operand, size_t block,
    size_t own, int n_taxa, int tile_blocks, ulong tile_stride, ulong slot_stride)
{
    const size_t at = find_block(block, max(operand, 0), tile_blocks, tile_stride, slot_stride);
    Side side = {clas + at * N_COMPONENTS * N_STATES * VW + own, scales + at * N_COMPONENTS * VW + own, 0, operand >= 0};
#if MANY_STATES
    side.code = N_STATES;
#else
    side.code = (1 << N_STATES) - 1;
#endif
    if (operand < 0 && operand != ONES)
        side.code = tips[(block / tile_blocks * n_taxa + ~operand) * tile_blocks * VW + block % tile_blocks * VW + own];
    return side;
}

static inline double side_entry(const Side *side, int c, int i)
{
    if (side->is_slot)
        return side->x[(c * N_STATES + i) * VW];
#if MANY_STATES
    return side->code == i || side->code >= N_STATES;
#else
    return side->code >> i & 1;
#endif
}

static inline int side_count(const Side *side, int c)
{
    return side->is_slot ? side->scale[c * VW] : 0;
}

/* The sums s_k over components, and the power of two that belongs to all of them. */
static inline int multiply_sides(const Side *x, const Side *y, int n, const __global double *masses, double *sum)
{
    int largest = INT_MIN;
    for (int k = 0; k < n; k++)
        sum[k] = 0;
    for (int c = 0; c < N_COMPONENTS; c++) {
        double own[MAX_PRODUCTS];
        const int count = side_count(x, c) + side_count(y, c);
        int is_there = 0;
        for (int k = 0; k < n; k++) {
            own[k] = 0;
            for (int i = 0; i < N_STATES; i++)
                own[k] += masses[c * N_STATES + i] * side_entry(x, c, i) * side_entry(y + k, c, i);
            const int more = side_count(y + k, c) - side_count(y, c);
            own[k] = more ? ldexp(own[k], clamp(more, -2000, 2000)) : own[k];
            is_there |= own[k] != 0;
        }
        if (!is_there)
            continue;
        const int shift = largest == INT_MIN || count == largest ? 0 : clamp(count - largest, -2000, 2000);
        for (int k = 0; k < n; k++)
            sum[k] = shift > 0 ? ldexp(sum[k], -shift) + own[k] : sum[k] + (shift ? ldexp(own[k], shift) : own[k]);
        largest = max(largest, count);
    }
    return largest == INT_MIN ? 0 : largest;
}

/* log(exp(a) + exp(b)) */
static inline double add_logs(double a, double b)
{
    const double most = fmax(a, b);
    return most == -INFINITY ? most : most + log1p(exp(fmin(a, b) - most));
}

__attribute__((reqd_work_group_size(VW, 1, 1)))
__kernel void add_sites(
    const __global REAL *clas,
    const __global int *scales,
    const __global CODE *tips,
    const __global WIDE *weights,
    const __global double *masses,
    const __global double *logs,
    const __global int *queries,
    __global double *site_rows,
    __global WIDE_SUM *partial,
    const int n_products,
    const int n_sets,
    const int of_ratios,
    const int want_site,
    const int first_value,
    const int n_values,
    const int n_taxa,
    const int tile_blocks,
    const ulong group_blocks,
    const ulong n_lanes,
    const ulong tile_stride,
    const ulong slot_stride)
{
    __local double shared[VW * MAX_PRODUCTS];
    const size_t own = get_local_id(0), group = get_group_id(0), first = group * group_blocks;
    const int answer = get_group_id(1), n_own = of_ratios ? 2 : n_products, value = first_value + answer * n_own;
    double total[MAX_PRODUCTS] = {0, 0, 0};
    for (size_t block = first; block < min((ulong)(first + group_blocks), n_lanes / VW); block++) {
        const size_t lane = block * VW + own;
        double found[MAX_PRODUCTS], sum[MAX_PRODUCTS];
        for (int set = 0; set < n_sets; set++) {
            const int query = answer * n_sets + set;
            const __global int *word = queries + query * QUERY_WORDS;
            Side y[MAX_PRODUCTS];
            const Side x = find_side(
                clas, scales, tips, word[QUERY_A], block, own, n_taxa, tile_blocks, tile_stride, slot_stride);
            for (int k = 0; k < n_products; k++)
                y[k] = find_side(clas, scales, tips, k ? word[QUERY_MORE] + k - 1 : word[QUERY_B], block, own, n_taxa,
                    tile_blocks, tile_stride, slot_stride);
            const int power = multiply_sides(&x, y, n_products, masses + query * N_COMPONENTS * N_STATES, sum);
            for (int k = 1; k < n_products; k++)
                found[k] = sum[k] / sum[0];
            if (of_ratios) {
                found[0] = found[1];
                found[1] = found[0] * found[0];
                continue;
            }
            const double lnl = log(sum[0]) + power * LOG_2 - log_at(logs, word[QUERY_LESS], n_lanes, lane)
                - log_at(logs, word[QUERY_LESS_TOO], n_lanes, lane) + log_at(logs, word[QUERY_PLUS], n_lanes, lane);
            found[0] = set ? add_logs(found[0], lnl) : lnl;
            if (n_products > 2)
                found[2] -= found[1] * found[1];
        }
        for (int k = 0; k < n_own; k++) {
            if (want_site)
                site_rows[(value + k) * n_lanes + lane] = found[k];
            total[k] += weights[lane] != 0 ? weights[lane] * found[k] : 0.0;
        }
    }
    for (int k = 0; k < n_own; k++)
        shared[k * VW + own] = total[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = own; k < n_own; k += VW) {
        double sum = 0;
        for (int l = 0; l < VW; l++)
            sum += shared[k * VW + l];
        partial[group * n_values + value + k] = sum;
    }
}

__kernel void add_products(
    const __global REAL *clas,
    const __global int *scales,
    const __global CODE *tips,
    const __global WIDE *weights,
    const __global double *masses,
    const __global int *queries,
    const __global double *site_rows,
    __global WIDE_SUM *partial,
    const int n_queries,
    const int n_values,
    const int n_taxa,
    const int tile_blocks,
    const ulong group_blocks,
    const ulong n_lanes,
    const ulong tile_stride,
    const ulong slot_stride)
{
    const size_t group = get_global_id(0), first = group * group_blocks;
    const int i = get_global_id(1);
    __global WIDE_SUM *row = partial + group * n_values + i * N_STATES;
    double sum[N_STATES];
    for (int j = 0; j < N_STATES; j++)
        sum[j] = 0;
    for (int query = 0; query < n_queries; query++) {
        const __global int *word = queries + query * QUERY_WORDS;
        const __global double *mass = masses + query * N_COMPONENTS * N_STATES, *lnl = site_rows + query * n_lanes;
        for (size_t lane = first * VW; lane < min((ulong)(first + group_blocks) * VW, n_lanes); lane++) {
            if (weights[lane] == 0)
                continue;
            const size_t block = lane / VW, own = lane % VW;
            const Side x = find_side(
                clas, scales, tips, word[QUERY_A], block, own, n_taxa, tile_blocks, tile_stride, slot_stride);
            const Side y = find_side(
                clas, scales, tips, word[QUERY_B], block, own, n_taxa, tile_blocks, tile_stride, slot_stride);
            for (int c = 0; c < N_COMPONENTS; c++) {
                const double factor = exp((side_count(&x, c) + side_count(&y, c)) * LOG_2 - lnl[lane]) * weights[lane]
                    * mass[c * N_STATES + i] * side_entry(&x, c, i);
                for (int j = 0; j < N_STATES; j++)
                    sum[j] += factor * side_entry(&y, c, j);
            }
        }
    }
    for (int j = 0; j < N_STATES; j++)
        row[j] = sum[j];
}
