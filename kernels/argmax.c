/* SPDX-License-Identifier: MIT */
/* y = the first index of the largest element; a NaN counts as the largest. One group per
 * row. */

KERNEL(argmax)(GLOBAL u8 *y, GLOBAL const u8 *x, ARGS(struct argmax_args) a GRID)
{
    SHARED int keys[GROUP], indices[GROUP];
    const int lid = local_id(), cols = (int)a.cols;
    const struct index at = index_of(group_id(), a.n1, a.n2);

    x += row_at(a.x, at);
    y += row_at(a.y, at);

    int best[PIECE],
        best_at[PIECE]; /* below every key and past the end, so it loses every tie */
    for (int j = 0; j < PIECE; j++) {
        best[j] = -0x7fffffff;
        best_at[j] = cols;
    }
    int i = lid * PIECE;
    for (; i + PIECE <= cols; i += GROUP * PIECE)
        for (int j = 0; j < PIECE; j++) {
            const int key = order_of(load(ACT, x, i + j));
            best_at[j] = key > best[j] ? i + j : best_at[j];
            best[j] = key > best[j] ? key : best[j];
        }
    for (; i < cols; i++) {
        const int key = order_of(load(ACT, x, i));
        best_at[0] = key > best[0] ? i : best_at[0];
        best[0] = key > best[0] ? key : best[0];
    }
    for (int j = 1; j < PIECE; j++)
        if (best[j] > best[0] || (best[j] == best[0] && best_at[j] < best_at[0])) {
            best[0] = best[j];
            best_at[0] = best_at[j];
        }

    keys[lid] = best[0];
    indices[lid] = best_at[0];
    BARRIER();
    for (int span = GROUP / 2; span > 0; span /= 2) {
        const int other = lid + span;
        if (lid < span && (keys[other] > keys[lid] ||
                           (keys[other] == keys[lid] && indices[other] < indices[lid]))) {
            keys[lid] = keys[other];
            indices[lid] = indices[other];
        }
        BARRIER();
    }
    if (lid == 0)
        *(GLOBAL int *)y = indices[0];
}
