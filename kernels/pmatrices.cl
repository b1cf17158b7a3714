/* pmatrices: transition matrices of all branches, components and P sets at once.
 *
 *   P(t)   = I + U diag(expm1(l t)) U^-1      expm1 keeps every digit where t is near its minimum
 *   P'(t)  = U diag(l exp(l t)) U^-1,  P''(t) = U diag(l^2 exp(l t)) U^-1        with l = eigenvalue * rate
 *   F(t)_kl = (exp(l_k t) - exp(l_l t)) / (l_k - l_l), or t exp(l_k t) where l_k = l_l: divided differences, by which
 *   P(t) changes with the rate matrix, dP = U (F * (U^-1 d(Q rate) U)) U^-1      Daleckii & Krein 1965
 *
 * Where processes are not reversible (REVERSIBLE 0), eigenvalues may come in complex pairs, and
 *   P(t) = U exp(B t) U^-1, where B has the block [[a, b], [-b, a]] for a pair a + bi, a - bi, at neighbouring places of which
 *          the first is even; the array eigen holds the parts b and -b behind U^-1
 *   P*(t)_ij = pi_j P(t)_ji / pi_i is that of the process in reverse; a branch of negative length -t gets it, and its slopes.
 *          With it a likelihood passes a branch from its lower to its upper end, seen from the root. pi is the last row of U^-1
 *   F      is complex: F_kl of the eigenvalues a + bi in these places, and G_kl with b_l of the other sign. It acts on the sums
 *          s_kl of RATE_MATRIX_GRADIENT as four real tables T: with k~ the other place of k's pair, the gradient is
 *          g_kl = (T0 s)_kl + (T1 s)_k~l + (T2 s)_kl~ + (T3 s)_k~l~ where T s is taken element by element,
 *          T0 = Re(F + G) / 2, T1 = Im(F + G) / 2, T2 = -Im(F - G) / 2, T3 = Re(F - G) / 2
 *
 * Work: a work-item takes a (pset, BRANCH_WIDTH branches, component, share of the columns), or several if there are fewer items;
 * it computes in double whatever REAL is. With few states there is one share; with many, a share is ITEM_COLUMNS columns and their row sums
 * (many_states.h), so that exponentials are computed once for several columns. With many states on a GPU a work-group takes what is
 * an item elsewhere: its work-items make exponentials, which go to local memory, and then rows. Suchard & Rambaut 2009, figure 1,
 * share the diagonals so, and tiles of U and U^-1 besides, which are left to caches here.
 * Arrays: eigen double [pset][component][ eigenvalue * rate: N_STATES | U as [k][i] | U^-1 as [k][j] ],
 * lengths double [pset][branch]; outputs as in traverse.cl. Types and order: plltool/engine/contract.py.
 * Twin: plltool/engine/branch_tables.py, which makes them for devices without double precision. Test: tests/engine/test_pmatrices.py.
 */

#define SHARES ((N_STATES + PMATRIX_COLUMNS - 1) / PMATRIX_COLUMNS)
#define ITEM_COLUMNS ((N_STATES + SHARES - 1) / SHARES)
#if MANY_STATES
#define ENTRY(i, j) ((j) * N_STATES + (i))
#else
#define ENTRY(i, j) ((i) * N_STATES + (j))
#endif
#if LANE_PER_ITEM
typedef double DOUBLEV;
#else
typedef PASTE(double, DOUBLE_LANES) DOUBLEV;
#endif

/* On CPUs work-items compute in vectors: vectors of branches with few states, of rows with many: of at most
 * as many as there are states. */
#if LANE_PER_ITEM
#define BRANCH_WIDTH 1
#define ROW_WIDTH 1
typedef double BRANCHV;
typedef double ROWV;
#elif MANY_STATES
#define BRANCH_WIDTH 1
#if DOUBLE_LANES <= N_STATES
#define ROW_WIDTH DOUBLE_LANES
#elif N_STATES >= 8
#define ROW_WIDTH 8
#elif N_STATES >= 4
#define ROW_WIDTH 4
#else
#define ROW_WIDTH 2
#endif
typedef double BRANCHV;
typedef PASTE(double, ROW_WIDTH) ROWV;
#else
#define BRANCH_WIDTH DOUBLE_LANES
#define ROW_WIDTH 1
typedef DOUBLEV BRANCHV;
typedef double ROWV;
#endif
#if ROW_WIDTH > 1
#define LOAD_ROWS PASTE(vload, ROW_WIDTH)
#else
#define LOAD_ROWS(offset, p) (*(p))
#endif
#if ROW_WIDTH > 1
typedef ROWV ENTRYV;
#else
typedef BRANCHV ENTRYV;
#endif

/* Compilers for GPUs unroll loops over rows, and with many states over eigenvalues, at the price of registers. */
#if LANE_PER_ITEM
#define LOOP_TABLE_ROWS _Pragma("unroll 1")
#else
#define LOOP_TABLE_ROWS
#endif

/* With many states on a GPU the work-items of a group share an item's states, and the diagonals are in local memory. */
#if SHARED_STATES
#define LOOP_EIGENVALUES _Pragma("unroll 1")
#define OWN_STATE (int)get_local_id(0)
#define NEXT_STATE (int)get_local_size(0)
#define DIAGONAL_SPACE __local
#define TABLE_FUNCTION INLINE              /* see kernels/README.md */
#define FOR_OWN_COLUMNS(c, n) _Pragma("unroll") for (int c = 0; c < ITEM_COLUMNS; c++) if (c < n)
#define FACTOR(k, c) left[(k) * N_STATES + min(first + (c), N_STATES - 1)]
#else
#define LOOP_EIGENVALUES
#define OWN_STATE 0
#define NEXT_STATE 1
#define DIAGONAL_SPACE
#define TABLE_FUNCTION static inline
#define FOR_OWN_COLUMNS(c, n) for (int c = 0; c < n; c++)
#define FACTOR(k, c) factor[(k) * ITEM_COLUMNS + (c)]
#endif
#define IS_OWN(k) ((k) % NEXT_STATE == OWN_STATE)

/* Which items a work-item takes: on a GPU one at most. */
#if SHARED_STATES
#define FOR_OWN_ITEMS(item, n) FOR_OWN(item, 0, n)
#elif LANE_PER_ITEM
#define FOR_OWN_ITEMS(item, n) for (size_t item = get_global_id(0), once = item < (n); once; once = 0)
#else
#define FOR_OWN_ITEMS(item, n) for (size_t item = get_global_id(0); item < (n); item += get_global_size(0))
#endif

/* The states of an item's columns. With few states on a GPU, numbers of a state stay in registers, which have no index. */
#if LANE_PER_ITEM && !MANY_STATES
#define FOR_OWN_STATES(k, first, n) UNROLL for (int k = 0; k < N_STATES; k++) if (k >= first && k < first + n)
#else
#define FOR_OWN_STATES(k, first, n) for (int k = first; k < first + n; k++)
#endif

/* The other place of a pair of complex eigenvalues. */
#define PARTNER(k) min((k) ^ 1, N_STATES - 1)

/* Element `element` of a vector, or the number itself. */
#if SHARED_STATES
#define PART_OF(vector, element) (vector)
#else
#define PART_OF(vector, element) (((const double *)&(vector))[element])
#endif

/* Columns first .. first + n - 1 of I * identity + U diag(d) U^-1, for the branches whose tables are `stride` apart. Where
 * processes are not reversible, the matrix in the middle has elements `beside` next to its diagonal, and branches that
 * `reverse` names get the matrix of the process in reverse, by rows.
 * ROW_WIDTH rows of them stay in registers while k runs; the last rows begin where they end with row S - 1. */
TABLE_FUNCTION void make_columns(const __global double *right, const __global double *left, const DIAGONAL_SPACE BRANCHV *d,
    const DIAGONAL_SPACE BRANCHV *beside, const int *reverse, int first, int n, double identity, double least,
    __global REAL *table, int last, size_t stride)
{
    const __global double *pi = left + (N_STATES - 1) * N_STATES;
#if !SHARED_STATES
    BRANCHV factor[N_STATES * ITEM_COLUMNS];
    for (int k = 0; k < N_STATES; k++)
        for (int c = 0; c < ITEM_COLUMNS; c++)
            factor[k * ITEM_COLUMNS + c] = d[k] * left[k * N_STATES + min(first + c, N_STATES - 1)]
#if !REVERSIBLE
                + beside[k] * left[PARTNER(k) * N_STATES + min(first + c, N_STATES - 1)]
#endif
                ;
#endif
    LOOP_TABLE_ROWS
    for (int row = ROW_WIDTH * OWN_STATE; row < N_STATES; row += ROW_WIDTH * NEXT_STATE) {
        const int i = min(row, N_STATES - ROW_WIDTH);
        ENTRYV sum[ITEM_COLUMNS];
        #pragma unroll
        for (int c = 0; c < ITEM_COLUMNS; c++)
            sum[c] = (ENTRYV)(0);
        LOOP_EIGENVALUES
        for (int k = 0; k < N_STATES; k++) {
#if SHARED_STATES
            double u = right[k * N_STATES + i] * d[k];
#if !REVERSIBLE
            u += right[PARTNER(k) * N_STATES + i] * beside[PARTNER(k)];
#endif
#else
            const ROWV u = LOAD_ROWS(0, right + k * N_STATES + i);
#endif
            #pragma unroll
            for (int c = 0; c < ITEM_COLUMNS; c++)
                sum[c] = u * FACTOR(k, c) + sum[c];
        }
        FOR_OWN_COLUMNS(c, n)
            for (int r = 0; r < ROW_WIDTH; r++) {
                #pragma unroll
                for (int b = 0; b < BRANCH_WIDTH; b++) {
                    const double value = PART_OF(sum[c], r + b) + (i + r == first + c ? identity : 0.0);
                    const double entry = value > least ? value : least;
                    __global REAL *to = table + min(b, last) * stride;
                    if (!REVERSIBLE && reverse[b])
                        to[ENTRY(first + c, i + r)] = (REAL)(entry * pi[i + r] / pi[first + c]);
                    else
                        to[ENTRY(i + r, first + c)] = (REAL)entry;
                }
            }
    }
}

/* Sums of rows first .. first + n - 1, see many_states.h; in P and in its slopes all rows have the same sum. */
static inline void make_row_sums(int first, int n, REAL sum, __global REAL *table)
{
#if MANY_STATES
    for (int i = first; i < first + n; i++)
        if (IS_OWN(i))
            table[ENTRY(i, N_STATES)] = sum;
#endif
}

#if SET_TABLES
/* The table of sums that tips load, see layout.h. */
static inline void make_table(const __global REAL *p, __global REALV *table)
{
    REALV column[N_STATES];
    for (int j = 0; j < N_STATES; j++)
        for (int i = 0; i < VW; i++)
            column[j][i] = p[ENTRY(min(i, N_STATES - 1), j)];
    for (int set = 0; set < TABLE_ROWS; set++) {
        REALV sum = (REALV)(0);
        for (int j = 0; j < N_STATES; j++)
            sum = column[j] * (REAL)(set >> j & 1) + sum;
        table[set] = sum;
    }
}
#elif ROW_TABLES
/* The table of sums that tips pick from, see layout.h. */
static inline void make_table(const __global REAL *p, __global REALV *table)
{
    INTV set;
    for (int e = 0; e < VW; e++)
        ((int *)&set)[e] = e;
    for (int i = 0; i < N_STATES; i++) {
        REALV sum = (REALV)(0);
        for (int j = 0; j < TABLE_STATES; j++)
            sum = p[ENTRY(i, j)] * has_state(set, j) + sum;
#if TABLE_STATES < N_STATES
        sum -= p[ENTRY(i, TABLE_STATES)] * CONVERT(REAL, set == 0);        /* -1 where true */
#endif
        table[i] = sum;
    }
}
#endif

#if !REVERSIBLE
/* (exp(x t) - exp(y t)) / (x - y) for x = a + bi and y = c + di, from the slower decay; t exp(x t) where x = y. */
static inline void divide_differences(double a, double b, double c, double d, BRANCHV t, BRANCHV *difference)
{
    const double slow = max(a, c), turn = a >= c ? b : d;
    const BRANCHV gap = -fabs(a - c) * t, angle = (a >= c ? d - b : b - d) * t;       /* the exponent of the ratio */
    const BRANCHV shrink = expm1(gap), chord = sin(0.5 * angle), size = gap * gap + angle * angle;
    const BRANCHV re = shrink * cos(angle) - 2.0 * chord * chord, im = (shrink + 1.0) * sin(angle);
    const BRANCHV ratio = size == 0.0 ? (BRANCHV)(1) : (re * gap + im * angle) / size;
    const BRANCHV cross = size == 0.0 ? (BRANCHV)(0) : (im * gap - re * angle) / size;
    const BRANCHV scale = t * exp(slow * t), cosine = cos(turn * t), sine = sin(turn * t);
    difference[0] = scale * (cosine * ratio - sine * cross);
    difference[1] = scale * (cosine * cross + sine * ratio);
}
#endif

/* What is wanted of one component, for columns `first` .. `first + n - 1` of its matrices, and for the branches from the one that
 * lengths and tables begin with to the one `last` behind it; e has the component's row of `eigen`. */
INLINE void make_branches(
    const __global double *e,
    const __global double *lengths,
    const __global uchar *at_tips,
    int last,
    int component,
    int first,
    __global REAL *matrices,
    __global REAL *slopes,
    __global REAL *decays,
    __global REAL *divided_differences,
    DIAGONAL_SPACE BRANCHV *diagonals,
    const int want_decays,
    const int want_slopes,
    const int want_differences)
{
    const int S = N_STATES, n = min(ITEM_COLUMNS, S - first);
    const __global double *right = e + S, *left = right + S * S;
    BRANCHV t;
    int reverse[BRANCH_WIDTH];
    for (int b = 0; b < BRANCH_WIDTH; b++) {
        const double length = lengths[min(b, last)];
        reverse[b] = length < 0;
        ((double *)&t)[b] = fabs(length);
    }
#if SHARED_STATES
    __local double *grow = diagonals, *slope = grow + S, *curve = slope + S;
    __local double *turn = curve + S, *slope_turn = turn + S, *curve_turn = slope_turn + S;
#else
    BRANCHV grow[N_STATES], slope[N_STATES], curve[N_STATES];       /* diagonals */
    BRANCHV turn[N_STATES], slope_turn[N_STATES], curve_turn[N_STATES];     /* beside them */
#endif
    LOOP_EIGENVALUES
    for (int k = OWN_STATE; k < S; k += NEXT_STATE) {
        grow[k] = expm1(e[k] * t);
#if REVERSIBLE
        slope[k] = e[k] * (grow[k] + 1.0);
        curve[k] = e[k] * slope[k];
#else
        const double b = left[S * S + k];
        const BRANCHV chord = sin(0.5 * b * t);
        turn[k] = (grow[k] + 1.0) * sin(b * t);
        grow[k] = grow[k] * cos(b * t) - 2.0 * chord * chord;
        slope[k] = e[k] * (grow[k] + 1.0) - b * turn[k];
        slope_turn[k] = e[k] * turn[k] + b * (grow[k] + 1.0);
        curve[k] = e[k] * slope[k] - b * slope_turn[k];
        curve_turn[k] = e[k] * slope_turn[k] + b * slope[k];
#endif
    }
#if SHARED_STATES
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    #pragma unroll
    for (int b = 0; want_decays && b < BRANCH_WIDTH; b++) {
        __global REAL *d = decays + (min(b, last) * N_COMPONENTS + component) * 3 * S;
        FOR_OWN_STATES(k, first, n) if (IS_OWN(k)) {
            d[k] = (REAL)PART_OF(grow[k], b);
            d[S + k] = (REAL)PART_OF(slope[k], b);
            d[2 * S + k] = (REAL)PART_OF(curve[k], b);
        }
    }
    __global REAL *p = matrices + component * MATRIX_VALUES;
    make_columns(right, left, grow, turn, reverse, first, n, 1.0, 0.0, p, last, BRANCH_VALUES);
    make_row_sums(first, n, 1, p);
#if TABLE_ROWS
    for (int b = 0; b <= last; b++) {
        __global REALV *tables = (__global REALV *)(matrices + b * BRANCH_VALUES + TABLES_START);
        if (at_tips[b])
            make_table(p + b * BRANCH_VALUES, tables + component * TABLE_ROWS);
    }
#endif
    if (want_slopes) {
        __global REAL *p1 = slopes + component * MATRIX_VALUES;
        __global REAL *p2 = p1 + MATRIX_REALS;
        make_columns(right, left, slope, slope_turn, reverse, first, n, 0.0, -INFINITY, p1, last, 2 * MATRIX_REALS);
        make_columns(right, left, curve, curve_turn, reverse, first, n, 0.0, -INFINITY, p2, last, 2 * MATRIX_REALS);
        make_row_sums(first, n, 0, p1);
        make_row_sums(first, n, 0, p2);
    }
    if (!want_differences)
        return;
    __global REAL *f = divided_differences + (size_t)component * S * S;
    FOR_OWN_STATES(k, first, n)
        LOOP_EIGENVALUES
        for (int l = OWN_STATE; l < S; l += NEXT_STATE) {
#if REVERSIBLE
            const BRANCHV gap = fabs(e[k] - e[l]) * t;      /* from the slower decay, so that nothing overflows */
            const BRANCHV ratio = gap == 0.0 ? (BRANCHV)(1) : -expm1(-gap) / gap;
            const BRANCHV difference = t * ((grow[k] > grow[l] ? grow[k] : grow[l]) + 1.0) * ratio;
            #pragma unroll
            for (int b = 0; b < BRANCH_WIDTH; b++)
                f[min(b, last) * DIFFERENCE_REALS + k * S + l] = (REAL)PART_OF(difference, b);
#else
            const double b_k = left[S * S + k], b_l = left[S * S + l];
            BRANCHV plain[2], mirrored[2];
            divide_differences(e[k], b_k, e[l], b_l, t, plain);
            divide_differences(e[k], b_k, e[l], -b_l, t, mirrored);
            const BRANCHV tables[DIFFERENCE_TABLES] = {0.5 * (plain[0] + mirrored[0]), 0.5 * (plain[1] + mirrored[1]),
                0.5 * (mirrored[1] - plain[1]), 0.5 * (plain[0] - mirrored[0])};
            for (int table = 0; table < DIFFERENCE_TABLES; table++)
                for (int b = 0; b <= last; b++)
                    f[b * DIFFERENCE_REALS + (table * N_COMPONENTS * S + k) * S + l] = (REAL)PART_OF(tables[table], b);
#endif
        }
}

__attribute__((vec_type_hint(DOUBLEV)))     /* see traverse.cl */
__kernel void pmatrices(
    const __global double *eigen,
    const __global double *lengths,
    const __global uchar *at_tips,          /* [branch] 1: make tables for tips, too, where the layout has them */
    __global REAL *matrices,
    __global REAL *slopes,
    __global REAL *decays,
    __global REAL *divided_differences,
    const int n_branches,
    const int n_psets,
    const int want_decays,
    const int want_slopes,
    const int want_differences)
{
#if SHARED_STATES
    __local double diagonals[(REVERSIBLE ? 3 : 6) * N_STATES];
#else
    BRANCHV *const diagonals = 0;
#endif
    const int n_batches = (n_branches + BRANCH_WIDTH - 1) / BRANCH_WIDTH;
    const size_t n_wanted = (size_t)n_batches * n_psets * N_COMPONENTS * SHARES;
    FOR_OWN_ITEMS(item, n_wanted) {
        const int first = item % SHARES * ITEM_COLUMNS, component = item / SHARES % N_COMPONENTS;
        const size_t batch = item / SHARES / N_COMPONENTS;           /* pset * n_batches + batch */
        const int pset = batch / n_batches, start = batch % n_batches * BRANCH_WIDTH;
        const int last = min(BRANCH_WIDTH, n_branches - start) - 1;     /* further branches are the last one once more */
        const size_t branch = (size_t)pset * n_branches + start;     /* the first */
        make_branches(eigen + ((size_t)pset * N_COMPONENTS + component) * EIGEN_VALUES, lengths + branch, at_tips + start, last,
            component, first, matrices + branch * BRANCH_VALUES, slopes + branch * 2 * MATRIX_REALS,
            decays + branch * DECAY_REALS, divided_differences + branch * DIFFERENCE_REALS, diagonals,
            want_decays, want_slopes, want_differences);
    }
}
