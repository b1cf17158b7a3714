/* What each instruction of `traverse` does with one tile where a work-item owns all states of its lanes. The formulas are in
 * traverse.cl. Where work-items share the states of a lane, shared_states.h takes the place of this file.
 *
 * Every function loops over the tile's blocks. Those that make numbers add to `values`, one lane per pattern;
 * `store_values` adds up the lanes.
 */

#if !SHARED_STATES
#if INLINE_INSTRUCTIONS
#define STEP INLINE
#else
#define STEP __attribute__((noinline)) static
#endif
#define GRADIENT_ROWS (N_STATES <= 4 ? N_STATES : 1)    /* rows of a component's S x S sums that registers hold at once */
#define GRADIENT_VALUES (CAN(RATE_MATRIX_GRADIENT) ? GRADIENT_ROWS * N_STATES : CAN(MASS_GRADIENT) ? N_STATES : 0)
#define OTHER_VALUES (CAN(TRIPLET) ? TRIPLET_VALUES : CAN(DERIVATIVE) ? DERIVATIVE_VALUES : 1)
#define MAX_VALUES (GRADIENT_VALUES > OTHER_VALUES ? GRADIENT_VALUES : OTHER_VALUES)

#if MANY_STATES
#define SELDOM __attribute__((noinline)) static     /* compiled once: it is large, and only components of rate 0 need it */
#else
#define SELDOM INLINE
#endif

/* Whether the ends of an instruction have a state in common, lane by lane; `tip_c` is 0 where there are two ends. */
SELDOM INTV share_a_state(
    const JOB_SPACE Job *job, const Tip *tip_a, const Tip *tip_b, const Tip *tip_c, int block, int component)
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

/* A component's scaling count: the sum of the counts of its operands. A component of rate 0, whose likelihoods are 0 or 1
 * and never scaled, is impossible where its ends disagree; its count is then left out. */
INLINE INTV count_scale(
    const JOB_SPACE Job *job, const Tip *tip_a, const Tip *tip_b, const Tip *tip_c, int block, int component)
{
    INTV count = load_scale(&job->a, block, component) + load_scale(&job->b, block, component);
    if (tip_c)
        count += load_scale(&job->c, block, component);
    if (job->has_zero_rates && job->model[(component + 1) * MODEL_VALUES - 1] == 0)
        count = share_a_state(job, tip_a, tip_b, tip_c, block, component) ? count : (INTV)(IMPOSSIBLE);
    return count;
}

/* The largest count of a pattern's components. */
INLINE INTV largest_scale(const JOB_SPACE Job *job, const Tip *tip_a, const Tip *tip_b, const Tip *tip_c, int block)
{
    INTV largest = (INTV)(INT_MIN);
    #pragma unroll COMPONENTS_AT_ONCE
    for (int c = 0; c < N_COMPONENTS; c++) {
        const INTV count = count_scale(job, tip_a, tip_b, tip_c, block, c);
        largest = count > largest ? count : largest;
    }
    return largest;
}

/* The factor that brings a component to the scale of the largest one, 1 if there is no other. It is made again rather than kept:
 * an array that a loop over components reads would be in a GPU's memory. */
INLINE SUMV align_component(const JOB_SPACE Job *job, const Tip *tip_a, const Tip *tip_b, const Tip *tip_c, int block,
    int component, INTV largest)
{
    if (N_COMPONENTS == 1)
        return (SUMV)(1);
    const INTV count = count_scale(job, tip_a, tip_b, tip_c, block, component);
    return CONVERT(SUM, power_of_two(CONVERT(BITS, count - largest)));
}

/* The least of the components' maxima so far, except those that are 0; a component of rate 0 is 0 wherever taxa differ. */
INLINE REALV least_positive(REALV least, REALV largest)
{
    return largest > (REALV)(0) && largest < least ? largest : least;
}

/* Where the work-item writes block `block` of a CLA. */
INLINE __global REALV *cla_block(const JOB_SPACE Job *job, const JOB_SPACE Output *output, int block)
{
    return (__global REALV *)(output->cla + (size_t)block * BLOCK_REALS * VW) + LANE_OF(job);
}

INLINE __global INTV *scale_block(const JOB_SPACE Job *job, const JOB_SPACE Output *output, int block)
{
    return (__global INTV *)(output->scale + (size_t)block * N_COMPONENTS * VW) + LANE_OF(job);
}

#if MANY_STATES
/* Components in the outer loop, blocks in the inner: the two tables of a component stay in the cache for all blocks. */
INLINE void newview(const JOB_SPACE Job *job, const JOB_SPACE Output *output, const P_SPACE REAL *pa, const P_SPACE REAL *pb)
{
    REALV least[MOST_BLOCKS];       /* of the components' maxima that are not 0 */
    for (int c = 0; c < N_COMPONENTS; c++)
        for (int block = 0; block < BLOCKS(job); block++) {
            SUMV ya[N_STATES], yb[N_STATES];
            product(pa + c * MATRIX_VALUES, &job->a, block, c, ya);
            product(pb + c * MATRIX_VALUES, &job->b, block, c, yb);
            __global REALV *out = cla_block(job, output, block) + c * N_STATES * STRIDE;
            REALV largest = (REALV)(0);
            UNROLL
            for (int i = 0; i < N_STATES; i++) {
                const REALV z = CONVERT(REAL, ya[i] * yb[i]);
                out[i * STRIDE] = z;
                largest = z > largest ? z : largest;
            }
            scale_block(job, output, block)[c * STRIDE] = load_scale(&job->a, block, c) + load_scale(&job->b, block, c);
            least[block] = least_positive(c ? least[block] : (REALV)(1), largest);
        }
    for (int block = 0; block < BLOCKS(job); block++)
        rescale_small(cla_block(job, output, block), scale_block(job, output, block), least[block]);
}

#else
/* A NEWVIEW. On CPUs it is called with `a_is_tip` and `b_is_tip` as constants, and the compiler makes a loop for each case. */
INLINE void newview_of(const JOB_SPACE Job *job, const JOB_SPACE Output *output, const JOB_SPACE Operand *a,
    const int a_is_tip, const P_SPACE REAL *pa, const JOB_SPACE Operand *b, const int b_is_tip, const P_SPACE REAL *pb)
{
    const int n_blocks = BLOCKS(job);
    REALV least[MOST_BLOCKS], least_of_all = (REALV)(1);        /* of the components' maxima that are not 0 */
    for (int block = 0; block < n_blocks; block++) {
        TipBlock tip_a, tip_b;
        if (a_is_tip)
            load_tip_block(a, block, &tip_a);
        if (b_is_tip)
            load_tip_block(b, block, &tip_b);
        __global REALV *out = cla_block(job, output, block);
        __global INTV *out_scale = scale_block(job, output, block);
        least[block] = (REALV)(1);
        #pragma unroll COMPONENTS_AT_ONCE
        for (int c = 0; c < N_COMPONENTS; c++) {
            REALV xa[N_STATES], xb[N_STATES], largest = (REALV)(0);
            load_states(pa, a, a_is_tip, &tip_a, block, c, xa);
            load_states(pb, b, b_is_tip, &tip_b, block, c, xb);
            #pragma unroll
            for (int i = 0; i < N_STATES; i++) {
                const REALV z = row_product(pa, c, i, a_is_tip, &tip_a, xa) * row_product(pb, c, i, b_is_tip, &tip_b, xb);
                out[(c * N_STATES + i) * STRIDE] = z;
                largest = z > largest ? z : largest;
            }
            least[block] = least_positive(least[block], largest);
            out_scale[c * STRIDE] = (a_is_tip ? (INTV)(0) : load_scale(a, block, c)) + (b_is_tip ? (INTV)(0) : load_scale(b, block, c));
        }
        least_of_all = least[block] < least_of_all ? least[block] : least_of_all;
    }
    if (!ANY(least_of_all < THRESHOLD))
        return;
    for (int block = 0; block < n_blocks; block++)
        rescale_small(cla_block(job, output, block), scale_block(job, output, block), least[block]);
}

/* The output may be the slot of an operand: a component is read before it is written. */
INLINE void newview(const JOB_SPACE Job *job, const JOB_SPACE Output *output, const P_SPACE REAL *pa, const P_SPACE REAL *pb)
{
#if LANE_PER_ITEM
    newview_of(job, output, &job->a, job->a.is_tip, pa, &job->b, job->b.is_tip, pb);
#else
    if (job->a.is_tip && job->b.is_tip)
        newview_of(job, output, &job->a, 1, pa, &job->b, 1, pb);
    else if (job->a.is_tip)
        newview_of(job, output, &job->a, 1, pa, &job->b, 0, pb);
    else if (job->b.is_tip)
        newview_of(job, output, &job->b, 1, pb, &job->a, 0, pa);
    else
        newview_of(job, output, &job->a, 0, pa, &job->b, 0, pb);
#endif
}
#endif

STEP void propagate(const JOB_SPACE Job *job, const JOB_SPACE Output *output)
{
    for (int block = 0; block < BLOCKS(job); block++) {
        const Tip tip = prepare_tip(&job->a, block);
        LOOP_COMPONENTS
        for (int c = 0; c < N_COMPONENTS; c++) {
            Product pa;
            begin_product(job->pa + c * MATRIX_VALUES, &job->a, &tip, block, c, &pa);
            UNROLL
            for (int i = 0; i < N_STATES; i++)
                cla_block(job, output, block)[(c * N_STATES + i) * STRIDE] = CONVERT(REAL, product_row(&pa, i));
            scale_block(job, output, block)[c * STRIDE] = load_scale(&job->a, block, c);
        }
    }
}

/* lnL of each pattern. */
STEP void evaluate(const JOB_SPACE Job *job, WIDEV *lnl)
{
    for (int block = 0; block < BLOCKS(job); block++) {
        const Tip tip_a = prepare_tip(&job->a, block);
        const Tip tip_b = prepare_tip(&job->b, block);
        SUMV likelihood = (SUMV)(0);
        const INTV scale = largest_scale(job, &tip_a, &tip_b, 0, block);
        LOOP_COMPONENTS
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *m = job->model + c * MODEL_VALUES;
            SUMV xa[N_STATES], sum = (SUMV)(0);
            Product pb;
            load_operand(&job->a, &tip_a, block, c, xa);
            begin_product(job->pb + c * MATRIX_VALUES, &job->b, &tip_b, block, c, &pb);
            UNROLL
            for (int i = 0; i < N_STATES; i++)
                sum = (m[i] * xa[i]) * product_row(&pb, i) + sum;
            likelihood = align_component(job, &tip_a, &tip_b, 0, block, c, scale) * sum + likelihood;
        }
        lnl[block] = log_likelihood(job, block, likelihood, scale);
        if (job->site)
            *((__global WIDEV *)job->site + (size_t)block * STRIDE + LANE_OF(job)) = lnl[block];
    }
}

/* The sum of the patterns' lnL times their weights. */
STEP void weigh(const JOB_SPACE Job *job, const WIDEV *lnl, WIDEV *values)
{
    for (int block = 0; block < BLOCKS(job); block++)
        values[0] += load_weights(job, block) * lnl[block];
}

/* Both ends of the job's branch in the eigenbasis of one component: sa = U^T m a, sb = U^-1 b; returns sum_i m_i a_i b_i. */
INLINE SUMV to_eigenbasis(
    const JOB_SPACE Job *job, const Tip *tip_a, const Tip *tip_b, int block, int component, Product *sa, Product *sb)
{
    const __global REAL *m = job->model + component * MODEL_VALUES;
    const __global REAL *ua = m + N_STATES, *ub = ua + MATRIX_VALUES;
    SUMV xa[N_STATES], xb[N_STATES];
    load_operand(&job->a, tip_a, block, component, xa);
    load_operand(&job->b, tip_b, block, component, xb);
    begin_product(ua, &job->a, tip_a, block, component, sa);
    begin_product(ub, &job->b, tip_b, block, component, sb);
    SUMV at_zero_length = (SUMV)(0);
    UNROLL
    for (int i = 0; i < N_STATES; i++)
        at_zero_length = (m[i] * xa[i]) * xb[i] + at_zero_length;
    return at_zero_length;
}

/* P x, P' x and P'' x for the operand's component of block `block`. */
INLINE void begin_three_orders(const __global REAL *p, const __global REAL *slopes, const JOB_SPACE Operand *o, const Tip *tip,
    int block, int component, Product *y)
{
    begin_product(p + component * MATRIX_VALUES, o, tip, block, component, y);
    begin_product(slopes + component * MATRIX_VALUES, o, tip, block, component, y + 1);
    begin_product(slopes + MATRIX_REALS + component * MATRIX_VALUES, o, tip, block, component, y + 2);
}

/* Make the values of an instruction by `step`. On CPUs the compiler makes a loop for each kind of ends that searches need, as for
 * NEWVIEW: b may be a tip where a is none; c, if there is one, is a slot. */
#if LANE_PER_ITEM
#define BY_KIND_OF_ENDS(step) step(job, values);
#else
#define BY_KIND_OF_ENDS(step) \
    Job known = *job; \
    known.c.is_tip = 0; \
    if (MANY_STATES || job->a.is_tip) { \
        step(&known, values); \
    } else if (job->b.is_tip) { \
        known.a.is_tip = 0; \
        known.b.is_tip = 1; \
        step(&known, values); \
    } else { \
        known.a.is_tip = known.b.is_tip = 0; \
        step(&known, values); \
    }
#endif

INLINE void derivative_of(const JOB_SPACE Job *job, WIDEV *values)
{
    for (int block = 0; block < BLOCKS(job); block++) {
        const Tip tip_a = prepare_tip(&job->a, block);
        const Tip tip_b = prepare_tip(&job->b, block);
        const INTV scale = largest_scale(job, &tip_a, &tip_b, 0, block);
        SUMV likelihood = (SUMV)(0), first = (SUMV)(0), second = (SUMV)(0);
        LOOP_COMPONENTS
        for (int c = 0; c < N_COMPONENTS; c++) {
            const SUMV factor = align_component(job, &tip_a, &tip_b, 0, block, c, scale);
#if REVERSIBLE
            const __global REAL *d = job->decay + c * 3 * N_STATES;
            Product sa, sb;
            likelihood += factor * to_eigenbasis(job, &tip_a, &tip_b, block, c, &sa, &sb);
            UNROLL
            for (int k = 0; k < N_STATES - 1; k++) {    /* the last eigenvalue is 0 and adds nothing */
                const SUMV s = (product_row(&sa, k) * factor) * product_row(&sb, k);
                likelihood = d[k] * s + likelihood;
                first = d[N_STATES + k] * s + first;
                second = d[2 * N_STATES + k] * s + second;
            }
#else
            const __global REAL *m = job->model + c * MODEL_VALUES;
            SUMV xa[N_STATES];
            Product b[3];
            load_operand(&job->a, &tip_a, block, c, xa);
            begin_three_orders(job->pb, job->qb, &job->b, &tip_b, block, c, b);
            UNROLL
            for (int i = 0; i < N_STATES; i++) {
                const SUMV a = m[i] * (factor * xa[i]);
                likelihood = a * product_row(&b[0], i) + likelihood;
                first = a * product_row(&b[1], i) + first;
                second = a * product_row(&b[2], i) + second;
            }
#endif
        }
        WIDEV value[DERIVATIVE_VALUES];
        derivative_values(job, block, likelihood, first, second, scale, value);
        const WIDEV weight = load_weights(job, block);
        UNROLL
        for (int v = 0; v < DERIVATIVE_VALUES; v++)
            values[v] += weight * value[v];
    }
}

STEP void derivative(const JOB_SPACE Job *job, WIDEV *values)
{
    BY_KIND_OF_ENDS(derivative_of)
}

INLINE void insert_of(const JOB_SPACE Job *job, WIDEV *values)
{
    for (int block = 0; block < BLOCKS(job); block++) {
        const Tip tip_a = prepare_tip(&job->a, block);
        const Tip tip_b = prepare_tip(&job->b, block);
        const Tip tip_c = prepare_tip(&job->c, block);
        SUMV likelihood = (SUMV)(0);
        const INTV scale = largest_scale(job, &tip_a, &tip_b, &tip_c, block);
        LOOP_COMPONENTS
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *m = job->model + c * MODEL_VALUES;
            SUMV sum = (SUMV)(0);
            Product pa, pb;
            begin_product(job->pa + c * MATRIX_VALUES, &job->a, &tip_a, block, c, &pa);
            begin_product(job->pb + c * MATRIX_VALUES, &job->b, &tip_b, block, c, &pb);
            LOOP_ROWS
            for (int i = 0; i < N_STATES; i++)
                sum = (m[i] * CONVERT(SUM, cla_entry(&job->c, block, c, i))) * (product_row(&pa, i) * product_row(&pb, i)) + sum;
            likelihood = align_component(job, &tip_a, &tip_b, &tip_c, block, c, scale) * sum + likelihood;
        }
        values[0] += load_weights(job, block) * log_likelihood(job, block, likelihood, scale);
    }
}

STEP void insert(const JOB_SPACE Job *job, WIDEV *values)
{
    BY_KIND_OF_ENDS(insert_of)
}

STEP void triplet(const JOB_SPACE Job *job, WIDEV *values)
{
    for (int block = 0; block < BLOCKS(job); block++) {
        const Tip tip_a = prepare_tip(&job->a, block);
        const Tip tip_b = prepare_tip(&job->b, block);
        const Tip tip_c = prepare_tip(&job->c, block);
        SUMV sum[TRIPLET_VALUES];
        const INTV scale = largest_scale(job, &tip_a, &tip_b, &tip_c, block);
        UNROLL
        for (int v = 0; v < TRIPLET_VALUES; v++)
            sum[v] = (SUMV)(0);
        LOOP_COMPONENTS
        for (int c = 0; c < N_COMPONENTS; c++) {
            const __global REAL *m = job->model + c * MODEL_VALUES;
            const SUMV factor = align_component(job, &tip_a, &tip_b, &tip_c, block, c, scale);
            Product a[3], b[3], s[3];
            begin_three_orders(job->pa, job->qa, &job->a, &tip_a, block, c, a);
            begin_three_orders(job->pb, job->qb, &job->b, &tip_b, block, c, b);
            begin_three_orders(job->pc, job->qc, &job->c, &tip_c, block, c, s);
            LOOP_ROWS
            for (int i = 0; i < N_STATES; i++) {
                const SUMV ai[3] = {product_row(a, i), product_row(a + 1, i), product_row(a + 2, i)};
                const SUMV bi[3] = {product_row(b, i), product_row(b + 1, i), product_row(b + 2, i)};
                const SUMV si[3] = {product_row(s, i), product_row(s + 1, i), product_row(s + 2, i)};
                add_triplet_terms(m[i] * factor, ai, bi, si, sum);
            }
        }
        WIDEV value[TRIPLET_VALUES];
        triplet_values(job, block, sum, scale, value);
        const WIDEV weight = load_weights(job, block);
        UNROLL
        for (int v = 0; v < TRIPLET_VALUES; v++)
            values[v] += weight * value[v];
    }
}

/* Whether a gradient keeps both ends of its branch in the eigenbasis, so that it makes them once. A GPU's registers do not hold
 * them, and many components not even a stack. */
#define KEEPS_ENDS (REVERSIBLE && !LANE_PER_ITEM && N_COMPONENTS * N_STATES <= 256)
#define MOST_ENDS ((KEEPS_ENDS ? N_COMPONENTS : 1) * MOST_BLOCKS * 2 * N_STATES)

/* Both ends [2][k] of a component, those of the last one if not all are kept. */
INLINE SUMV *ends_of(SUMV *ends, int component, int block)
{
    return ends + ((KEEPS_ENDS ? component : 0) * MOST_BLOCKS + block) * 2 * N_STATES;
}

INLINE void keep_ends(const Product *sa, const Product *sb, SUMV factor, SUMV *ends)
{
    UNROLL
    for (int k = 0; k < N_STATES; k++) {
        ends[k] = product_row(sa, k) * factor;
        ends[N_STATES + k] = product_row(sb, k);
    }
}

/* Each pattern's weight over its likelihood, at the scale of its largest component: the factor of its terms in a gradient. */
STEP void pattern_shares(const JOB_SPACE Job *job, WIDEV *shares, SUMV *ends)
{
    for (int block = 0; block < BLOCKS(job); block++) {
        const Tip tip_a = prepare_tip(&job->a, block);
        const Tip tip_b = prepare_tip(&job->b, block);
        SUMV likelihood = (SUMV)(0);
        const INTV scale = largest_scale(job, &tip_a, &tip_b, 0, block);
        LOOP_COMPONENTS
        for (int c = 0; c < N_COMPONENTS; c++) {
            const SUMV factor = align_component(job, &tip_a, &tip_b, 0, block, c, scale);
#if REVERSIBLE
            const __global REAL *d = job->decay + c * 3 * N_STATES;
            Product sa, sb;
            likelihood += factor * to_eigenbasis(job, &tip_a, &tip_b, block, c, &sa, &sb);
            if (KEEPS_ENDS)
                keep_ends(&sa, &sb, factor, ends_of(ends, c, block));
            UNROLL
            for (int k = 0; k < N_STATES - 1; k++)
                likelihood = (d[k] * (product_row(&sa, k) * factor)) * product_row(&sb, k) + likelihood;
#else
            const __global REAL *m = job->model + c * MODEL_VALUES;
            SUMV xa[N_STATES];
            Product pb;
            load_operand(&job->a, &tip_a, block, c, xa);
            begin_product(job->pb + c * MATRIX_VALUES, &job->b, &tip_b, block, c, &pb);
            UNROLL
            for (int i = 0; i < N_STATES; i++)
                likelihood = (m[i] * (factor * xa[i])) * product_row(&pb, i) + likelihood;
#endif
        }
        shares[block] = load_weights(job, block) / CONVERT(WIDE, likelihood);
    }
}

/* GRADIENT_ROWS rows k of the S x S values of a table and component, from row `at` of those of all of them on. `ends` keeps both
 * ends of the branch from the first of these rows to the last, or longer. */
STEP void rate_matrix_gradient(const JOB_SPACE Job *job, const WIDEV *shares, SUMV *ends, int at, WIDEV *values)
{
    const __global REAL *difference = job->differences + (size_t)at * N_STATES;
    const int component = at / N_STATES % N_COMPONENTS, row = at % N_STATES;
    if (!KEEPS_ENDS && row == 0)
        for (int block = 0; block < BLOCKS(job); block++) {
            Product sa, sb;
            const Tip tip_a = prepare_tip(&job->a, block);
            const Tip tip_b = prepare_tip(&job->b, block);
            const INTV scale = largest_scale(job, &tip_a, &tip_b, 0, block);
            const SUMV factor = align_component(job, &tip_a, &tip_b, 0, block, component, scale);
            to_eigenbasis(job, &tip_a, &tip_b, block, component, &sa, &sb);
            keep_ends(&sa, &sb, factor, ends_of(ends, component, block));
        }
    for (int block = 0; block < BLOCKS(job); block++) {
        const SUMV *sa = ends_of(ends, component, block), *sb = sa + N_STATES;
        for (int k = 0; k < GRADIENT_ROWS; k++) {
            const WIDEV share = shares[block] * CONVERT(WIDE, sa[row + k]);
            UNROLL
            for (int l = 0; l < N_STATES; l++)
                values[k * N_STATES + l] = share * CONVERT(WIDE, sb[l]) + values[k * N_STATES + l];
        }
    }
    for (int v = 0; v < GRADIENT_ROWS * N_STATES; v++)
        values[v] *= (WIDE)difference[v];
}

STEP void mass_gradient(const JOB_SPACE Job *job, const WIDEV *shares, int component, WIDEV *values)
{
    const __global REAL *m = job->model + component * MODEL_VALUES;
    for (int block = 0; block < BLOCKS(job); block++) {
        SUMV xa[N_STATES];
        Product pb;
        const Tip tip_a = prepare_tip(&job->a, block);
        const Tip tip_b = prepare_tip(&job->b, block);
        const INTV scale = largest_scale(job, &tip_a, &tip_b, 0, block);
        const SUMV factor = align_component(job, &tip_a, &tip_b, 0, block, component, scale);
        load_operand(&job->a, &tip_a, block, component, xa);
        begin_product(job->pb + component * MATRIX_VALUES, &job->b, &tip_b, block, component, &pb);
        UNROLL
        for (int i = 0; i < N_STATES; i++)
            values[i] += shares[block] * CONVERT(WIDE, (m[i] * (factor * xa[i])) * product_row(&pb, i));
    }
}

#define VALUE_DOUBLES (LANE_PER_ITEM ? MAX_VALUES * VW : 1)
#define STAGED_DOUBLES (STAGED_MATRICES ? (2 * MATRIX_REALS * REAL_BITS + 63) / 64 : 0)
#define SHARED_DOUBLES (VALUE_DOUBLES > STAGED_DOUBLES ? VALUE_DOUBLES : STAGED_DOUBLES)       /* used one after the other */

#define LANE_RUNS (VW < 8 ? 1 : 8)      /* of lanes that are added by a work-item each, before another adds their sums */
#define RUN_LANES (VW / LANE_RUNS)

/* Add the lanes of each value in a fixed order to this group's partial sums. */
INLINE void store_values(__global WIDE_SUM *partial, const WIDEV *values, int n, int first_tile, __local WIDE_SUM *shared)
{
#if LANE_PER_ITEM
    UNROLL
    for (int v = 0; v < MAX_VALUES; v++)        /* registers have no index */
        if (v < n)
            shared[v * VW + LANE] = to_wide_sum(values[v]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int run = LANE; run < n * LANE_RUNS; run += VW) {
        WIDE_SUM sum = to_wide_sum(0);
        for (int l = 0; l < RUN_LANES; l++)
            sum = add_wide_sums(sum, shared[run * RUN_LANES + l]);
        shared[run * RUN_LANES] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int v = LANE; v < n; v += VW) {
        WIDE_SUM sum = to_wide_sum(0);
        for (int run = 0; run < LANE_RUNS; run++)
            sum = add_wide_sums(sum, shared[(v * LANE_RUNS + run) * RUN_LANES]);
        partial[v] = first_tile ? sum : add_wide_sums(partial[v], sum);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    for (int v = 0; v < n; v++) {
        const WIDE_SUM sum = add_lanes(values[v]);
        partial[v] = first_tile ? sum : add_wide_sums(partial[v], sum);
    }
#endif
}

/* One instruction on one tile; nobody reads `shared` any more. */
INLINE void run_instruction(const JOB_SPACE Job *job, const JOB_SPACE Output *output, __local WIDE_SUM *shared)
{
    const int op = output->op;
#if STAGED_MATRICES
    __local REAL *pa = (__local REAL *)shared, *pb = pa + MATRIX_REALS;
    const int n_staged = IS(op, NEWVIEW) ? MATRIX_REALS : 0;
    for (int e = LANE; e < n_staged; e += VW) {
        pa[e] = job->pa[e];
        pb[e] = job->pb[e];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    const __global REAL *pa = job->pa, *pb = job->pb;
#endif
    WIDEV shares[MOST_BLOCKS];        /* what the passes need of each pattern */
    SUMV ends[MOST_ENDS];               /* of its branch */
    int n_passes = 1, n_made = 1;       /* how often values are added to the sums, and how many at a time */
    if (IS(op, NEWVIEW)) {
        newview(job, output, pa, pb);
        n_passes = 0;
    } else if (IS(op, PROPAGATE)) {
        propagate(job, output);
        n_passes = 0;
    } else if (IS(op, EVALUATE)) {
        evaluate(job, shares);
    } else if (IS(op, RATE_MATRIX_GRADIENT)) {
        pattern_shares(job, shares, ends);
        n_passes = DIFFERENCE_TABLES * N_COMPONENTS * N_STATES / GRADIENT_ROWS;
        n_made = GRADIENT_ROWS * N_STATES;
    } else if (IS(op, MASS_GRADIENT)) {
        pattern_shares(job, shares, ends);
        n_passes = N_COMPONENTS;
        n_made = N_STATES;
    } else if (IS(op, DERIVATIVE)) {
        n_made = DERIVATIVE_VALUES;
    } else if (IS(op, TRIPLET)) {
        n_made = TRIPLET_VALUES;
    }
    for (int pass = 0; pass < n_passes; pass++) {
        WIDEV values[MAX_VALUES];
        UNROLL
        for (int v = 0; v < MAX_VALUES; v++)
            values[v] = (WIDEV)(0);
        if (IS(op, EVALUATE))
            weigh(job, shares, values);
        else if (IS(op, DERIVATIVE))
            derivative(job, values);
        else if (IS(op, INSERT))
            insert(job, values);
        else if (IS(op, TRIPLET))
            triplet(job, values);
        else if (IS(op, RATE_MATRIX_GRADIENT))
            rate_matrix_gradient(job, shares, ends, pass * GRADIENT_ROWS, values);
        else if (CAN(MASS_GRADIENT))
            mass_gradient(job, shares, pass, values);
        store_values(output->partial + pass * n_made, values, n_made, output->begins, shared);
    }
}
#endif
