/* pmatrices: transition matrices of all branches, components and P sets at once.
 *
 *   P(t)   = I + U diag(expm1(l t)) U^-1      expm1 keeps every digit where t is near its minimum
 *   P'(t)  = U diag(l exp(l t)) U^-1,  P''(t) = U diag(l^2 exp(l t)) U^-1        with l = eigenvalue * rate
 *   F(t)_kl = (exp(l_k t) - exp(l_l t)) / (l_k - l_l), t exp(l_k t) where they are equal: how P(t) answers to a change
 *   of the rate matrix, dP = U (F * (U^-1 d(Q rate) U)) U^-1                     Daleckii & Krein
 *
 * Work: one work-item per (pset, branch, component, share of the columns); computed in double whatever REAL is. With
 * few states there is one share; with many, a share is ITEM_COLUMNS columns and their row sums (many_states.h), so that
 * exponentials are made once for several columns.
 * Buffers: eigen double [pset][component][ eigenvalue * rate: N_STATES | U as [k][i] | U^-1 as [k][j] ],
 * lengths double [pset][branch]; outputs as in traverse.cl.
 * Twin: numpy_engine.py, branch_tables. Test: tests/engine/test_pmatrices.py.
 */

#define EIGEN_DOUBLES (N_STATES + 2 * N_STATES * N_STATES)
#define SHARES ((N_STATES + PMATRIX_COLUMNS - 1) / PMATRIX_COLUMNS)
#define ITEM_COLUMNS ((N_STATES + SHARES - 1) / SHARES)
#if MANY_STATES
#define ENTRY(i, j) ((j) * N_STATES + (i))
#else
#define ENTRY(i, j) ((i) * N_STATES + (j))
#endif
#if MANY_STATES && !LANE_PER_ITEM       /* rows as vectors */
typedef DOUBLEV ROWV;
#define ROW_WIDTH VW
#define LOAD_ROWS PASTE(vload, VW)
#else
typedef double ROWV;
#define ROW_WIDTH 1
#define LOAD_ROWS(offset, p) (*(p))
#endif

/* Columns first .. first + n - 1 of I * identity + U diag(d) U^-1. ROW_WIDTH rows of them stay in registers while k runs;
 * the last rows begin where they end with row S - 1. */
static inline void make_columns(
    const __global double *right, const __global double *left, const double *d, int first, int n, double identity, double least,
    __global REAL *table)
{
    double factor[N_STATES * ITEM_COLUMNS];
    for (int k = 0; k < N_STATES; k++)
        for (int c = 0; c < ITEM_COLUMNS; c++)
            factor[k * ITEM_COLUMNS + c] = d[k] * left[k * N_STATES + min(first + c, N_STATES - 1)];
    for (int row = 0; row < N_STATES; row += ROW_WIDTH) {
        const int i = min(row, N_STATES - ROW_WIDTH);
        ROWV sum[ITEM_COLUMNS];
        #pragma unroll
        for (int c = 0; c < ITEM_COLUMNS; c++)
            sum[c] = (ROWV)(0);
        for (int k = 0; k < N_STATES; k++) {
            const ROWV u = LOAD_ROWS(0, right + k * N_STATES + i);
            #pragma unroll
            for (int c = 0; c < ITEM_COLUMNS; c++)
                sum[c] = u * factor[k * ITEM_COLUMNS + c] + sum[c];
        }
        for (int c = 0; c < n; c++)
            for (int r = 0; r < ROW_WIDTH; r++) {
                const double value = ((const double *)&sum[c])[r] + (i + r == first + c ? identity : 0.0);
                table[ENTRY(i + r, first + c)] = (REAL)(value > least ? value : least);
            }
    }
}

/* Sums of rows first .. first + n - 1, see many_states.h; all equal in P and its slopes */
static inline void make_row_sums(int first, int n, REAL sum, __global REAL *table)
{
#if MANY_STATES
    for (int i = first; i < first + n; i++)
        table[ENTRY(i, N_STATES)] = sum;
#endif
}

#if MANY_STATES
__attribute__((vec_type_hint(ROWV)))    /* see traverse.cl */
#endif
__kernel void pmatrices(
    const __global double *eigen,
    const __global double *lengths,
    __global REAL *matrices,
    __global REAL *slopes,
    __global REAL *decays,
    __global REAL *responses,
    const int n_branches,
    const int n_psets,
    const int want_slopes,
    const int want_responses)
{
    const size_t item = get_global_id(0);
    if (item >= (size_t)n_branches * n_psets * N_COMPONENTS * SHARES)
        return;
    const int S = N_STATES;
    const int first = item % SHARES * ITEM_COLUMNS, n = min(ITEM_COLUMNS, S - first);
    const int component = item / SHARES % N_COMPONENTS;
    const size_t branch = item / SHARES / N_COMPONENTS;          /* pset * n_branches + branch */
    const int pset = branch / n_branches;
    const __global double *e = eigen + ((size_t)pset * N_COMPONENTS + component) * EIGEN_DOUBLES;
    const __global double *right = e + S, *left = right + S * S;
    const double t = lengths[branch];
    double grow[N_STATES], slope[N_STATES], curve[N_STATES];
    for (int k = 0; k < S; k++) {
        grow[k] = expm1(e[k] * t);
        slope[k] = e[k] * (grow[k] + 1.0);
        curve[k] = e[k] * slope[k];
    }
    __global REAL *d = decays + (branch * N_COMPONENTS + component) * 3 * S;
    for (int k = first; k < first + n; k++) {
        d[k] = (REAL)grow[k];
        d[S + k] = (REAL)slope[k];
        d[2 * S + k] = (REAL)curve[k];
    }
    __global REAL *of_branch = matrices + branch * BRANCH_SIZE, *p = of_branch + component * MATRIX_SIZE;
    make_columns(right, left, grow, first, n, 1.0, 0.0, p);
    make_row_sums(first, n, 1, p);
#if TABLE_STATES
    __global REAL *table = of_branch + TABLES_START + component * S * VW;
    for (int i = 0; i < S; i++) {
        for (int e = 1; e < VW; e++) {
            REAL sum = 0;
            for (int j = 0; j < TABLE_STATES; j++)
                sum += (e >> j) & 1 ? p[ENTRY(i, j)] : 0;
            table[i * VW + e] = sum;
        }
        table[i * VW] = TABLE_STATES < S ? p[ENTRY(i, TABLE_STATES % N_STATES)] : 0;
    }
#endif
    if (want_slopes) {
        __global REAL *p1 = slopes + (branch * 2 * N_COMPONENTS + component) * MATRIX_SIZE;
        __global REAL *p2 = p1 + MATRIX_REALS;
        make_columns(right, left, slope, first, n, 0.0, -INFINITY, p1);
        make_columns(right, left, curve, first, n, 0.0, -INFINITY, p2);
        make_row_sums(first, n, 0, p1);
        make_row_sums(first, n, 0, p2);
    }
    if (!want_responses)
        return;
    __global REAL *f = responses + (branch * N_COMPONENTS + component) * S * S;
    for (int k = first; k < first + n; k++)
        for (int l = 0; l < S; l++) {
            const double gap = fabs(e[k] - e[l]) * t;       /* from the slower decay, so that nothing overflows */
            const double ratio = gap == 0.0 ? 1.0 : -expm1(-gap) / gap;
            f[k * S + l] = (REAL)(t * (fmax(grow[k], grow[l]) + 1.0) * ratio);
        }
}
