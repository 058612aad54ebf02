/* SPDX-License-Identifier: MIT */
/* attention.h - which keys a query sees, for the tuned kernels of attention. Follows args.h. */
#ifndef ATTENTION_H
#define ATTENTION_H

#define LOG2_E 1.44269504f

/* The keys first .. end - 1; none if end is not larger. */
struct span {
    int first, end;
};

/* The keys in use. `lengths`: an address, if has_lengths. */
FUNC int length_of(const struct attention_args &a, u64 lengths, i64 batch)
{
    i64 length = a.length;
    if (a.has_lengths)
        length = ((GLOBAL const int *)lengths)[batch];
    return (int)(length < 0 ? 0 : length < a.keys_max ? length : a.keys_max);
}

FUNC int position_of(const struct attention_args &a, int length, int query)
{
    return length - (int)a.queries + query;
}

/* The keys that a query sees. */
FUNC struct span seen_by(const struct attention_args &a, int length, int query)
{
    const int after = position_of(a, length, query) + 1;
    struct span seen;
    seen.end = a.causal && after < length ? after : length;
    seen.first = a.window > 0 && seen.end > a.window ? seen.end - (int)a.window : 0;
    return seen;
}

#endif
