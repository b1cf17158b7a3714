/* peaks: the most that a device does of two things, which `plltool bench` compares its throughput with.
 *
 *   copy            to = from, a block after the other; counts the bytes read and those written
 *   multiply_adds   x_k = x_k * factor + term for CHAINS independent k, which stay in registers
 *
 * Work: as in traverse.cl a work-group is one work-item that owns whole vectors, or VW work-items that own a lane each.
 * Copy: a work-group takes a run of consecutive blocks; buffers REAL [block][lane], larger than a cache.
 * Compiled behind layout.h, whose macros come from Layout.macros. Host: plltool/engine/opencl/peaks.py.
 * Test: tests/engine/test_peaks.py. Numpy has no twin: there is nothing to compute.
 */

#define CHAINS 12      /* a fused multiply-add takes 4 cycles and a core starts 2 each; more would leave the registers */

__kernel void copy(const __global REAL *from, __global REAL *to, const ulong group_blocks)
{
    const size_t first = get_group_id(0) * group_blocks;
    for (size_t block = first; block < first + group_blocks; block++)
        ((__global REALV *)to)[block * STRIDE + LANE] = ((const __global REALV *)from)[block * STRIDE + LANE];
}

__kernel void multiply_adds(__global REAL *out, const REAL factor, const REAL term, const int rounds)
{
    REALV x[CHAINS];
    #pragma unroll
    for (int k = 0; k < CHAINS; k++)
        x[k] = (REALV)((REAL)k);
    for (int n = 0; n < rounds; n++) {
        #pragma unroll
        for (int k = 0; k < CHAINS; k++)
            x[k] = x[k] * factor + term;
    }
    REALV sum = x[0];
    #pragma unroll
    for (int k = 1; k < CHAINS; k++)
        sum += x[k];
    ((__global REALV *)out)[get_group_id(0) * STRIDE + LANE] = sum;     /* so that nothing is left out */
}
