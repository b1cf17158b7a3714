/* Types and addressing shared by all kernels.
 *
 * Macros that the host defines (plltool/engine/layout.py, Layout.macros):
 *   N_STATES, N_COMPONENTS   shape of a CLA entry
 *   VW                       patterns in a block
 *   TILE_BLOCKS              blocks in a tile
 *   LANE_PER_ITEM            1: a work-group of VW work-items, each owns one lane of every block (GPUs)
 *                            0: a work-group of one work-item, which owns whole blocks as vectors (CPUs)
 *   REAL                     type of CLAs and P matrices: double or float
 *   CODE                     unsigned integer type of a tip code, one bit per state
 *   SCALE_BITS               a CLA entry whose maximum falls below 2^-SCALE_BITS is scaled back to order 1
 *
 * Arrays (sizes in elements):
 *   clas    REAL [tile][slot][block in tile][component][state][lane]     strides: Layout.strides
 *   scales  int  [tile][slot][block in tile][lane]   power of two taken out of the CLA entry
 *   tips    CODE [tile][taxon][block in tile][lane]
 *   weights double [block][lane]; 0 in padding lanes
 */
#pragma OPENCL FP_CONTRACT ON
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#if LANE_PER_ITEM
typedef REAL REALV;
typedef double DOUBLEV;
typedef int INTV;
#define STRIDE VW
#define LANE ((size_t)get_local_id(0))
#define TO_REALV(x) ((REAL)(x))
#define TO_DOUBLEV(x) ((double)(x))
#define ANY(condition) (condition)
#else
typedef PASTE(REAL, VW) REALV;
typedef PASTE(double, VW) DOUBLEV;
typedef PASTE(int, VW) INTV;
#define STRIDE 1
#define LANE ((size_t)0)
#define TO_REALV(x) PASTE(PASTE(convert_, REAL), VW)(x)
#define TO_DOUBLEV(x) PASTE(convert_double, VW)(x)
#define ANY(condition) any(condition)
#endif
