/* What all shapes of work have in common: an instruction prepared for a tile, and the formulas of its values. */

#define MODEL_REALS (N_COMPONENTS * MODEL_VALUES)       /* of a P set */

typedef struct {
    Operand a, b, c;
    const __global REAL *pa, *pb, *pc;          /* P matrices */
    const __global REAL *qa, *qb, *qc;          /* their slopes */
    const __global REAL *decay;                 /* of branch pb */
    const __global REAL *differences;           /* of branch pb: divided differences */
    const __global REAL *model;
    const __global WIDE *weights;               /* first block of the tile */
    __global int *bad_pattern;                  /* smallest pattern index whose likelihood is not positive */
    __global WIDE *site;                        /* lnL of each pattern, first block of the tile, or 0 */
    int first_pattern;                          /* of the tile */
    int n_blocks;
    uint lane;                                  /* see LANE_OF */
    int slopes_only;                            /* whether a DERIVATIVE leaves out lnL */
    int has_zero_rates;                         /* whether a component has rate 0 */
} Job;

/* Which instruction it is, and where its numbers go. Apart from the job: in registers on a CPU. */
typedef struct {
    int op;                                     /* the opcode */
    int begins;                                 /* whether its values' sums begin with this tile */
    __global REAL *cla;                         /* the CLA that it makes, and its counts, or */
    __global int *scale;
    __global WIDE_SUM *partial;                 /* the sums that it adds to */
} Output;

/* Whether this work-item fills in task and job. */
#if SHARED_JOB
#define WRITES_JOB (get_local_id(0) == 0)
#else
#define WRITES_JOB 1
#endif

/* Blocks of the tile that hold patterns; a constant where tiles have one block, so that loops over blocks vanish. */
#define BLOCKS(job) (MOST_BLOCKS == 1 ? 1 : (job)->n_blocks)

/* The log of each lane's likelihood, scaling undone; NaN where the likelihood is not positive and finite. */
INLINE WIDEV log_likelihood(const JOB_SPACE Job *job, int block, SUMV likelihood, INTV scale)
{
    const WIDEV x = CONVERT(WIDE, likelihood);
    const WIDEBITSV bad = !(x > 0.0 && x < (WIDE)INFINITY);
    if (ANY(bad)) {
#if LANE_PER_ITEM
        atomic_min(job->bad_pattern, job->first_pattern + block * VW + (int)LANE_OF(job));
#else
        for (int l = 0; l < VW; l++)
            if (bad[l])
                atomic_min(job->bad_pattern, job->first_pattern + block * VW + l);
#endif
    }
    return (bad ? (WIDEV)((WIDE)NAN) : log_of(x)) + CONVERT(WIDE, scale) * LOG_2;
}

INLINE WIDEV load_weights(const JOB_SPACE Job *job, int block)
{
    return *((const __global WIDEV *)job->weights + (size_t)block * STRIDE + LANE_OF(job));
}

#define IMPOSSIBLE (-(1 << 30))      /* a count below any other */

/* The values of DERIVATIVE for one block: lnL or 0, d1, d2 of each pattern, from its likelihood and the derivatives of that. */
INLINE void derivative_values(
    const JOB_SPACE Job *job, int block, SUMV likelihood, SUMV first, SUMV second, INTV scale, WIDEV *value)
{
    const WIDEV inverse = 1.0 / CONVERT(WIDE, likelihood);
    const WIDEV d1 = CONVERT(WIDE, first) * inverse;
    value[0] = job->slopes_only ? (WIDEV)(0) : log_likelihood(job, block, likelihood, scale);
    value[1] = d1;
    value[2] = CONVERT(WIDE, second) * inverse - d1 * d1;
}

/* What one state of one component adds to the sums of TRIPLET: L and its derivatives, in the order of the values. a, b and s
 * are P, P' and P'' times each operand; `mass` is component weight * frequency. */
INLINE void add_triplet_terms(SUMV mass, const SUMV *a, const SUMV *b, const SUMV *s, SUMV *sum)
{
    const SUMV a0 = mass * a[0], a1 = mass * a[1];
    const SUMV bs = b[0] * s[0], b1s = b[1] * s[0], bs1 = b[0] * s[1];
    sum[0] = a0 * bs + sum[0];
    sum[1] = a1 * bs + sum[1];
    sum[2] = a0 * b1s + sum[2];
    sum[3] = a0 * bs1 + sum[3];
    sum[4] = (mass * a[2]) * bs + sum[4];
    sum[5] = a0 * (b[2] * s[0]) + sum[5];
    sum[6] = a0 * (b[0] * s[2]) + sum[6];
    sum[7] = a1 * b1s + sum[7];
    sum[8] = a1 * bs1 + sum[8];
    sum[9] = a0 * (b[1] * s[1]) + sum[9];
}

/* The values of TRIPLET for one block, from those sums. */
INLINE void triplet_values(const JOB_SPACE Job *job, int block, const SUMV *sum, INTV scale, WIDEV *value)
{
    const WIDEV inverse = 1.0 / CONVERT(WIDE, sum[0]);
    value[0] = log_likelihood(job, block, sum[0], scale);
    UNROLL
    for (int v = 0; v < 3; v++) {
        value[1 + v] = CONVERT(WIDE, sum[1 + v]) * inverse;
        value[4 + v] = CONVERT(WIDE, sum[4 + v]) * inverse - value[1 + v] * value[1 + v];
    }
    value[7] = CONVERT(WIDE, sum[7]) * inverse - value[1] * value[2];
    value[8] = CONVERT(WIDE, sum[8]) * inverse - value[1] * value[3];
    value[9] = CONVERT(WIDE, sum[9]) * inverse - value[2] * value[3];
}
