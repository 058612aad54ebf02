/* SPDX-License-Identifier: MIT */
/* The k largest elements in order: one group per row.
 *
 * The best so far are kept in order. A group looks at TOP_K_SPAN elements at a time; in a long
 * row, few of them beat the last of the best. Those that do are collected, and then everyone's
 * new place is the number of entries that are before it. An entry is one number: it is larger
 * if the element is, or else if its index is smaller. */
#if GROUP == 1
#define TOP_K_MINE PIECE
#else
#define TOP_K_MINE 4
#endif
#define TOP_K_SPAN (GROUP * TOP_K_MINE)
#define TOP_K_LAST 0x7fffffff

FUNC i64 top_k_entry(int order, int i)
{
    return (i64)order * 4294967296 + (TOP_K_LAST - i);
}

FUNC int top_k_order(i64 entry)
{
    return (int)(entry >> 32);
}

FUNC int top_k_index(i64 entry)
{
    return TOP_K_LAST - (int)(entry & TOP_K_LAST);
}

LOCAL_FUNC int top_k_before(LOCAL const i64 *entries, int count, i64 entry)
{
    int before = 0;
    for (int i = 0; i < count; i++)
        before += entries[i] > entry;
    return before;
}

/* The k best of both lists, in order; `best` is in order. */
LOCAL_FUNC void top_k_merge(LOCAL i64 *to, int k, LOCAL const i64 *best, int have,
                            LOCAL const i64 *found, int count, int lid)
{
    for (int i = lid; i < have; i += GROUP) {
        const int place = i + top_k_before(found, count, best[i]);
        if (place < k)
            to[place] = best[i];
    }
    for (int i = lid; i < count; i += GROUP) {
        const int place = top_k_before(best, have, found[i]) +
                          top_k_before(found, count, found[i]);
        if (place < k)
            to[place] = found[i];
    }
}

/* The orders of a work-item's elements from `first` on; beyond the last one the lowest, which
 * is before none. Returns how many are above `least`. */
FUNC int top_k_look(PRIVATE int *order, GLOBAL const u8 *x, int first, int cols, int least,
                    int lid)
{
    int above = 0;
    if (cols - first >= TOP_K_SPAN) {
        for (int j = 0; j < TOP_K_MINE; j++)
            order[j] = order_of(load(ACT, x, first + j * GROUP + lid));
    } else {
        for (int j = 0; j < TOP_K_MINE; j++) {
            const int left = cols - first - j * GROUP - lid;
            order[j] = left > 0 ? order_of(load(ACT, x, first + j * GROUP + lid))
                                : -TOP_K_LAST;
        }
    }
    for (int j = 0; j < TOP_K_MINE; j++)
        above += order[j] > least;
    return above;
}

KERNEL(top_k)
(GLOBAL u8 *indices, GLOBAL const u8 *x, GLOBAL u8 *values, ARGS(struct top_k_args) a GRID)
{
    SHARED i64 best[2 * TOP_K_MAX], found[TOP_K_SPAN];
    SHARED int scratch[GROUP];
    const int lid = local_id(), cols = (int)a.cols, k = a.k;
    const struct index at = index_of(group_id(), a.n1, a.n2);
    int have = 0, turn = 0, least = -TOP_K_LAST;

    x += row_at(a.x, at);
    indices += row_at(a.indices, at);
    for (int first = 0; first < cols; first += TOP_K_SPAN) {
        int order[TOP_K_MINE], all;
        const int mine = top_k_look(order, x, first, cols, least, lid);
        int next = group_scan(mine, &all, scratch, lid);
        if (all > 0) {
            for (int j = 0; mine > 0 && j < TOP_K_MINE; j++)
                if (order[j] > least)
                    found[next++] = top_k_entry(order[j], first + j * GROUP + lid);
            BARRIER();
            top_k_merge(best + (1 - turn) * TOP_K_MAX, k, best + turn * TOP_K_MAX, have,
                        found, all, lid);
            BARRIER();
            have = have + all < k ? have + all : k;
            turn = 1 - turn;
            if (have == k)
                least = top_k_order(best[turn * TOP_K_MAX + k - 1]);
        }
        if (cols - first <= TOP_K_SPAN)
            break; /* the next index might not fit an int */
    }

    if (a.has_values)
        values += row_at(a.values, at);
    for (int i = lid; i < k; i += GROUP) {
        const int index = top_k_index(best[turn * TOP_K_MAX + i]);
        ((GLOBAL int *)indices)[i] = index;
        if (a.has_values)
            store(ACT, values, i, load(ACT, x, index));
    }
}
