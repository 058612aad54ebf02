/* SPDX-License-Identifier: MIT */
/* keys.h - which keys a query of attention sees, for tuned kernels. Follows vectors.h. */
#ifndef KEYS_H
#define KEYS_H

struct keys {
    i64 first, end;
};

FUNC struct keys keys_seen(ARGS(struct attention_args) a, i64 length, i64 query)
{
    const i64 next = length - a.queries + query + 1;
    struct keys seen;
    seen.end = a.causal && next < length ? next : length;
    seen.first = a.window > 0 && seen.end > a.window ? seen.end - a.window : 0;
    return seen;
}

FUNC i64 length_of(ARGS(struct attention_args) a, GLOBAL const u8 *lengths, i64 batch)
{
    i64 length = a.length;
    if (a.has_lengths)
        length = ((GLOBAL const int *)(lengths + a.lengths_offset))[batch];
    return length < 0 ? 0 : length < a.keys_max ? length : a.keys_max;
}

/* For attention_split.cl: the keys are divided into at most MOST_PARTS parts, whose lengths are
 * multiples of PART_KEYS. The functions return the possible and the actual number of parts, and the
 * keys of a part. */
#ifndef PART_KEYS
#define PART_KEYS GROUP
#endif
#ifndef MOST_PARTS
#define MOST_PARTS 1
#endif

FUNC i64 part_count(i64 keys_max)
{
    const i64 parts = (keys_max + PART_KEYS - 1) / PART_KEYS;
    return parts < MOST_PARTS ? parts : MOST_PARTS;
}

FUNC i64 keys_per_part(i64 length)
{
    return (length + (i64)PART_KEYS * MOST_PARTS - 1) / ((i64)PART_KEYS * MOST_PARTS) *
           PART_KEYS;
}

FUNC int parts_used(i64 length)
{
    return length > 0 ? (int)((length + keys_per_part(length) - 1) / keys_per_part(length))
                      : 0;
}

FUNC struct keys keys_of_part(i64 length, i64 part)
{
    struct keys keys;
    keys.first = part * keys_per_part(length);
    keys.end = length - keys.first < keys_per_part(length)
                   ? length
                   : keys.first + keys_per_part(length);
    return keys;
}

#endif
