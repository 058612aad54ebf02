/* SPDX-License-Identifier: MIT */
/* merge.c - a heap holds the candidates. A candidate that an earlier merge made invalid has
 * another length, because symbols only grow. */
#include "merge.h"

#include <stdlib.h>

struct candidate {
    double order;
    int32_t left, right, id;
    uint32_t length; /* length of both when this was found */
};

/* A merge removes one candidate and adds two, so there are at most two for each symbol. */
bool merger_begin(struct merger *m, size_t count)
{
    m->count = m->heap_count = 0;
    if (count <= m->room)
        return true;
    size_t room = 2 * m->room < 64 ? 64 : 2 * m->room;
    room = count > room ? count : room;
    merger_free(m);
    m->symbols = calloc(room, sizeof *m->symbols);
    m->heap = calloc(room, 2 * sizeof *m->heap);
    if (!m->symbols || !m->heap)
        return merger_free(m), false;
    m->room = room;
    return true;
}

void merger_free(struct merger *m)
{
    free(m->symbols);
    free(m->heap);
    *m = (struct merger){ 0 };
}

void merger_add(struct merger *m, const char *bytes, size_t length, int32_t id)
{
    const int32_t index = (int32_t)m->count++;
    m->symbols[index] = (struct symbol){ bytes, (uint32_t)length, id, index - 1, -1 };
    if (index > 0)
        m->symbols[index - 1].after = index;
}

static bool goes_before(const struct candidate *a, const struct candidate *b)
{
    return a->order != b->order ? a->order < b->order : a->left < b->left;
}

static void push(struct merger *m, struct candidate candidate)
{
    size_t at = m->heap_count++;
    for (; at > 0 && goes_before(&candidate, &m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = candidate;
}

static struct candidate pop(struct merger *m)
{
    const struct candidate best = m->heap[0], last = m->heap[--m->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < m->heap_count; at = child) {
        if (child + 1 < m->heap_count && goes_before(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!goes_before(&m->heap[child], &last))
            break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = last;
    return best;
}

static void propose(struct merger *m, int32_t left, int32_t right, join_fn *join,
                    const void *user)
{
    struct joined joined;
    if (left < 0 || right < 0 ||
        !join(user, &m->symbols[left], &m->symbols[right], &joined))
        return;
    push(m, (struct candidate){ joined.order, left, right, joined.id,
                                m->symbols[left].length + m->symbols[right].length });
}

void merger_run(struct merger *m, join_fn *join, const void *user)
{
    for (size_t i = 1; i < m->count; i++)
        propose(m, (int32_t)i - 1, (int32_t)i, join, user);
    while (m->heap_count > 0) {
        const struct candidate best = pop(m);
        struct symbol *left = &m->symbols[best.left], *right = &m->symbols[best.right];
        if (left->length == 0 || right->length == 0 ||
            left->length + right->length != best.length)
            continue;
        left->length = best.length;
        left->id = best.id;
        left->after = right->after;
        right->length = 0;
        if (left->after >= 0)
            m->symbols[left->after].before = best.left;
        propose(m, left->before, best.left, join, user);
        propose(m, best.left, left->after, join, user);
    }
}
