/* What all shapes of work have in common: an instruction made ready for a tile, and the formulas of its values. */

#define PROPAGATE 0
#define NEWVIEW 1
#define EVALUATE 2
#define DERIVATIVE 3
#define INSERT 4
#define TRIPLET 5
#define GRADIENT 6
#define ROOT 7

#define DERIVATIVE_VALUES 3
#define TRIPLET_VALUES 10
#define MODEL_COMPONENT_REALS (N_STATES + 2 * MATRIX_SIZE + 1)
#define MODEL_REALS (N_COMPONENTS * MODEL_COMPONENT_REALS)

typedef struct {
    Operand a, b, c;
    const __global REAL *pa, *pb, *pc;          /* P matrices */
    const __global REAL *qa, *qb, *qc;          /* their slopes */
    const __global REAL *decay;                 /* of branch pb */
    const __global REAL *response;              /* of branch pb */
    const __global REAL *model;
    const __global double *weights;             /* of the first weight set asked for, first block of the tile */
    ulong n_lanes;                              /* from one weight set to the next */
    __global int *bad_pattern;                  /* smallest pattern index whose likelihood is not positive */
    __global double *site;                      /* per-pattern lnL, first block of the tile, or 0 */
    int first_pattern;                          /* of the tile */
    int n_blocks;
} Job;

/* The log of each lane's likelihood, scaling undone. */
static inline DOUBLEV log_likelihood(const Job *job, int block, SUMV likelihood, INTV scale)
{
    if (ANY(!(likelihood > (SUMV)(0)))) {
#if LANE_PER_ITEM
        atomic_min(job->bad_pattern, job->first_pattern + block * VW + (int)LANE);
#else
        for (int l = 0; l < VW; l++)
            if (!(((const SUM *)&likelihood)[l] > 0))
                atomic_min(job->bad_pattern, job->first_pattern + block * VW + l);
#endif
    }
    return log(CONVERT(double, likelihood)) + CONVERT(double, scale) * M_LN2;
}

static inline DOUBLEV load_weights(const Job *job, int block, int set)
{
    return *((const __global DOUBLEV *)(job->weights + set * job->n_lanes) + (size_t)block * STRIDE + LANE);
}

#define IMPOSSIBLE (-(1 << 30))      /* a count below any other */

/* DERIVATIVE's values of one block: lnL, d1, d2 of each pattern, from its likelihood and what that changes by. */
static inline void derivative_values(
    const Job *job, int block, SUMV likelihood, SUMV first, SUMV second, INTV scale, DOUBLEV *value)
{
    const DOUBLEV inverse = 1.0 / CONVERT(double, likelihood);
    const DOUBLEV d1 = CONVERT(double, first) * inverse;
    value[0] = log_likelihood(job, block, likelihood, scale);
    value[1] = d1;
    value[2] = CONVERT(double, second) * inverse - d1 * d1;
}

/* What one state of one component adds to TRIPLET's sums: L and its derivatives, in the order of the values. a, b and s are
 * P, P' and P'' times each operand; `mass` is the state's prior. */
static inline void add_triplet_terms(SUMV mass, const SUMV *a, const SUMV *b, const SUMV *s, SUMV *sum)
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

/* TRIPLET's values of one block, from those sums. */
static inline void triplet_values(const Job *job, int block, const SUMV *sum, INTV scale, DOUBLEV *value)
{
    const DOUBLEV inverse = 1.0 / CONVERT(double, sum[0]);
    value[0] = log_likelihood(job, block, sum[0], scale);
    for (int v = 0; v < 3; v++) {
        value[1 + v] = CONVERT(double, sum[1 + v]) * inverse;
        value[4 + v] = CONVERT(double, sum[4 + v]) * inverse - value[1 + v] * value[1 + v];
    }
    value[7] = CONVERT(double, sum[7]) * inverse - value[1] * value[2];
    value[8] = CONVERT(double, sum[8]) * inverse - value[1] * value[3];
    value[9] = CONVERT(double, sum[9]) * inverse - value[2] * value[3];
}
