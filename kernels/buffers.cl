/* buffers: what a client of explicit buffers asks of single CLAs, pattern by pattern, scaling counts undone.
 *
 *   log_maxima   maxima[k] = log of the largest entry of CLA slot_list[k], -INFINITY where it has none above 0
 *   dot_clas     products[k] = sum_c sum_i m_ci x_ci y_ki,c for x in slot_a and y_k in the slots first_b + k, all counts taken
 *                out but the largest, which is the last row of products
 *
 * Work: a work-group has VW work-items, each of which owns a lane, and takes group_blocks blocks; in `log_maxima` of one slot.
 * Sums are double whatever REAL is.
 * In `dot_clas` all slots from first_b on have the counts of first_b. A component whose products are all 0 is
 * left out when the largest count is chosen.
 * Arrays: clas, scales as in traverse.cl; masses [component][state]; maxima, products [row][lane].
 * Compiled with layout.h in front, whose macros come from Layout.macros. Host: plltool/engine/opencl/buffers.py.
 * Twin: plltool/engine/buffers.py. Test: tests/engine/test_buffers.py.
 */

#define MAX_PRODUCTS 3

/* Where block `block` of the CLA in `slot` lies, counted among all blocks. */
static inline size_t find_block(size_t block, int slot, int tile_blocks, ulong tile_stride, ulong slot_stride)
{
    return block / tile_blocks * tile_stride + slot * slot_stride + block % tile_blocks;
}

__kernel void log_maxima(
    const __global REAL *clas,
    const __global int *scales,
    const __global int *slot_list,
    __global double *maxima,
    const int tile_blocks,
    const ulong group_blocks,
    const ulong n_lanes,
    const ulong tile_stride,
    const ulong slot_stride)
{
    const size_t row = get_global_id(1), own = get_local_id(0), first = get_group_id(0) * group_blocks;
    for (size_t b = first; b < min(first + group_blocks, n_lanes / VW); b++) {
        const size_t at = find_block(b, slot_list[row], tile_blocks, tile_stride, slot_stride);
        const __global REAL *x = clas + at * N_COMPONENTS * N_STATES * VW + own;
        const __global int *scale = scales + at * N_COMPONENTS * VW + own;
        double largest = -INFINITY;
        for (int c = 0; c < N_COMPONENTS; c++) {
            REAL entry = 0;
            for (int i = 0; i < N_STATES; i++) {
                const REAL value = x[(c * N_STATES + i) * VW];
                entry = value > entry ? value : entry;
            }
            const double found = entry > 0 ? log((double)entry) + scale[c * VW] * M_LN2 : -INFINITY;
            largest = found > largest ? found : largest;
        }
        maxima[row * n_lanes + b * VW + own] = largest;
    }
}

__kernel void dot_clas(
    const __global REAL *clas,
    const __global int *scales,
    const __global double *masses,
    __global double *products,
    const int slot_a,
    const int first_b,
    const int n_products,
    const int tile_blocks,
    const ulong group_blocks,
    const ulong n_lanes,
    const ulong tile_stride,
    const ulong slot_stride)
{
    const size_t own_lane = get_local_id(0), start = get_group_id(0) * group_blocks;
    for (size_t block = start; block < min(start + group_blocks, n_lanes / VW); block++) {
        const size_t at_a = find_block(block, slot_a, tile_blocks, tile_stride, slot_stride);
        const size_t at_b = find_block(block, first_b, tile_blocks, tile_stride, slot_stride);
        const __global REAL *x = clas + at_a * N_COMPONENTS * N_STATES * VW + own_lane;
        const __global int *scale_a = scales + at_a * N_COMPONENTS * VW + own_lane;
        const __global int *scale_b = scales + at_b * N_COMPONENTS * VW + own_lane;
        double sum[MAX_PRODUCTS] = {0};
        int largest = INT_MIN;
        for (int c = 0; c < N_COMPONENTS; c++) {
            double own[MAX_PRODUCTS] = {0};
            int is_there = 0;
            for (int k = 0; k < n_products; k++) {
                const size_t at = find_block(block, first_b + k, tile_blocks, tile_stride, slot_stride);
                const __global REAL *y = clas + at * N_COMPONENTS * N_STATES * VW + own_lane;
                for (int i = 0; i < N_STATES; i++)
                    own[k] += masses[c * N_STATES + i] * x[(c * N_STATES + i) * VW] * y[(c * N_STATES + i) * VW];
                is_there |= own[k] != 0;
            }
            if (!is_there)
                continue;
            const int count = scale_a[c * VW] + scale_b[c * VW];
            for (int k = 0; k < n_products; k++)
                sum[k] = count > largest && largest != INT_MIN ? ldexp(sum[k], max(largest - count, -2000)) + own[k]
                    : sum[k] + ldexp(own[k], largest == INT_MIN ? 0 : max(count - largest, -2000));
            largest = max(largest, count);
        }
        for (int k = 0; k < n_products; k++)
            products[k * n_lanes + block * VW + own_lane] = sum[k];
        products[n_products * n_lanes + block * VW + own_lane] = largest == INT_MIN ? 0 : largest;
    }
}
