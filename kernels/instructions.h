/* What each instruction of `traverse` does with one tile where a work-item owns all states of its lanes. The formulas are in
 * traverse.cl. Where work-items share the states of a lane, shared_states.h takes the place of this file.
 *
 * Every function loops over the tile's blocks. Those that make numbers add to `values`, one lane per pattern;
 * `store_values` adds up the lanes.
 */

#if !SHARED_STATES
#define GRADIENT_ROWS (N_STATES <= 4 ? N_STATES : 1)    /* rows of a component's S x S sums that registers hold at once */
#define MAX_VALUES (GRADIENT_ROWS * N_STATES > TRIPLET_VALUES ? GRADIENT_ROWS * N_STATES : TRIPLET_VALUES)

/* Whether the ends of an instruction have a state in common, lane by lane; `tip_c` is 0 where there are two ends. */
INLINE INTV share_a_state(
    const Job *job, const REALV *tip_a, const REALV *tip_b, const REALV *tip_c, int block, int component)
{
    SUMV xa[N_STATES], xb[N_STATES], xc[N_STATES], shared = (SUMV)(0);
    load_operand(&job->a, tip_a, block, component, xa);
    load_operand(&job->b, tip_b, block, component, xb);
    if (tip_c)
        load_operand(&job->c, tip_c, block, component, xc);
    UNROLL
    for (int i = 0; i < N_STATES; i++)
        shared += tip_c ? xa[i] * xb[i] * xc[i] : xa[i] * xb[i];
    return CONVERT(int, shared > (SUMV)(0));
}

/* Factors that bring a pattern's components to the scale of the largest one, whose count is returned.
 * A component's count is the sum of the counts of its operands. A component of rate 0, whose likelihoods are 0 or 1 and never
 * scaled, is impossible where its ends disagree; its count is then left out. */
INLINE INTV align_components(
    const Job *job, const REALV *tip_a, const REALV *tip_b, const REALV *tip_c, int block, SUMV *factor)
{
    INTV count[N_COMPONENTS], largest = (INTV)(INT_MIN);
    #pragma unroll COMPONENTS_AT_ONCE
    for (int k = 0; k < N_COMPONENTS; k++) {
        count[k] = load_scale(&job->a, block, k) + load_scale(&job->b, block, k);
        if (tip_c)
            count[k] += load_scale(&job->c, block, k);
    }
    if (job->has_zero_rates)
        for (int k = 0; k < N_COMPONENTS; k++)
            if (job->model[(k + 1) * MODEL_VALUES - 1] == 0)
                count[k] = share_a_state(job, tip_a, tip_b, tip_c, block, k) ? count[k] : (INTV)(IMPOSSIBLE);
    #pragma unroll COMPONENTS_AT_ONCE
    for (int k = 0; k < N_COMPONENTS; k++)
        largest = count[k] > largest ? count[k] : largest;
    #pragma unroll COMPONENTS_AT_ONCE
    for (int k = 0; k < N_COMPONENTS; k++)
        factor[k] = CONVERT(SUM, power_of_two(CONVERT(BITS, count[k] - largest)));
    return largest;
}

/* The least of the components' maxima so far, except those that are 0; a component of rate 0 is 0 wherever taxa differ. */
INLINE REALV least_positive(REALV least, REALV largest)
{
    return largest > (REALV)(0) && largest < least ? largest : least;
}

/* Where the work-item writes block `block` of a CLA. */
INLINE __global REALV *cla_block(__global REAL *cla, int block)
{
    return (__global REALV *)(cla + (size_t)block * BLOCK_REALS * VW) + LANE;
}

INLINE __global INTV *scale_block(__global int *scale, int block)
{
    return (__global INTV *)(scale + (size_t)block * N_COMPONENTS * VW) + LANE;
}

#if MANY_STATES
/* Components in the outer loop, blocks in the inner: the two tables of a component stay in the cache for all blocks. */
INLINE void newview(
    const Job *job, const P_SPACE REAL *pa, const P_SPACE REAL *pb, __global REAL *cla, __global int *scale)
{
    REALV least[TILE_BLOCKS];       /* of the components' maxima that are not 0 */
    for (int c = 0; c < N_COMPONENTS; c++)
        for (int block = 0; block < job->n_blocks; block++) {
            SUMV ya[N_STATES], yb[N_STATES];
            product(pa + c * MATRIX_VALUES, &job->a, 0, block, c, ya);
            product(pb + c * MATRIX_VALUES, &job->b, 0, block, c, yb);
            __global REALV *out = cla_block(cla, block) + c * N_STATES * STRIDE;
            REALV largest = (REALV)(0);
            UNROLL
            for (int i = 0; i < N_STATES; i++) {
                const REALV z = CONVERT(REAL, ya[i] * yb[i]);
                out[i * STRIDE] = z;
                largest = z > largest ? z : largest;
            }
            scale_block(scale, block)[c * STRIDE] = load_scale(&job->a, block, c) + load_scale(&job->b, block, c);
            least[block] = least_positive(c ? least[block] : (REALV)(1), largest);
        }
    for (int block = 0; block < job->n_blocks; block++)
        rescale_small(cla_block(cla, block), scale_block(scale, block), least[block]);
}

#else
/* A NEWVIEW. On CPUs it is called with `a_is_tip` and `b_is_tip` as constants, and the compiler makes a loop for each case. */
INLINE void newview_of(const Job *job, const Operand a, const int a_is_tip, const P_SPACE REAL *pa,
    const Operand b, const int b_is_tip, const P_SPACE REAL *pb, __global REAL *cla, __global int *scale)
{
    const int n_blocks = job->n_blocks;
    for (int block = 0; block < n_blocks; block++) {
        TipBlock tip_a, tip_b;
        if (a_is_tip)
            load_tip_block(&a, block, &tip_a);
        if (b_is_tip)
            load_tip_block(&b, block, &tip_b);
        __global REALV *out = cla_block(cla, block);
        __global INTV *out_scale = scale_block(scale, block);
        REALV least = (REALV)(1);       /* of the components' maxima that are not 0 */
        #pragma unroll COMPONENTS_AT_ONCE
        for (int c = 0; c < N_COMPONENTS; c++) {
            REALV xa[N_STATES], xb[N_STATES], largest = (REALV)(0);
            load_states(pa, &a, a_is_tip, &tip_a, block, c, xa);
            load_states(pb, &b, b_is_tip, &tip_b, block, c, xb);
            #pragma unroll
            for (int i = 0; i < N_STATES; i++) {
                const REALV z = row_product(pa, c, i, a_is_tip, &tip_a, xa) * row_product(pb, c, i, b_is_tip, &tip_b, xb);
                out[(c * N_STATES + i) * STRIDE] = z;
                largest = z > largest ? z : largest;
            }
            least = least_positive(least, largest);
            out_scale[c * STRIDE] = (a_is_tip ? (INTV)(0) : load_scale(&a, block, c)) + (b_is_tip ? (INTV)(0) : load_scale(&b, block, c));
        }
        rescale_small(out, out_scale, least);
    }
}

/* The output may be the slot of an operand: a component is read before it is written. */
INLINE void newview(
    const Job *job, const P_SPACE REAL *pa, const P_SPACE REAL *pb, __global REAL *cla, __global int *scale)
{
#if LANE_PER_ITEM
    newview_of(job, job->a, job->a.is_tip, pa, job->b, job->b.is_tip, pb, cla, scale);
#else
    if (job->a.is_tip && job->b.is_tip)
        newview_of(job, job->a, 1, pa, job->b, 1, pb, cla, scale);
    else if (job->a.is_tip)
        newview_of(job, job->a, 1, pa, job->b, 0, pb, cla, scale);
    else if (job->b.is_tip)
        newview_of(job, job->b, 1, pb, job->a, 0, pa, cla, scale);
    else
        newview_of(job, job->a, 0, pa, job->b, 0, pb, cla, scale);
#endif
}
#endif

INLINE void propagate(const Job *job, __global REAL *cla, __global int *scale)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip[N_STATES];
        prepare_tip(&job->a, block, tip);
        for (int c = 0; c < N_COMPONENTS; c++) {
            SUMV y[N_STATES];
            product(job->pa + c * MATRIX_VALUES, &job->a, tip, block, c, y);
            UNROLL
            for (int i = 0; i < N_STATES; i++)
                cla_block(cla, block)[(c * N_STATES + i) * STRIDE] = CONVERT(REAL, y[i]);
            scale_block(scale, block)[c * STRIDE] = load_scale(&job->a, block, c);
        }
    }
}

/* lnL of each pattern. */
INLINE void evaluate(const Job *job, DOUBLEV *lnl)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        SUMV likelihood = (SUMV)(0), factor[N_COMPONENTS];
        const INTV scale = align_components(job, tip_a, tip_b, 0, block, factor);
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *m = job->model + c * MODEL_VALUES;
            SUMV xa[N_STATES], y[N_STATES], sum = (SUMV)(0);
            load_operand(&job->a, tip_a, block, c, xa);
            product(job->pb + c * MATRIX_VALUES, &job->b, tip_b, block, c, y);
            UNROLL
            for (int i = 0; i < N_STATES; i++)
                sum = (m[i] * xa[i]) * y[i] + sum;
            likelihood = factor[c] * sum + likelihood;
        }
        lnl[block] = log_likelihood(job, block, likelihood, scale);
        if (job->site)
            *((__global DOUBLEV *)job->site + (size_t)block * STRIDE + LANE) = lnl[block];
    }
}

/* The sum of the patterns' lnL times their weights. */
INLINE void weigh(const Job *job, const DOUBLEV *lnl, DOUBLEV *values)
{
    for (int block = 0; block < job->n_blocks; block++)
        values[0] += load_weights(job, block) * lnl[block];
}

/* Both ends of the job's branch in the eigenbasis of one component: sa = U^T m a, sb = U^-1 b; returns sum_i m_i a_i b_i.
 * `factor` aligns the component with the others. */
INLINE SUMV to_eigenbasis(
    const Job *job, const REALV *tip_a, const REALV *tip_b, int block, int component, SUMV factor, SUMV *sa, SUMV *sb)
{
    const __global REAL *m = job->model + component * MODEL_VALUES;
    const __global REAL *ua = m + N_STATES, *ub = ua + MATRIX_VALUES;
    SUMV xa[N_STATES], xb[N_STATES];
    load_operand(&job->a, tip_a, block, component, xa);
    load_operand(&job->b, tip_b, block, component, xb);
    product(ua, &job->a, tip_a, block, component, sa);
    product(ub, &job->b, tip_b, block, component, sb);
    SUMV at_zero_length = (SUMV)(0);
    UNROLL
    for (int i = 0; i < N_STATES; i++) {
        sa[i] *= factor;
        at_zero_length = (m[i] * xa[i]) * xb[i] + at_zero_length;
    }
    return factor * at_zero_length;
}

/* P x, P' x and P'' x for the operand's component of block `block`. */
INLINE void three_orders(const __global REAL *p, const __global REAL *slopes, const Operand *o, const REALV *tip,
    int block, int component, SUMV y[3][N_STATES])
{
    product(p + component * MATRIX_VALUES, o, tip, block, component, y[0]);
    product(slopes + component * MATRIX_VALUES, o, tip, block, component, y[1]);
    product(slopes + MATRIX_REALS + component * MATRIX_VALUES, o, tip, block, component, y[2]);
}

INLINE void derivative(const Job *job, DOUBLEV *values)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        SUMV factor[N_COMPONENTS];
        const INTV scale = align_components(job, tip_a, tip_b, 0, block, factor);
        SUMV likelihood = (SUMV)(0), first = (SUMV)(0), second = (SUMV)(0);
        for (int c = 0; c < N_COMPONENTS; c++) {
#if REVERSIBLE
            const __global REAL *d = job->decay + c * 3 * N_STATES;
            SUMV sa[N_STATES], sb[N_STATES];
            likelihood += to_eigenbasis(job, tip_a, tip_b, block, c, factor[c], sa, sb);
            UNROLL
            for (int k = 0; k < N_STATES - 1; k++) {    /* the last eigenvalue is 0 and adds nothing */
                const SUMV s = sa[k] * sb[k];
                likelihood = d[k] * s + likelihood;
                first = d[N_STATES + k] * s + first;
                second = d[2 * N_STATES + k] * s + second;
            }
#else
            const __global REAL *m = job->model + c * MODEL_VALUES;
            SUMV xa[N_STATES], b[3][N_STATES];
            load_operand(&job->a, tip_a, block, c, xa);
            three_orders(job->pb, job->qb, &job->b, tip_b, block, c, b);
            UNROLL
            for (int i = 0; i < N_STATES; i++) {
                const SUMV a = m[i] * (factor[c] * xa[i]);
                likelihood = a * b[0][i] + likelihood;
                first = a * b[1][i] + first;
                second = a * b[2][i] + second;
            }
#endif
        }
        DOUBLEV value[DERIVATIVE_VALUES];
        derivative_values(job, block, likelihood, first, second, scale, value);
        const DOUBLEV weight = load_weights(job, block);
        UNROLL
        for (int v = 0; v < DERIVATIVE_VALUES; v++)
            values[v] += weight * value[v];
    }
}

INLINE void insert_of(const Job *job, DOUBLEV *values)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES], tip_c[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        prepare_tip(&job->c, block, tip_c);
        SUMV likelihood = (SUMV)(0), factor[N_COMPONENTS];
        const INTV scale = align_components(job, tip_a, tip_b, tip_c, block, factor);
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *m = job->model + c * MODEL_VALUES;
            SUMV x[N_STATES], ya[N_STATES], yb[N_STATES], sum = (SUMV)(0);
            product(job->pa + c * MATRIX_VALUES, &job->a, tip_a, block, c, ya);
            product(job->pb + c * MATRIX_VALUES, &job->b, tip_b, block, c, yb);
            load_operand(&job->c, tip_c, block, c, x);
            UNROLL
            for (int i = 0; i < N_STATES; i++)
                sum = (m[i] * x[i]) * (ya[i] * yb[i]) + sum;
            likelihood = factor[c] * sum + likelihood;
        }
        values[0] += load_weights(job, block) * log_likelihood(job, block, likelihood, scale);
    }
}

/* An INSERT. On CPUs the compiler makes a loop for each case that searches need, as for NEWVIEW. */
INLINE void insert(const Job *job, DOUBLEV *values)
{
    Job known = *job;
    known.c.is_tip = 0;
    if (LANE_PER_ITEM || MANY_STATES || job->a.is_tip) {
        insert_of(&known, values);
    } else if (job->b.is_tip) {
        known.a.is_tip = 0;
        known.b.is_tip = 1;
        insert_of(&known, values);
    } else {
        known.a.is_tip = known.b.is_tip = 0;
        insert_of(&known, values);
    }
}

INLINE void triplet(const Job *job, DOUBLEV *values)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES], tip_c[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        prepare_tip(&job->c, block, tip_c);
        SUMV sum[TRIPLET_VALUES], factor[N_COMPONENTS];
        const INTV scale = align_components(job, tip_a, tip_b, tip_c, block, factor);
        UNROLL
        for (int v = 0; v < TRIPLET_VALUES; v++)
            sum[v] = (SUMV)(0);
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *m = job->model + c * MODEL_VALUES;
            SUMV a[3][N_STATES], b[3][N_STATES], s[3][N_STATES];
            three_orders(job->pa, job->qa, &job->a, tip_a, block, c, a);
            three_orders(job->pb, job->qb, &job->b, tip_b, block, c, b);
            three_orders(job->pc, job->qc, &job->c, tip_c, block, c, s);
            UNROLL
            for (int i = 0; i < N_STATES; i++) {
                const SUMV ai[3] = {a[0][i], a[1][i], a[2][i]};
                const SUMV bi[3] = {b[0][i], b[1][i], b[2][i]};
                const SUMV si[3] = {s[0][i], s[1][i], s[2][i]};
                add_triplet_terms(m[i] * factor[c], ai, bi, si, sum);
            }
        }
        DOUBLEV value[TRIPLET_VALUES];
        triplet_values(job, block, sum, scale, value);
        const DOUBLEV weight = load_weights(job, block);
        UNROLL
        for (int v = 0; v < TRIPLET_VALUES; v++)
            values[v] += weight * value[v];
    }
}

/* Each pattern's weight over its likelihood, at the scale of its largest component: the factor of its terms in a gradient. */
INLINE void pattern_shares(const Job *job, DOUBLEV *shares)
{
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        SUMV likelihood = (SUMV)(0), factor[N_COMPONENTS];
        align_components(job, tip_a, tip_b, 0, block, factor);
        for (int c = 0; c < N_COMPONENTS; c++) {
#if REVERSIBLE
            const __global REAL *d = job->decay + c * 3 * N_STATES;
            SUMV sa[N_STATES], sb[N_STATES];
            likelihood += to_eigenbasis(job, tip_a, tip_b, block, c, factor[c], sa, sb);
            UNROLL
            for (int k = 0; k < N_STATES - 1; k++)
                likelihood = (d[k] * sa[k]) * sb[k] + likelihood;
#else
            const __global REAL *m = job->model + c * MODEL_VALUES;
            SUMV xa[N_STATES], y[N_STATES];
            load_operand(&job->a, tip_a, block, c, xa);
            product(job->pb + c * MATRIX_VALUES, &job->b, tip_b, block, c, y);
            UNROLL
            for (int i = 0; i < N_STATES; i++)
                likelihood = (m[i] * (factor[c] * xa[i])) * y[i] + likelihood;
#endif
        }
        shares[block] = load_weights(job, block) / CONVERT(double, likelihood);
    }
}

/* GRADIENT_ROWS rows k of the S x S values of a table and component, from row `at` of those of all of them on. `ends`
 * [block][2][k] keeps both ends of the branch in the eigenbasis from the first of these rows to the last. */
INLINE void rate_matrix_gradient(const Job *job, const DOUBLEV *shares, SUMV *ends, int at, DOUBLEV *values)
{
    const __global REAL *difference = job->differences + (size_t)at * N_STATES;
    const int component = at / N_STATES % N_COMPONENTS, row = at % N_STATES;
    if (row == 0)
        for (int block = 0; block < job->n_blocks; block++) {
            REALV tip_a[N_STATES], tip_b[N_STATES];
            SUMV factor[N_COMPONENTS], *sa = ends + block * 2 * N_STATES;
            prepare_tip(&job->a, block, tip_a);
            prepare_tip(&job->b, block, tip_b);
            align_components(job, tip_a, tip_b, 0, block, factor);
            to_eigenbasis(job, tip_a, tip_b, block, component, factor[component], sa, sa + N_STATES);
        }
    for (int block = 0; block < job->n_blocks; block++) {
        const SUMV *sa = ends + block * 2 * N_STATES, *sb = sa + N_STATES;
        for (int k = 0; k < GRADIENT_ROWS; k++) {
            const DOUBLEV share = shares[block] * CONVERT(double, sa[row + k]);
            UNROLL
            for (int l = 0; l < N_STATES; l++)
                values[k * N_STATES + l] = share * CONVERT(double, sb[l]) + values[k * N_STATES + l];
        }
    }
    for (int v = 0; v < GRADIENT_ROWS * N_STATES; v++)
        values[v] *= (double)difference[v];
}

INLINE void mass_gradient(const Job *job, const DOUBLEV *shares, int component, DOUBLEV *values)
{
    const __global REAL *m = job->model + component * MODEL_VALUES;
    for (int block = 0; block < job->n_blocks; block++) {
        REALV tip_a[N_STATES], tip_b[N_STATES];
        SUMV xa[N_STATES], y[N_STATES], factor[N_COMPONENTS];
        prepare_tip(&job->a, block, tip_a);
        prepare_tip(&job->b, block, tip_b);
        align_components(job, tip_a, tip_b, 0, block, factor);
        load_operand(&job->a, tip_a, block, component, xa);
        product(job->pb + component * MATRIX_VALUES, &job->b, tip_b, block, component, y);
        UNROLL
        for (int i = 0; i < N_STATES; i++)
            values[i] += shares[block] * CONVERT(double, (m[i] * (factor[component] * xa[i])) * y[i]);
    }
}

#define VALUE_DOUBLES (LANE_PER_ITEM ? MAX_VALUES * VW : 1)
#define STAGED_DOUBLES (STAGED_MATRICES ? (2 * MATRIX_REALS * REAL_BITS + 63) / 64 : 0)
#define SHARED_DOUBLES (VALUE_DOUBLES > STAGED_DOUBLES ? VALUE_DOUBLES : STAGED_DOUBLES)       /* used one after the other */

/* Add the lanes of each value in a fixed order to this group's partial sums. */
INLINE void store_values(__global double *partial, const DOUBLEV *values, int n, int first_tile, __local double *shared)
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

/* One instruction on one tile: a CLA to `cla` and `scale`, or sums to `partial`, which begin with this tile if `first`. */
INLINE void run_instruction(const Job *job, int op, __global REAL *cla,
    __global int *scale, __global double *partial, int first, __local double *shared)
{
#if STAGED_MATRICES
    __local REAL *pa = (__local REAL *)shared, *pb = pa + MATRIX_REALS;
    const int n_staged = op == NEWVIEW ? MATRIX_REALS : 0;
    barrier(CLK_LOCAL_MEM_FENCE);       /* the last NEWVIEW may still be reading */
    for (int e = LANE; e < n_staged; e += VW) {
        pa[e] = job->pa[e];
        pb[e] = job->pb[e];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    const __global REAL *pa = job->pa, *pb = job->pb;
#endif
    DOUBLEV shares[TILE_BLOCKS];        /* what the passes need of each pattern */
    SUMV ends[TILE_BLOCKS * 2 * N_STATES];
    int n_passes = 1, n_made = 1;       /* how often values are added to the sums, and how many at a time */
    if (op == NEWVIEW) {
        newview(job, pa, pb, cla, scale);
        n_passes = 0;
    } else if (op == PROPAGATE) {
        propagate(job, cla, scale);
        n_passes = 0;
    } else if (op == EVALUATE) {
        evaluate(job, shares);
    } else if (op == RATE_MATRIX_GRADIENT) {
        pattern_shares(job, shares);
        n_passes = DIFFERENCE_TABLES * N_COMPONENTS * N_STATES / GRADIENT_ROWS;
        n_made = GRADIENT_ROWS * N_STATES;
    } else if (op == MASS_GRADIENT) {
        pattern_shares(job, shares);
        n_passes = N_COMPONENTS;
        n_made = N_STATES;
    } else if (op == DERIVATIVE) {
        n_made = DERIVATIVE_VALUES;
    } else if (op == TRIPLET) {
        n_made = TRIPLET_VALUES;
    }
    for (int pass = 0; pass < n_passes; pass++) {
        DOUBLEV values[MAX_VALUES];
        UNROLL
        for (int v = 0; v < MAX_VALUES; v++)
            values[v] = (DOUBLEV)(0);
        if (op == EVALUATE)
            weigh(job, shares, values);
        else if (op == DERIVATIVE)
            derivative(job, values);
        else if (op == INSERT)
            insert(job, values);
        else if (op == TRIPLET)
            triplet(job, values);
        else if (op == RATE_MATRIX_GRADIENT)
            rate_matrix_gradient(job, shares, ends, pass * GRADIENT_ROWS, values);
        else
            mass_gradient(job, shares, pass, values);
        store_values(partial + pass * n_made, values, n_made, first, shared);
    }
}
#endif
