/* What each instruction of `traverse` does with one tile; the formulas stand in traverse.cl.
 *
 * Every function loops over the tile's blocks. Those that make numbers add to `values`, one lane per pattern; sums over
 * lanes, tiles and groups are made in traverse.cl.
 */

#define GRADIENT_ROWS (N_STATES <= 4 ? N_STATES : 1)    /* of a component's S x S sums that registers hold at once */
#define MAX_VALUES (GRADIENT_ROWS * N_STATES > 10 ? GRADIENT_ROWS * N_STATES : 10)
#define MODEL_COMPONENT_REALS (N_STATES + 2 * N_STATES * N_STATES)
#define MODEL_REALS (N_COMPONENTS * MODEL_COMPONENT_REALS)

typedef struct {
    Operand a, b, c;
    const __global REAL *pa, *pb, *pc;          /* P matrices */
    const __global REAL *qa, *qb, *qc;          /* their slopes */
    const __global REAL *decay;                 /* of branch pb */
    const __global REAL *response;              /* of branch pb */
    const __global REAL *model;
    const __global double *weights;             /* first block of the tile */
    __global int *bad_pattern;                  /* smallest pattern index whose likelihood is not positive */
    __global double *site;                      /* per-pattern lnL, first block of the tile, or 0 */
    int first_pattern;                          /* of the tile */
    int n_blocks;
} Job;

/* The log of each lane's likelihood, scaling undone. */
static inline DOUBLEV log_likelihood(const Job *job, int block, REALV likelihood, INTV scale)
{
    if (ANY(!(likelihood > (REALV)(0)))) {
#if LANE_PER_ITEM
        atomic_min(job->bad_pattern, job->first_pattern + block * VW + (int)LANE);
#else
        for (int l = 0; l < VW; l++)
            if (!(((const REAL *)&likelihood)[l] > 0))
                atomic_min(job->bad_pattern, job->first_pattern + block * VW + l);
#endif
    }
    return log(TO_DOUBLEV(likelihood)) + TO_DOUBLEV(scale) * M_LN2;
}

static inline DOUBLEV load_weights(const Job *job, int block)
{
    return *((const __global DOUBLEV *)job->weights + (size_t)block * STRIDE + LANE);
}

/* Copies of the job's pointers and unrolling help PoCL (1.2 times, with restrict also on the output, which CLAs made in
 * place forbid) and leave Intel's compiler as it was. */
static inline void newview(const Job *job, __global REAL *cla, __global int *scale)
{
    const Operand a = job->a, b = job->b;
    const __global REAL *restrict pa = job->pa;
    const __global REAL *restrict pb = job->pb;
    const int n_blocks = job->n_blocks;
    for (int block = 0; block < n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES];
        prepare_tip(&a, block, tip_a);
        prepare_tip(&b, block, tip_b);
        __global REALV *out = (__global REALV *)(cla + (size_t)block * BLOCK_REALS * VW) + LANE;
        REALV maximum = (REALV)(0);
        #pragma unroll
        for (int c = 0; c < N_COMPONENTS; c++) {
            REALV x[N_STATES], ya[N_STATES], yb[N_STATES];
            load_operand(&a, tip_a, block, c, x);
            multiply(pa + c * N_STATES * N_STATES, x, ya);
            load_operand(&b, tip_b, block, c, x);
            multiply(pb + c * N_STATES * N_STATES, x, yb);
            #pragma unroll
            for (int i = 0; i < N_STATES; i++) {
                const REALV z = ya[i] * yb[i];
                out[(c * N_STATES + i) * STRIDE] = z;
                maximum = z > maximum ? z : maximum;
            }
        }
        __global INTV *out_scale = (__global INTV *)scale + (size_t)block * STRIDE + LANE;
        *out_scale = load_scale(&a, block) + load_scale(&b, block);
        rescale(cla + (size_t)block * BLOCK_REALS * VW, out_scale, maximum);
    }
}

static inline void propagate(const Job *job, __global REAL *cla, __global int *scale)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip[N_STATES];
        prepare_tip(&job->a, block, tip);
        for (int c = 0; c < N_COMPONENTS; c++) {
            REALV x[N_STATES], y[N_STATES];
            load_operand(&job->a, tip, block, c, x);
            multiply(job->pa + c * N_STATES * N_STATES, x, y);
            for (int i = 0; i < N_STATES; i++)
                *((__global REALV *)cla + ((size_t)block * BLOCK_REALS + c * N_STATES + i) * STRIDE + LANE) = y[i];
        }
        *((__global INTV *)scale + (size_t)block * STRIDE + LANE) = load_scale(&job->a, block);
    }
}

static inline void evaluate(const Job *job, DOUBLEV *values)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        REALV likelihood = (REALV)(0);
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *m = job->model + c * MODEL_COMPONENT_REALS;
            REALV xa[N_STATES], xb[N_STATES], y[N_STATES];
            load_operand(&job->a, tip_a, block, c, xa);
            load_operand(&job->b, tip_b, block, c, xb);
            multiply(job->pb + c * N_STATES * N_STATES, xb, y);
            for (int i = 0; i < N_STATES; i++)
                likelihood = (m[i] * xa[i]) * y[i] + likelihood;
        }
        const DOUBLEV lnl = log_likelihood(job, block, likelihood, load_scale(&job->a, block) + load_scale(&job->b, block));
        if (job->site)
            *((__global DOUBLEV *)job->site + (size_t)block * STRIDE + LANE) = lnl;
        values[0] += load_weights(job, block) * lnl;
    }
}

/* Both ends of the job's branch in the eigenbasis of one component: sa = U^T m a, sb = U^-1 b; returns sum_i m_i a_i b_i. */
static inline REALV to_eigenbasis(
    const Job *job, const REALV *tip_a, const REALV *tip_b, int block, int component, REALV *sa, REALV *sb)
{
    const __global REAL *m = job->model + component * MODEL_COMPONENT_REALS;
    const __global REAL *ua = m + N_STATES, *ub = ua + N_STATES * N_STATES;
    REALV xa[N_STATES], xb[N_STATES];
    load_operand(&job->a, tip_a, block, component, xa);
    load_operand(&job->b, tip_b, block, component, xb);
    multiply(ua, xa, sa);
    multiply(ub, xb, sb);
    REALV at_zero_length = (m[0] * xa[0]) * xb[0];
    for (int i = 1; i < N_STATES; i++)
        at_zero_length = (m[i] * xa[i]) * xb[i] + at_zero_length;
    return at_zero_length;
}

static inline void derivative(const Job *job, DOUBLEV *values)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        REALV likelihood = (REALV)(0), first = (REALV)(0), second = (REALV)(0);
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *d = job->decay + c * 3 * N_STATES;
            REALV sa[N_STATES], sb[N_STATES];
            likelihood += to_eigenbasis(job, tip_a, tip_b, block, c, sa, sb);
            for (int k = 0; k < N_STATES - 1; k++) {    /* the last eigenvalue is 0 and adds nothing */
                const REALV s = sa[k] * sb[k];
                likelihood = d[k] * s + likelihood;
                first = d[N_STATES + k] * s + first;
                second = d[2 * N_STATES + k] * s + second;
            }
        }
        const DOUBLEV weight = load_weights(job, block);
        const DOUBLEV inverse = 1.0 / TO_DOUBLEV(likelihood);
        const DOUBLEV d1 = TO_DOUBLEV(first) * inverse;
        const INTV scale = load_scale(&job->a, block) + load_scale(&job->b, block);
        values[0] += weight * log_likelihood(job, block, likelihood, scale);
        values[1] += weight * d1;
        values[2] += weight * (TO_DOUBLEV(second) * inverse - d1 * d1);
    }
}

static inline void insert(const Job *job, DOUBLEV *values)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        REALV likelihood = (REALV)(0);
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *m = job->model + c * MODEL_COMPONENT_REALS;
            REALV x[N_STATES], ya[N_STATES], yb[N_STATES];
            load_operand(&job->a, tip_a, block, c, x);
            multiply(job->pa + c * N_STATES * N_STATES, x, ya);
            load_operand(&job->b, tip_b, block, c, x);
            multiply(job->pb + c * N_STATES * N_STATES, x, yb);
            load_operand(&job->c, tip_a, block, c, x);
            for (int i = 0; i < N_STATES; i++)
                likelihood = (m[i] * x[i]) * (ya[i] * yb[i]) + likelihood;
        }
        const INTV scale = load_scale(&job->a, block) + load_scale(&job->b, block) + load_scale(&job->c, block);
        values[0] += load_weights(job, block) * log_likelihood(job, block, likelihood, scale);
    }
}

static inline void triplet(const Job *job, DOUBLEV *values)
{
    const int S2 = N_STATES * N_STATES;
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES], tip_c[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        prepare_tip(&job->c, block, tip_c);
        REALV sum[MAX_VALUES];
        for (int v = 0; v < MAX_VALUES; v++)
            sum[v] = (REALV)(0);
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *m = job->model + c * MODEL_COMPONENT_REALS;
            REALV xa[N_STATES], xb[N_STATES], xc[N_STATES];
            load_operand(&job->a, tip_a, block, c, xa);
            load_operand(&job->b, tip_b, block, c, xb);
            load_operand(&job->c, tip_c, block, c, xc);
            for (int i = 0; i < N_STATES; i++) {
                REALV a[3], b[3], s[3];     /* P x, P' x, P'' x, entry i */
                for (int order = 0; order < 3; order++) {
                    const size_t row = (size_t)c * S2 + i * N_STATES;
                    const size_t slope = (size_t)(order - 1) * N_COMPONENTS * S2 + row;
                    const __global REAL *pa = order ? job->qa + slope : job->pa + row;
                    const __global REAL *pb = order ? job->qb + slope : job->pb + row;
                    const __global REAL *pc = order ? job->qc + slope : job->pc + row;
                    a[order] = pa[0] * xa[0];
                    b[order] = pb[0] * xb[0];
                    s[order] = pc[0] * xc[0];
                    for (int j = 1; j < N_STATES; j++) {
                        a[order] = pa[j] * xa[j] + a[order];
                        b[order] = pb[j] * xb[j] + b[order];
                        s[order] = pc[j] * xc[j] + s[order];
                    }
                }
                for (int order = 0; order < 3; order++)
                    s[order] = m[i] * s[order];
                const REALV bs = b[0] * s[0], b1s = b[1] * s[0], bs1 = b[0] * s[1];
                sum[0] = a[0] * bs + sum[0];
                sum[1] = a[1] * bs + sum[1];
                sum[2] = a[0] * b1s + sum[2];
                sum[3] = a[0] * bs1 + sum[3];
                sum[4] = a[2] * bs + sum[4];
                sum[5] = a[0] * (b[2] * s[0]) + sum[5];
                sum[6] = a[0] * (b[0] * s[2]) + sum[6];
                sum[7] = a[1] * b1s + sum[7];
                sum[8] = a[1] * bs1 + sum[8];
                sum[9] = a[0] * (b[1] * s[1]) + sum[9];
            }
        }
        const DOUBLEV weight = load_weights(job, block);
        const DOUBLEV inverse = 1.0 / TO_DOUBLEV(sum[0]);
        const INTV scale = load_scale(&job->a, block) + load_scale(&job->b, block) + load_scale(&job->c, block);
        values[0] += weight * log_likelihood(job, block, sum[0], scale);
        DOUBLEV g[3];
        for (int v = 0; v < 3; v++) {
            g[v] = TO_DOUBLEV(sum[1 + v]) * inverse;
            values[1 + v] += weight * g[v];
            values[4 + v] += weight * (TO_DOUBLEV(sum[4 + v]) * inverse - g[v] * g[v]);
        }
        values[7] += weight * (TO_DOUBLEV(sum[7]) * inverse - g[0] * g[1]);
        values[8] += weight * (TO_DOUBLEV(sum[8]) * inverse - g[0] * g[2]);
        values[9] += weight * (TO_DOUBLEV(sum[9]) * inverse - g[1] * g[2]);
    }
}

/* Each pattern's weight over its likelihood, scaling left in: what its terms of a gradient are multiplied with. */
static inline void pattern_shares(const Job *job, DOUBLEV *shares)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES], likelihood = (REALV)(0);
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *d = job->decay + c * 3 * N_STATES;
            REALV sa[N_STATES], sb[N_STATES];
            likelihood += to_eigenbasis(job, tip_a, tip_b, block, c, sa, sb);
            for (int k = 0; k < N_STATES - 1; k++)
                likelihood = (d[k] * sa[k]) * sb[k] + likelihood;
        }
        shares[block] = load_weights(job, block) / TO_DOUBLEV(likelihood);
    }
}

/* GRADIENT_ROWS rows k of the component's S x S values, from row `row` on. */
static inline void gradient(const Job *job, const DOUBLEV *shares, int component, int row, DOUBLEV *values)
{
    const __global REAL *response = job->response + ((size_t)component * N_STATES + row) * N_STATES;
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES], sa[N_STATES], sb[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        to_eigenbasis(job, tip_a, tip_b, block, component, sa, sb);
        for (int k = 0; k < GRADIENT_ROWS; k++) {
            const DOUBLEV share = shares[block] * TO_DOUBLEV(sa[row + k]);
            for (int l = 0; l < N_STATES; l++)
                values[k * N_STATES + l] = share * TO_DOUBLEV(sb[l]) + values[k * N_STATES + l];
        }
    }
    for (int v = 0; v < GRADIENT_ROWS * N_STATES; v++)
        values[v] *= (double)response[v];
}

static inline void root(const Job *job, const DOUBLEV *shares, int component, DOUBLEV *values)
{
    const __global REAL *m = job->model + component * MODEL_COMPONENT_REALS;
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES], xa[N_STATES], xb[N_STATES], y[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        load_operand(&job->a, tip_a, block, component, xa);
        load_operand(&job->b, tip_b, block, component, xb);
        multiply(job->pb + component * N_STATES * N_STATES, xb, y);
        for (int i = 0; i < N_STATES; i++)
            values[i] += shares[block] * TO_DOUBLEV((m[i] * xa[i]) * y[i]);
    }
}
