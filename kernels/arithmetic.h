/* The arithmetic on one block; every function is called once per block and instruction. */

#define BLOCK_REALS (N_COMPONENTS * N_STATES)      /* vectors of a CLA entry */
#define MATRIX_REALS (N_COMPONENTS * N_STATES * N_STATES)
#define DECAY_REALS (N_COMPONENTS * 3 * N_STATES)

/* Where an instruction finds one of its operands: a CLA slot (index >= 0) or the tip with taxon ~index. */
typedef struct {
    const __global REAL *cla;   /* first block of the tile; unused for a tip */
    const __global int *scale;
    const __global CODE *code;  /* unused for a slot */
    int is_tip;
} Operand;

/* The state set of each lane as 0/1 conditional likelihoods, the same for every component. */
static inline void expand_tip(const __global CODE *code, REALV *x)
{
#if LANE_PER_ITEM
    const uint bits = code[LANE];
    for (int j = 0; j < N_STATES; j++)
        x[j] = (REAL)((bits >> j) & 1u);
#else
    INTV bits;
    for (int l = 0; l < VW; l++)
        ((int *)&bits)[l] = (int)code[l];
    for (int j = 0; j < N_STATES; j++)
        x[j] = TO_REALV((bits >> j) & 1);
#endif
}

/* Conditional likelihoods of one component of block `block`: x[j], j < N_STATES. `tip` holds the expanded tip. */
static inline void load_operand(const Operand *o, const REALV *tip, int block, int component, REALV *x)
{
    if (o->is_tip) {
        for (int j = 0; j < N_STATES; j++)
            x[j] = tip[j];
    } else {
        const __global REALV *v = (const __global REALV *)(o->cla) + ((size_t)block * BLOCK_REALS + component * N_STATES) * STRIDE + LANE;
        for (int j = 0; j < N_STATES; j++)
            x[j] = v[j * STRIDE];
    }
}

static inline void prepare_tip(const Operand *o, int block, REALV *tip)
{
    if (o->is_tip)
        expand_tip(o->code + (size_t)block * VW, tip);
}

static inline INTV load_scale(const Operand *o, int block)
{
    return o->is_tip ? (INTV)(0) : *((const __global INTV *)(o->scale) + (size_t)block * STRIDE + LANE);
}

/* y_i = sum_j P_ij x_j */
static inline void multiply(const __global REAL *p, const REALV *x, REALV *y)
{
    #pragma unroll
    for (int i = 0; i < N_STATES; i++) {
        REALV sum = p[i * N_STATES] * x[0];
        #pragma unroll
        for (int j = 1; j < N_STATES; j++)
            sum = p[i * N_STATES + j] * x[j] + sum;
        y[i] = sum;
    }
}

/* Bring each lane whose maximum fell below the threshold back to order 1 by its own power of two. */
static inline void rescale(__global REAL *cla, __global INTV *scale, REALV maximum)
{
    const REAL threshold = ldexp((REAL)1, -SCALE_BITS);
    if (!ANY(maximum < threshold))
        return;
#if LANE_PER_ITEM
    const int lane_end = 1;
    const size_t lane_start = LANE;
#else
    const int lane_end = VW;
    const size_t lane_start = 0;
#endif
    for (int l = 0; l < lane_end; l++) {
        const REAL m = ((const REAL *)&maximum)[l];
        if (!(m < threshold) || !(m > 0))
            continue;
        int exponent;
        frexp(m, &exponent);
        for (int r = 0; r < BLOCK_REALS; r++) {
            __global REAL *value = cla + (size_t)r * VW + lane_start + l;
            *value = ldexp(*value, -exponent);
        }
        ((__global int *)scale)[l] += exponent;
    }
}
