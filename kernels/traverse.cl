/* traverse: takes each tile through a whole list of instructions.
 *
 * Work: one work-group owns the consecutive tiles groups[g].first .. +count (all of one part) and runs every
 * instruction on them in order; nothing is shared between work-groups. See layout.h for the arrays.
 *
 * Instruction (8 ints, plltool/engine/program.py): opcode, result, a, pa, b, pb, c, pc.
 *   a, b, c: slot >= 0, or ~taxon for a tip.   pa, pb, pc: branch, an index into matrices, slopes and decays.
 *   PROPAGATE   CLA[result] = Pa a
 *   NEWVIEW     CLA[result] = (Pa a) * (Pb b)                                  Felsenstein 1981, eq. 2
 *               result may be the slot of a or b: a component is read before it is written
 *   EVALUATE    values[result]     = lnL = sum_p w_p log sum_ci m_ci a_ci (Pb b)_ci
 *   DERIVATIVE  values[result..+2] = lnL, d lnL/dt, d2 lnL/dt2 on the branch pb between a and b; the fusion of
 *               sumGAMMA and coreDerivative: in the eigenbasis s_k = (U^T m a)_k (U^-1 b)_k,
 *               L = sum_i m_i a_i b_i + sum_k s_k expm1(l_k t), which does not cancel near t = 0
 *   INSERT      values[result]     = lnL of joining Pa a, Pb b and c at one node (c is already propagated)
 *   TRIPLET     values[result..+9] = lnL, its gradient (a, b, c) and its Hessian (aa, bb, cc, ab, ac, bc) in the
 *               three branch lengths around the node that joins a, b and c
 *   GRADIENT    values[result..] += per component: sum_p (w_p / L) (U^T m a)_k F_kl (U^-1 b)_l, S x S values, where a is
 *               on the root's side: how lnL answers to d(Q rate) in the eigenbasis, by way of this branch
 *   ROOT        values[result..] = per component and state i: sum_p (w_p / L) m_i a_i (Pb b)_i: how lnL answers to relative
 *               changes of the weights and of the frequencies at the root
 * where m_ci = component weight * frequency. Values are sums over the group's patterns: partial[group][value].
 *
 * Buffers:
 *   matrices REAL [pset][branch][component][i][j]        P(t)
 *   slopes   REAL [pset][branch][2][component][i][j]     P'(t), P''(t); read by TRIPLET only
 *   decays   REAL [pset][branch][component][3][k]        expm1(l t), l exp(l t), l^2 exp(l t)
 *   responses REAL [pset][branch][component][k][l]       F(t); read by GRADIENT only
 *   model    REAL [pset][component][ m_i: N_STATES | m_i U_ik as [k][i] | U^-1 as [k][j] ]
 * Twin: plltool/engine/numpy_engine.py. Tests: tests/engine.
 */

#define PROPAGATE 0
#define NEWVIEW 1
#define EVALUATE 2
#define DERIVATIVE 3
#define INSERT 4
#define TRIPLET 5
#define GRADIENT 6
#define ROOT 7

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

/* Copies of the job's pointers, restrict and unrolling are worth 1.2 times on PoCL, nothing on Intel's compiler. */
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

/* Add the lanes of each value in a fixed order to this group's partial sums; shared holds MAX_VALUES * VW doubles. */
static inline void store_values(__global double *partial, const DOUBLEV *values, int n, int first_tile, __local double *shared)
{
#if LANE_PER_ITEM
    for (int v = 0; v < n; v++)
        shared[v * VW + LANE] = values[v];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int v = LANE; v < n; v += VW) {
        double sum = 0;
        for (int l = 0; l < VW; l++)
            sum += shared[v * VW + l];
        partial[v] = first_tile ? sum : partial[v] + sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    for (int v = 0; v < n; v++) {
        double sum = 0;
        for (int l = 0; l < VW; l++)
            sum += ((const double *)&values[v])[l];
        partial[v] = first_tile ? sum : partial[v] + sum;
    }
#endif
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

/* The slot or tip that an instruction names, for the tile whose storage begins at block `storage`. */
static inline Operand find_operand(
    int index, const __global REAL *clas, const __global int *scales, const __global CODE *tile_tips, size_t storage,
    size_t slot_stride)
{
    const size_t at = storage + (index < 0 ? 0 : (size_t)index) * slot_stride;
    Operand operand;
    operand.is_tip = index < 0;
    operand.cla = clas + at * BLOCK_REALS * VW;
    operand.scale = scales + at * VW;
    operand.code = tile_tips + (index < 0 ? (size_t)(~index) : 0) * TILE_BLOCKS * VW;
    return operand;
}

__kernel void traverse(
    __global REAL *clas,
    __global int *scales,
    const __global CODE *tips,
    const __global double *weights,
    const __global REAL *model,
    const __global REAL *matrices,
    const __global REAL *slopes,
    const __global REAL *decays,
    const __global REAL *responses,
    const __global int *program,            /* [n_instructions][8] */
    const __global int *groups,             /* [group][first tile, number of tiles, pset, first tile of the chunk] */
    const __global int *tile_blocks,        /* [tile] blocks in use */
    __global double *partial,               /* [group][n_values] */
    __global int *bad_pattern,
    __global double *site,                  /* [pattern], written by EVALUATE where want_site */
    const int want_site,
    const int first_group,                  /* of this launch */
    const int n_instructions,
    const int n_values,
    const int n_taxa,
    const int n_branches,
    const ulong tile_stride,                /* of clas, in blocks */
    const ulong slot_stride)                /* likewise */
{
    const int group = first_group + (int)get_group_id(0);
    const __global int *span = groups + 4 * group;
    const int pset = span[2];
    const __global REAL *p_base = matrices + (size_t)pset * n_branches * MATRIX_REALS;
    const __global REAL *q_base = slopes + (size_t)pset * n_branches * 2 * MATRIX_REALS;
    const __global REAL *f_base = responses + (size_t)pset * n_branches * MATRIX_REALS;
    const __global REAL *d_base = decays + (size_t)pset * n_branches * DECAY_REALS;
    __local double shared[LANE_PER_ITEM ? MAX_VALUES * VW : 1];
    for (int t = 0; t < span[1]; t++) {
        const int tile = span[0] + t;
        const size_t storage = (size_t)(tile - span[3]) * tile_stride;     /* in blocks */
        const size_t lanes = (size_t)tile * TILE_BLOCKS * VW;              /* before this tile */

        for (int n = 0; n < n_instructions; n++) {
            const __global int *word = program + (size_t)n * 8;
            const int op = word[0], result = word[1];
            Job job;
            job.model = model + (size_t)pset * MODEL_REALS;
            job.bad_pattern = bad_pattern;
            job.n_blocks = tile_blocks[tile];
            job.first_pattern = (int)lanes;
            job.weights = weights + lanes;
            job.site = want_site ? site + lanes : 0;
            job.a = find_operand(word[2], clas, scales, tips + lanes * n_taxa, storage, slot_stride);
            job.b = find_operand(word[4], clas, scales, tips + lanes * n_taxa, storage, slot_stride);
            job.c = find_operand(word[6], clas, scales, tips + lanes * n_taxa, storage, slot_stride);
            job.pa = p_base + (size_t)word[3] * MATRIX_REALS;
            job.pb = p_base + (size_t)word[5] * MATRIX_REALS;
            job.pc = p_base + (size_t)word[7] * MATRIX_REALS;
            job.qa = q_base + (size_t)word[3] * 2 * MATRIX_REALS;
            job.qb = q_base + (size_t)word[5] * 2 * MATRIX_REALS;
            job.qc = q_base + (size_t)word[7] * 2 * MATRIX_REALS;
            job.decay = d_base + (size_t)word[5] * DECAY_REALS;
            job.response = f_base + (size_t)word[5] * MATRIX_REALS;
            const size_t made = storage + (size_t)result * slot_stride;        /* for NEWVIEW and PROPAGATE */
            DOUBLEV shares[TILE_BLOCKS];
            int n_passes = 1, n_made = 1;       /* how often values leave for the sums, and how many at a time */
            if (op == NEWVIEW) {
                newview(&job, clas + made * BLOCK_REALS * VW, scales + made * VW);
                n_passes = 0;
            } else if (op == PROPAGATE) {
                propagate(&job, clas + made * BLOCK_REALS * VW, scales + made * VW);
                n_passes = 0;
            } else if (op == GRADIENT) {
                pattern_shares(&job, shares);
                n_passes = N_COMPONENTS * N_STATES / GRADIENT_ROWS;
                n_made = GRADIENT_ROWS * N_STATES;
            } else if (op == ROOT) {
                pattern_shares(&job, shares);
                n_passes = N_COMPONENTS;
                n_made = N_STATES;
            } else if (op == DERIVATIVE) {
                n_made = 3;
            } else if (op == TRIPLET) {
                n_made = 10;
            }
            const int first = t == 0 && (op != GRADIENT || word[6]);     /* of the values' sums */
            for (int pass = 0; pass < n_passes; pass++) {
                DOUBLEV values[MAX_VALUES];
                for (int v = 0; v < MAX_VALUES; v++)
                    values[v] = (DOUBLEV)(0);
                const int row = pass * GRADIENT_ROWS;
                if (op == EVALUATE)
                    evaluate(&job, values);
                else if (op == DERIVATIVE)
                    derivative(&job, values);
                else if (op == INSERT)
                    insert(&job, values);
                else if (op == TRIPLET)
                    triplet(&job, values);
                else if (op == GRADIENT)
                    gradient(&job, shares, row / N_STATES, row % N_STATES, values);
                else
                    root(&job, shares, pass, values);
                store_values(partial + (size_t)group * n_values + result + pass * n_made, values, n_made, first, shared);
            }
        }
    }
}
