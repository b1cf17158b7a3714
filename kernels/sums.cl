/* add_rows: adds the partial sums of groups, a few at a time, in the order of a tree that the layout alone decides.
 *
 * Rows [row][value] double: first those of the groups, which traverse makes, then those made here, level by level; the
 * last ones are the sums of the parts. Row made[r] = rows begin .. end - 1 added one after another.
 * Work: one work-item per value and row of a level; levels come in launches one after another. No barriers, no local
 * memory: the values of a row lie side by side, so loads are coalesced.
 * Plan: plltool/engine/sums.py. Tests: tests/engine/test_sums.py.
 */
__kernel void add_rows(
    __global double *rows,
    const __global int *tree,               /* [made row][2] begin, end */
    const int n_groups,
    const int first,                        /* made row of this level */
    const int n_values)
{
    const int value = get_global_id(0), made = first + get_global_id(1);
    if (value >= n_values)
        return;
    const int begin = tree[2 * made], end = tree[2 * made + 1];
    double sum = rows[(size_t)begin * n_values + value];
    for (int row = begin + 1; row < end; row++)
        sum += rows[(size_t)row * n_values + value];
    rows[(size_t)(n_groups + made) * n_values + value] = sum;
}
