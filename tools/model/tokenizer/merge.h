/* SPDX-License-Identifier: MIT */
/* merge.h - the loop of byte-pair encoding: joins the best pair of neighbouring symbols, the
 * leftmost of equals, until no pair can be joined. Takes n log n time. */
#ifndef HW_MODEL_MERGE_H
#define HW_MODEL_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
    const char *bytes;
    uint32_t length;       /* 0: joined with its left neighbour */
    int32_t id;            /* of its token; the caller's until it is joined */
    int32_t before, after; /* neighbours; -1 at the ends */
};

struct joined {
    double order; /* the lowest is joined first; not NaN */
    int32_t id;   /* of the token of both */
};

/* Whether two neighbours can be joined, and to what. */
typedef bool join_fn(const void *user, const struct symbol *left,
                     const struct symbol *right, struct joined *joined);

/* Initialise with zeros, and use again for any number of texts. */
struct merger {
    struct symbol *symbols;
    struct candidate *heap;
    size_t count, heap_count, room;
};

/* Removes all symbols and makes room for `count`, less than 2^31. Returns false if out of
 * memory. */
bool merger_begin(struct merger *merger, size_t count);
void merger_add(struct merger *merger, const char *bytes, size_t length, int32_t id);
void merger_run(struct merger *merger, join_fn *join, const void *user);
void merger_free(struct merger *merger);

#endif
