/* Types and addressing shared by all kernels.
 *
 * Macros that the host defines (Layout.macros in plltool/engine/layout.py); opcodes and the words of records come from
 * plltool/engine/contract.py:
 *   N_STATES, N_COMPONENTS   shape of a CLA entry
 *   MANY_STATES              1: more than 8 states, or tips with likelihoods of states; many_states.h replaces part of
 *                            arithmetic.h
 *   PMATRIX_COLUMNS          columns of a P matrix that one work-item of `pmatrices` makes, or with SHARED_STATES a work-group
 *   VW                       patterns in a block
 *   MOST_BLOCKS              blocks that a tile has at most; 1: it has one
 *   LANE_PER_ITEM            1: a work-group has VW work-items, and each owns one lane of every block (GPUs); with many
 *                            states it has VW * STATE_WORKERS, and those of a lane share its states
 *                            0: a work-group is one work-item, which owns whole blocks as vectors (CPUs)
 *   GROUP_ITEMS              work-items of a work-group of `traverse`
 *   OPCODE_SET               bits of the opcodes that `traverse` can run, see CAN and IS; kernels.py defines it
 *   INLINE_INSTRUCTIONS      1, unless kernels.py says 0: instructions are not functions of their own
 *   STAGED_MATRICES          1: P matrices of a NEWVIEW are read from local memory; with LANE_PER_ITEM and few states
 *   STATE_WORKERS, OWN_STATES, COLUMN_TILE, SHARED_DOUBLES, JOB_BYTES      see shared_states.h
 *   MATRIX_VALUES            numbers of a matrix that multiplies CLAs, see many_states.h
 *   BRANCH_VALUES            numbers of a branch's P matrices and tables for tips, see below
 *   MODEL_VALUES, EIGEN_VALUES   numbers of a component in the arrays `model` and `eigen`
 *   REVERSIBLE               1: all processes are time-reversible; 0: branches have a direction, see pmatrices.cl
 *   DIFFERENCE_TABLES        tables of divided differences of a branch and component: 1, or 4 without REVERSIBLE
 *   TABLE_ROWS               vectors of a component's table for tips, see below; 0 without tables
 *   REAL, REAL_BITS          type of CLAs and P matrices: double or float, and its size
 *   SUM                      type in which the states and components of a pattern are summed: double or float
 *   HAS_DOUBLE               0: no double precision; WIDE and WIDE_SUM below are made of floats
 *   DOUBLE_LANES             doubles of a vector, VW or half of it (CPUs)
 *   CODE                     unsigned integer type of a tip code: one bit per state, or with many states a column of
 *                            the tables of many_states.h
 *   SCALE_BITS               a component whose maximum falls below 2^-SCALE_BITS is scaled back to order 1
 *
 * Arrays (sizes in elements):
 *   clas    REAL [tile][slot][block in tile][component][state][lane]     strides: Layout.strides
 *   scales  int  [tile][slot][block in tile][component][lane]   power of two taken out of the component
 *   tips    CODE [tile][taxon][block in tile][lane]
 *   weights WIDE [block][lane]; 0 in padding lanes
 */
#pragma OPENCL FP_CONTRACT ON

/* WIDE: the type of logarithms, weights and all that is computed from the sums of a pattern. WIDE_SUM: a sum over patterns; without
 * double precision two floats, the rounded sum and what it lacks. The host adds them up in double. */
#if HAS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define WIDE double
#define WIDE_BITS long              /* integer of the size of WIDE */
#define WIDE_MANTISSA_BITS 52
#define SQUARE_ROOT_OF_HALF 0x3fe6a09e667f3bcdL        /* its bits */
#define WIDE_SUM double
#else
#define double no_double_here       /* does not compile anywhere */
#define WIDE float
#define WIDE_BITS int
#define WIDE_MANTISSA_BITS 23
#define SQUARE_ROOT_OF_HALF 0x3f3504f3
#define WIDE_SUM float2
#endif
#define LOG_2 0.693147180559945309417232

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

/* Code for an instruction that a program cannot run is left out: on a GPU it would cost registers. */
#define CAN(opcode) (OPCODE_SET >> (opcode) & 1)
#define IS(op, opcode) (CAN(opcode) && (op) == (opcode))

#define SHARED_STATES (LANE_PER_ITEM && MANY_STATES)

/* Which of n a work-group takes: on a GPU there is one for each, on a CPU it may take several. */
#if LANE_PER_ITEM
#define FOR_OWN(i, dimension, n) for (int i = get_group_id(dimension), once = 1; once; once = 0)
#else
#define FOR_OWN(i, dimension, n) for (int i = get_group_id(dimension); i < n; i += get_num_groups(dimension))
#endif

#ifndef INLINE_INSTRUCTIONS
#define INLINE_INSTRUCTIONS 1
#endif

/* On a GPU a work-group keeps its task and its job in local memory, once for all work-items. Functions that take addresses there
 * must be inlined, see kernels/README.md. */
#define SHARED_JOB (LANE_PER_ITEM && (MANY_STATES || INLINE_INSTRUCTIONS))

/* The lane of an operand or a job that a work-item has to itself. Only `traverse` asks for the number of the work-item there: PoCL
 * inlines every other function that does. */
#if LANE_PER_ITEM && !SHARED_JOB
#define LANE_OF(record) ((size_t)(record)->lane)
#else
#define LANE_OF(record) LANE
#endif

#if LANE_PER_ITEM
#define VECTOR(type) type
#define COMPONENTS_AT_ONCE 1        /* unrolled in NEWVIEW */
#define LOOP_COMPONENTS _Pragma("unroll 1")
#define LOOP_ROWS _Pragma("unroll 1")
#define STRIDE VW
#define LANE ((size_t)get_local_id(0) % VW)
#define ANY(condition) (condition)
#else
#define VECTOR(type) PASTE(type, VW)
#define COMPONENTS_AT_ONCE N_COMPONENTS
#define LOOP_COMPONENTS
#define LOOP_ROWS UNROLL
#define STRIDE 1
#define LANE ((size_t)0)
#define ANY(condition) any_lane(CONVERT(WIDE_BITS, condition))
#endif

#if REAL_BITS == 64
#define BITS long                   /* integer of the size of REAL */
#define MANTISSA_BITS 52
#define EXPONENT_BIAS 1023
#else
#define BITS int
#define MANTISSA_BITS 23
#define EXPONENT_BIAS 127
#endif

#if STAGED_MATRICES
#define P_SPACE __local             /* where a NEWVIEW reads P */
#else
#define P_SPACE __global
#endif

#if SHARED_JOB
#define JOB_SPACE __local           /* where task and job are */
#else
#define JOB_SPACE __private
#endif

/* Compilers leave large functions alone and keep arrays that loops index in memory. Inlined and unrolled, few states stay in
 * registers: on PoCL searches took 0.6 times as long. */
#define INLINE __attribute__((always_inline)) static inline
#if MANY_STATES
#define UNROLL
#else
#define UNROLL _Pragma("unroll")
#endif

#define CONVERT(type, x) PASTE(convert_, VECTOR(type))(x)
#define BITCAST(type, x) PASTE(as_, VECTOR(type))(x)

typedef VECTOR(REAL) REALV;
typedef VECTOR(SUM) SUMV;
typedef VECTOR(WIDE) WIDEV;
typedef VECTOR(WIDE_BITS) WIDEBITSV;
typedef VECTOR(CODE) CODEV;
typedef VECTOR(int) INTV;
typedef VECTOR(BITS) BITSV;

/* Up to 8 states, each P matrix of a branch can have a table for tips; the tables follow the matrices.
 * With vectors of 8 and 16 lanes (ROW_TABLES) a vector belongs to a row of P, and a tip picks from it by a permutation: lane e
 * of row i is the sum of P_ij over those of the first TABLE_STATES states j that set e contains. The other states are
 * multiplied. Lane 0, the set with none of the first states, holds P_ij of the first of the others, so that four states need
 * only the table.
 * With 4 lanes and up to 4 states (SET_TABLES) a vector belongs to a set of states: lane i of vector e is the sum of P_ij over
 * all states j of set e. A tip loads the vectors of its lanes and transposes them. */
#define ROW_TABLES (TABLE_ROWS == N_STATES)
#define SET_TABLES (TABLE_ROWS > N_STATES)
#if !ROW_TABLES
#define TABLE_STATES 0
#elif VW == 16 && N_STATES >= 4
#define TABLE_STATES 4
#elif N_STATES >= 3
#define TABLE_STATES 3
#else
#define TABLE_STATES N_STATES
#endif

#if TABLE_ROWS
#define TABLES_START (BRANCH_VALUES - N_COMPONENTS * TABLE_ROWS * VW)     /* of a branch, after its matrices */
#endif

#if HAS_DOUBLE
INLINE WIDE_SUM to_wide_sum(WIDE x)
{
    return x;
}

INLINE WIDE_SUM add_wide_sums(WIDE_SUM a, WIDE_SUM b)
{
    return a + b;
}
#else
INLINE WIDE_SUM to_wide_sum(WIDE x)
{
    return (WIDE_SUM)(x, 0);
}

/* Knuth's two-sum: `lost` is what rounding takes from a.x + b.x, exactly. There are no products that compilers could fuse. */
INLINE WIDE_SUM add_wide_sums(WIDE_SUM a, WIDE_SUM b)
{
    const float sum = a.x + b.x, part = sum - a.x;
    const float lost = (a.x - (sum - part)) + (b.x - part) + (a.y + b.y), rounded = sum + lost;
    return (WIDE_SUM)(rounded, lost - (rounded - sum));
}
#endif

#if !LANE_PER_ITEM
/* Whether a condition is true in any lane. PoCL calls `any` instead of inlining it. */
INLINE int any_lane(WIDEBITSV condition)
{
    WIDE_BITS found = 0;
    #pragma unroll
    for (int l = 0; l < VW; l++)
        found |= condition[l];
    return found != 0;
}

/* The sum of all lanes: one after another, or where sums are rough in pairs, which takes fewer steps. */
INLINE WIDE_SUM add_lanes(WIDEV values)
{
#if HAS_DOUBLE
    WIDE sum = 0;
    for (int l = 0; l < VW; l++)
        sum += ((const WIDE *)&values)[l];
    return sum;
#else
    WIDE sum[VW];
    #pragma unroll
    for (int l = 0; l < VW; l++)
        sum[l] = values[l];
    #pragma unroll
    for (int width = VW / 2; width > 0; width /= 2)
        #pragma unroll
        for (int l = 0; l < width; l++)
            sum[l] += sum[l + width];
    return to_wide_sum(sum[0]);
#endif
}
#endif
