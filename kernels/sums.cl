/* add_rows: adds the partial sums of groups, a few at a time, in the order of a tree that the layout alone decides.
 *
 * partial WIDE_SUM [row][value]: first the rows of the groups, which traverse makes, then those made here, level by level; the
 * last ones are the sums of the parts. Made row r is the sum of the rows begin .. end - 1, added one after another.
 * Work: one work-item per value and row of a level; levels are launches one after another. There are no barriers and no
 * local memory; the values of a row lie side by side, so loads are coalesced.
 * The tree: plltool/engine/sums.py. Arguments: plltool/engine/contract.py. Tests: tests/engine/test_sums.py.
 */
INLINE void add_row(__global WIDE_SUM *partial, const __global int *sum_tree, int n_groups, int made, int n_values, int value)
{
    const int begin = sum_tree[2 * made], end = sum_tree[2 * made + 1];
    WIDE_SUM sum = partial[(size_t)begin * n_values + value];
    for (int row = begin + 1; row < end; row++)
        sum = add_wide_sums(sum, partial[(size_t)row * n_values + value]);
    partial[(size_t)(n_groups + made) * n_values + value] = sum;
}

__kernel void add_rows(
    __global WIDE_SUM *partial,
    const __global int *sum_tree,           /* [made row][2] begin, end */
    const int n_groups,
    const int first_made,                   /* first row of this level, counted among the made ones */
    const int n_values)
{
    const int value = get_global_id(0);
    if (value < n_values)
        add_row(partial, sum_tree, n_groups, first_made + get_global_id(1), n_values, value);
}
