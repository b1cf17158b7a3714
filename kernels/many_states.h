/* The arithmetic on one block where tips have a table of state sets, as they have beyond 8 states, and a work-item owns whole
 * blocks: the same functions as arithmetic.h has for bit masks, with loops over states. Where work-items share the states of a lane, shared_states.h takes
 * the place of this file.
 *
 * Every S x S table M that multiplies CLAs (P matrices, their slopes, the two matrices of the model) is stored by columns, and
 * the sums of its rows follow as column S:   M[j][i] = M_ij,  M[S][i] = sum_j M_ij.
 * A tip code up to S (plltool/engine/codes.py) is then the column that holds M times the tip, and a lane looks it up.
 * In a P matrix column S is exactly 1. Other tips are expanded to the likelihoods of their
 * states, 0 and 1 for a set, and multiplied.
 *
 * A product is computed in tiles of ROWS rows, which stay in registers while j runs: for each j one load of x and ROWS
 * multiply-adds, whose other factor is broadcast from memory. The last tile ends with row S - 1, so it repeats some rows of the
 * tile before.
 *
 * Twin: numpy_engine.py. Tests: tests/engine/test_many_states.py.
 */

#if MANY_STATES && !SHARED_STATES
#define MAX_ROWS (VW * sizeof(SUM) >= 64 ? 24 : 12)    /* of 32 or 16 vector registers */
#define ROW_TILES ((N_STATES + MAX_ROWS - 1) / MAX_ROWS)
#define ROWS ((N_STATES + ROW_TILES - 1) / ROW_TILES)

/* Tips need no preparation: each component looks them up. */
typedef int Tip;

static inline Tip prepare_tip(const JOB_SPACE Operand *o, int block)
{
    return 0;
}

/* y_i of each lane is entry i of the column of a table that its code names. */
static inline void pick_columns(const __global REAL *table, const __global CODE *code, SUMV *y)
{
    const __global REAL *column[VW];
    #pragma unroll
    for (int l = 0; l < VW; l++)
        column[l] = table + (size_t)code[l] * N_STATES;
    for (int i = 0; i < N_STATES; i++) {
        REALV row;
        #pragma unroll
        for (int l = 0; l < VW; l++)
            row[l] = column[l][i];
        y[i] = CONVERT(SUM, row);
    }
}

/* Conditional likelihoods of one component of block `block`: x[j], j < N_STATES. */
static inline void load_operand(const JOB_SPACE Operand *o, const Tip *tip, int block, int component, SUMV *x)
{
    if (o->is_tip) {
        pick_columns(o->state_sets, o->code + (size_t)block * VW, x);
    } else {
        REALV y[N_STATES];
        load_cla(o, block, component, y);
        for (int j = 0; j < N_STATES; j++)
            x[j] = CONVERT(SUM, y[j]);
    }
}

/* y_i = sum_j M_ij x_j; without x those of the operand's CLA, which need no copy */
INLINE void multiply(
    const __global REAL *table, const SUMV *x, const JOB_SPACE Operand *o, int block, int component, SUMV *y)
{
    for (int tile = 0; tile < ROW_TILES; tile++) {
        const int first = min(tile * ROWS, N_STATES - ROWS);
        const __global REAL *entry = table + first;
        SUMV sum[ROWS], own = x ? x[0] : CONVERT(SUM, cla_entry(o, block, component, 0));
        #pragma unroll
        for (int r = 0; r < ROWS; r++)
            sum[r] = entry[r] * own;
        for (int j = 1; j < N_STATES; j++) {
            entry += N_STATES;
            own = x ? x[j] : CONVERT(SUM, cla_entry(o, block, component, j));
            #pragma unroll
            for (int r = 0; r < ROWS; r++)
                sum[r] = entry[r] * own + sum[r];
        }
        #pragma unroll
        for (int r = 0; r < ROWS; r++)
            y[first + r] = sum[r];
    }
}

/* y = M tip by look-up; returns 0, without y, if the code of a lane is not a column. */
static inline int look_up(const __global REAL *table, const __global CODE *code, SUMV *y)
{
    int largest = 0;
    for (int l = 0; l < VW; l++)
        largest = max(largest, (int)code[l]);
    if (largest > N_STATES)
        return 0;
    pick_columns(table, code, y);
    return 1;
}

/* y = M x for the operand's component of block `block` */
static inline void product(const __global REAL *table, const JOB_SPACE Operand *o, int block, int component, SUMV *y)
{
    if (!o->is_tip) {
        multiply(table, 0, o, block, component, y);
    } else if (!look_up(table, o->code + (size_t)block * VW, y)) {
        SUMV x[N_STATES];
        pick_columns(o->state_sets, o->code + (size_t)block * VW, x);
        multiply(table, x, o, block, component, y);
    }
}

/* All rows of M x at once; see arithmetic.h. */
typedef struct {
    SUMV y[N_STATES];
} Product;

INLINE void begin_product(
    const __global REAL *table, const JOB_SPACE Operand *o, const Tip *tip, int block, int component, Product *made)
{
    product(table, o, block, component, made->y);
}

INLINE SUMV product_row(const Product *made, int i)
{
    return made->y[i];
}
#endif
