/* pmatrices: transition matrices of all branches, components and P sets at once.
 *
 *   P(t)   = I + U diag(expm1(l t)) U^-1      expm1 keeps every digit where t is near its minimum
 *   P'(t)  = U diag(l exp(l t)) U^-1,  P''(t) = U diag(l^2 exp(l t)) U^-1        with l = eigenvalue * rate
 *   F(t)_kl = (exp(l_k t) - exp(l_l t)) / (l_k - l_l), t exp(l_k t) where they are equal: how P(t) answers to a change
 *   of the rate matrix, dP = U (F * (U^-1 d(Q rate) U)) U^-1                     Daleckii & Krein
 *
 * Work: one work-item per (pset, branch, component); computed in double whatever REAL is.
 * Buffers: eigen double [pset][component][ eigenvalue * rate: N_STATES | U as [i][k] | U^-1 as [k][j] ],
 * lengths double [pset][branch]; outputs as in traverse.cl.
 * Twin: numpy_engine.py, branch_tables. Test: tests/engine/test_pmatrices.py.
 */

#define EIGEN_DOUBLES (N_STATES + 2 * N_STATES * N_STATES)

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
    if (item >= (size_t)n_branches * n_psets * N_COMPONENTS)
        return;
    const int S = N_STATES;
    const int component = item % N_COMPONENTS;
    const size_t branch = item / N_COMPONENTS;          /* pset * n_branches + branch */
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
    for (int k = 0; k < S; k++) {
        d[k] = (REAL)grow[k];
        d[S + k] = (REAL)slope[k];
        d[2 * S + k] = (REAL)curve[k];
    }
    __global REAL *p = matrices + (branch * N_COMPONENTS + component) * S * S;
    __global REAL *p1 = slopes + (branch * 2 * N_COMPONENTS + component) * S * S;
    __global REAL *p2 = p1 + N_COMPONENTS * S * S;
    for (int i = 0; i < S; i++)
        for (int j = 0; j < S; j++) {
            double value = 0, value1 = 0, value2 = 0;
            for (int k = 0; k < S; k++) {
                const double product = right[i * S + k] * left[k * S + j];
                value += product * grow[k];
                value1 += product * slope[k];
                value2 += product * curve[k];
            }
            value += i == j ? 1.0 : 0.0;
            p[i * S + j] = (REAL)(value > 0 ? value : 0);
            if (want_slopes) {
                p1[i * S + j] = (REAL)value1;
                p2[i * S + j] = (REAL)value2;
            }
        }
    if (!want_responses)
        return;
    __global REAL *f = responses + (branch * N_COMPONENTS + component) * S * S;
    for (int k = 0; k < S; k++)
        for (int l = 0; l < S; l++) {
            const double gap = fabs(e[k] - e[l]) * t;       /* from the slower decay, so that nothing overflows */
            const double ratio = gap == 0.0 ? 1.0 : -expm1(-gap) / gap;
            f[k * S + l] = (REAL)(t * (fmax(grow[k], grow[l]) + 1.0) * ratio);
        }
}
