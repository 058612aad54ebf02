/* SPDX-License-Identifier: MIT */
/* spans.h - the groups of elementwise ops: spans of ELEMENT_SPAN neighbours of a row. A stretch is
 * the spans of one row that a thread takes together. */
#ifndef CPU_SPANS_H
#define CPU_SPANS_H

#include "words.h"

/* Elements first .. first + count - 1 of a row. */
struct stretch {
    int64_t row, first, count;
};

/* The stretch that begins with group `*group` and ends before group `end` or with the row. Sets
 * `*group` to the group after it. */
static inline struct stretch next_stretch(int64_t *group, int64_t end, int64_t cols)
{
    const int64_t spans = (cols + ELEMENT_SPAN - 1) / ELEMENT_SPAN;
    const int64_t row = spans == 1 ? *group : *group / spans, in_row = *group - row * spans;
    const int64_t some = end - *group < spans - in_row ? end - *group : spans - in_row;
    const int64_t first = in_row * ELEMENT_SPAN, most = some * ELEMENT_SPAN;
    *group += some;
    return (struct stretch){ row, first, most < cols - first ? most : cols - first };
}

#endif
