/* peaks: the peak rates of a device, with which `plltool bench` compares its throughput.
 *
 *   copy            target = source, one block after another; counts the bytes read and those written
 *   multiply_adds   x_k = x_k * factor + term for PEAK_CHAINS independent k, which stay in registers
 *
 * Work: as in traverse.cl, a work-group is one work-item that owns whole vectors, or VW work-items that own a lane each.
 * In `copy` a work-group takes a run of consecutive blocks; arrays are REAL [block][lane], larger than a cache.
 * Compiled with layout.h in front, whose macros come from Layout.macros. Host: plltool/engine/opencl/peaks.py.
 * Test: tests/engine/test_peaks.py. There is no twin in numpy, because there is nothing to compute.
 */

__kernel void copy(const __global REAL *source, __global REAL *target, const ulong group_blocks)
{
    const size_t first = get_group_id(0) * group_blocks;
    for (size_t block = first; block < first + group_blocks; block++)
        ((__global REALV *)target)[block * STRIDE + LANE] = ((const __global REALV *)source)[block * STRIDE + LANE];
}

__kernel void multiply_adds(__global REAL *out, const REAL factor, const REAL term, const int rounds)
{
    REALV x[PEAK_CHAINS];
    #pragma unroll
    for (int k = 0; k < PEAK_CHAINS; k++)
        x[k] = (REALV)((REAL)k);
    for (int n = 0; n < rounds; n++) {
        #pragma unroll
        for (int k = 0; k < PEAK_CHAINS; k++)
            x[k] = x[k] * factor + term;
    }
    REALV sum = x[0];
    #pragma unroll
    for (int k = 1; k < PEAK_CHAINS; k++)
        sum += x[k];
    ((__global REALV *)out)[get_group_id(0) * STRIDE + LANE] = sum;     /* so that the compiler leaves nothing out */
}
