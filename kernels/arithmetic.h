/* The arithmetic on one block. */

#define BLOCK_REALS (N_COMPONENTS * N_STATES)      /* vectors of a CLA entry */
#define MATRIX_REALS (N_COMPONENTS * MATRIX_VALUES)
#define DIFFERENCE_REALS (DIFFERENCE_TABLES * N_COMPONENTS * N_STATES * N_STATES)
#define DECAY_REALS (N_COMPONENTS * 3 * N_STATES)

/* Where an instruction finds one of its operands: a CLA slot (index >= 0) or the tip with taxon ~index. */
typedef struct {
    const __global REAL *cla;   /* first block of the tile; unused for a tip */
    const __global int *scale;
    const __global CODE *code;  /* unused for a slot */
    const __global REAL *state_sets;    /* of many states */
    int is_tip;
    uint lane;                  /* see LANE_OF */
} Operand;

INLINE REALV cla_entry(const JOB_SPACE Operand *o, int block, int component, int state)
{
    return *((const __global REALV *)(o->cla) + ((size_t)block * BLOCK_REALS + component * N_STATES + state) * STRIDE + LANE_OF(o));
}

INLINE void load_cla(const JOB_SPACE Operand *o, int block, int component, REALV *x)
{
    UNROLL
    for (int j = 0; j < N_STATES; j++)
        x[j] = cla_entry(o, block, component, j);
}

INLINE INTV load_scale(const JOB_SPACE Operand *o, int block, int component)
{
    return o->is_tip ? (INTV)(0) : *((const __global INTV *)(o->scale) + ((size_t)block * N_COMPONENTS + component) * STRIDE + LANE_OF(o));
}

/* The log of each lane, which is positive and finite: x = m 2^e with m from sqrt(1/2) to sqrt(2), log m = 2 atanh(s) with
 * s = (m - 1) / (m + 1), by its series in s^2: the first term left out is below 2^-60 of it, in single precision below 2^-28. Even
 * and odd terms are added side by side. PoCL calls `log` instead of inlining it, and its version takes three times as many operations. */
INLINE WIDEV log_of(WIDEV x)
{
    const WIDEBITSV exponent = (BITCAST(WIDE_BITS, x) - SQUARE_ROOT_OF_HALF) >> WIDE_MANTISSA_BITS;
    const WIDEV m = BITCAST(WIDE, BITCAST(WIDE_BITS, x) - (exponent << WIDE_MANTISSA_BITS));
    const WIDEV s = (m - 1.0) / (m + 1.0), z = s * s, zz = z * z;
#if HAS_DOUBLE
    const WIDEV even = (((zz * (1.0 / 19) + 1.0 / 15) * zz + 1.0 / 11) * zz + 1.0 / 7) * zz + 1.0 / 3;
    const WIDEV odd = (((zz * (1.0 / 21) + 1.0 / 17) * zz + 1.0 / 13) * zz + 1.0 / 9) * zz + 1.0 / 5;
#else
    const WIDEV even = zz * (1.0 / 7) + 1.0 / 3, odd = zz * (1.0 / 9) + 1.0 / 5;
#endif
    return CONVERT(WIDE, exponent) * LOG_2 + (2.0 * s + (2.0 * s) * (z * (odd * z + even)));
}

/* 2^exponent, 0 below the smallest normal number. */
INLINE REALV power_of_two(BITSV exponent)
{
    const BITSV biased = exponent + EXPONENT_BIAS;
    return BITCAST(REAL, (biased > 0 ? biased : (BITSV)(0)) << MANTISSA_BITS);
}

#define THRESHOLD ldexp((REAL)1, -SCALE_BITS)

/* The power of two to take out of a component whose largest entry this is: 0 above the threshold. */
INLINE BITSV power_to_take(REALV largest)
{
    const BITSV exponent = (BITCAST(BITS, largest) >> MANTISSA_BITS) - (EXPONENT_BIAS - 1);     /* largest < 2^exponent */
    return largest < THRESHOLD && largest > 0 ? exponent : (BITSV)(0);
}

/* Bring each component that fell below the threshold, lane by lane, back to order 1 by its own power of two.
 * `least` is the least of the components' maxima that are not 0. */
INLINE void rescale_small(__global REALV *cla, __global INTV *scale, REALV least)
{
    if (!ANY(least < THRESHOLD))
        return;
    #pragma unroll 1
    for (int c = 0; c < N_COMPONENTS; c++) {
        __global REALV *x = cla + c * N_STATES * STRIDE;
        REALV largest = x[0];
        UNROLL
        for (int i = 1; i < N_STATES; i++)
            largest = x[i * STRIDE] > largest ? x[i * STRIDE] : largest;
        const BITSV taken = power_to_take(largest);
        const REALV factor = power_of_two(-taken);
        UNROLL
        for (int i = 0; i < N_STATES; i++)
            x[i * STRIDE] *= factor;
        scale[c * STRIDE] += CONVERT(int, taken);
    }
}

#if !MANY_STATES
/* The codes of one block of a tip. */
INLINE INTV load_codes(const JOB_SPACE Operand *o, int block)
{
    const __global CODE *code = o->code + (size_t)block * VW;
#if LANE_PER_ITEM
    return (int)code[LANE_OF(o)];
#else
    return CONVERT(int, *(const __global CODEV *)code);
#endif
}

INLINE REALV has_state(INTV codes, int state)
{
    return CONVERT(REAL, (codes >> state) & 1);
}

/* The state set of each lane as 0/1 conditional likelihoods, the same for every component; 0 for a slot. */
#if LANE_PER_ITEM
typedef INTV Tip;

INLINE Tip prepare_tip(const JOB_SPACE Operand *o, int block)
{
    return load_codes(o, block) & -o->is_tip;
}

INLINE BITSV tip_bits(const Tip *tip, int state)
{
    return *tip >> state & 1 ? BITCAST(BITS, (REAL)1) : (BITSV)(0);
}
#else
typedef struct {
    REALV member[N_STATES];
} Tip;

INLINE BITSV tip_bits(const Tip *tip, int state)
{
    return BITCAST(BITS, tip->member[state]);
}

INLINE Tip prepare_tip(const JOB_SPACE Operand *o, int block)
{
    Tip tip;
    const INTV codes = load_codes(o, block) & -o->is_tip;
    UNROLL
    for (int j = 0; j < N_STATES; j++)
        tip.member[j] = has_state(codes, j);
    return tip;
}
#endif

/* Conditional likelihoods of one component of block `block`: x[j], j < N_STATES.
 * There is no branch: LLVM would load P before it, and spill it. */
INLINE void load_operand(const JOB_SPACE Operand *o, const Tip *tip, int block, int component, SUMV *x)
{
    const BITSV mask = (BITSV)(o->is_tip - 1);
    REALV y[N_STATES];
    load_cla(o, block, component, y);
    UNROLL
    for (int j = 0; j < N_STATES; j++)
        x[j] = CONVERT(SUM, BITCAST(REAL, (BITCAST(BITS, y[j]) & mask) | tip_bits(tip, j)));
}

/* sum_j p_j x_j */
INLINE REALV dot_row(const P_SPACE REAL *p, const REALV *x)
{
    REALV sum = p[0] * x[0];
    #pragma unroll
    for (int j = 1; j < N_STATES; j++)
        sum = p[j] * x[j] + sum;
    return sum;
}

INLINE SUMV dot_sums(const __global REAL *p, const SUMV *x)
{
    SUMV sum = p[0] * x[0];
    #pragma unroll
    for (int j = 1; j < N_STATES; j++)
        sum = p[j] * x[j] + sum;
    return sum;
}

/* M x for the operand's component of a block: each row is made where it is asked for, so that few are held at a time. */
typedef struct {
    const __global REAL *table;
    SUMV x[N_STATES];
} Product;

INLINE void begin_product(
    const __global REAL *table, const JOB_SPACE Operand *o, const Tip *tip, int block, int component, Product *product)
{
    product->table = table;
    load_operand(o, tip, block, component, product->x);
}

INLINE SUMV product_row(const Product *product, int i)
{
    return dot_sums(product->table + i * N_STATES, product->x);
}

/* One block of a tip, about to be multiplied with P. */
typedef struct {
#if SET_TABLES
    int set[VW];
#else
#if ROW_TABLES
    BITSV set;                              /* of the first TABLE_STATES states */
#endif
    REALV member[N_STATES];                 /* 0 or 1 for the other states */
#endif
} TipBlock;

INLINE void load_tip_block(const JOB_SPACE Operand *o, int block, TipBlock *tip)
{
#if SET_TABLES
    #pragma unroll
    for (int l = 0; l < VW; l++)
        tip->set[l] = o->code[(size_t)block * VW + l];
#else
    const INTV codes = load_codes(o, block);
    UNROLL
    for (int j = TABLE_STATES; j < N_STATES; j++)
        tip->member[j] = has_state(codes, j);
#if ROW_TABLES
    const INTV set = codes & ((1 << TABLE_STATES) - 1);
    tip->set = CONVERT(BITS, set);
#if TABLE_STATES < N_STATES
    tip->member[TABLE_STATES] += CONVERT(REAL, set == 0);      /* -1 where true: lane 0, which is picked then, has it */
#endif
#endif
#endif
}

#if VW == 8
#define PICK(t, i) ((REALV)(t[i[0]], t[i[1]], t[i[2]], t[i[3]], t[i[4]], t[i[5]], t[i[6]], t[i[7]]))
#elif VW == 16
#define PICK(t, i) \
    ((REALV)(t[i[0]], t[i[1]], t[i[2]], t[i[3]], t[i[4]], t[i[5]], t[i[6]], t[i[7]], \
             t[i[8]], t[i[9]], t[i[10]], t[i[11]], t[i[12]], t[i[13]], t[i[14]], t[i[15]]))
#endif

/* What row_product needs from one component of a block: x, or of a tip what its table does not tell; with SET_TABLES P x. */
INLINE void load_states(const P_SPACE REAL *branch, const JOB_SPACE Operand *o, const int is_tip, const TipBlock *tip, int block,
    int component, REALV *x)
{
    if (!is_tip) {
        load_cla(o, block, component, x);
        return;
    }
#if SET_TABLES
    const __global REALV *sums = (const __global REALV *)(branch + TABLES_START) + component * TABLE_ROWS;
    const REALV p[VW] = {sums[tip->set[0]], sums[tip->set[1]], sums[tip->set[2]], sums[tip->set[3]]};
    UNROLL
    for (int i = 0; i < N_STATES; i++)
        x[i] = (REALV)(p[0][i], p[1][i], p[2][i], p[3][i]);
#else
    UNROLL
    for (int j = TABLE_STATES; j < N_STATES; j++)
        x[j] = tip->member[j];
#endif
}

/* Row i of the component's P times the operand. */
INLINE REALV row_product(
    const P_SPACE REAL *branch, int component, int i, const int is_tip, const TipBlock *tip, const REALV *x)
{
    const P_SPACE REAL *p = branch + component * MATRIX_VALUES + i * N_STATES;
#if SET_TABLES
    if (is_tip)
        return x[i];
#elif ROW_TABLES
    if (is_tip) {
        const __global REAL *sums = branch + TABLES_START + (component * N_STATES + i) * VW;
        const REALV table = *(const __global REALV *)sums;
        REALV sum = PICK(table, tip->set);
        UNROLL
        for (int j = TABLE_STATES; j < N_STATES; j++)
            sum = (j == TABLE_STATES ? sums[0] : p[j]) * x[j] + sum;
        return sum;
    }
#endif
    return dot_row(p, x);
}
#endif
