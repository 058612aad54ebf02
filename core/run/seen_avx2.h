/* SPDX-License-Identifier: MIT */
/* seen_avx2.h - compare() of seen.h with AVX2, 32 bytes at a time. Part of ops.c. */
#ifndef HW_RUN_SEEN_AVX2_H
#define HW_RUN_SEEN_AVX2_H

#include "run/seen.h"

#include <immintrin.h>

#define AVX2     __attribute__((target("avx2")))
#define HOT_AVX2 static inline __attribute__((always_inline, target("avx2")))

/* `given` may have any alignment, `like` is aligned. */
HOT_AVX2 __m256i differ_32(const void *given, const void *like)
{
    return _mm256_xor_si256(_mm256_loadu_si256(given), _mm256_load_si256(like));
}

HOT_AVX2 bool none_in(__m256i bits)
{
    return _mm256_testz_si256(bits, bits);
}

/* Only a weight may be packed, so the remembered layout of any other operand is 0. */
HOT_AVX2 __m128i differ_layout(const struct hw_tensor *t, const struct hw_tensor *like,
                               bool weight)
{
    const __m128i layout = _mm_loadu_si128((const void *)&t->layout);
    return weight ? _mm_xor_si128(layout, _mm_load_si128((const void *)&like->layout))
                  : layout;
}

/* The layout of the last operand, and the fields after it. */
HOT_AVX2 __m256i differ_tail(const struct seen_call *seen, const void *args,
                             const struct op_row *row)
{
    const char *end = at(args, row->size), *like = at(seen->tail, TAIL_BYTES);
    const uint64_t fields = row->size - row->operand_count * sizeof(struct hw_tensor);
    __m256i differ = differ_32(end - sizeof differ, like - sizeof differ);
    if (fields + sizeof(__m128i) > sizeof differ)
        differ = _mm256_or_si256(
            differ, differ_32(end - 2 * sizeof differ, like - 2 * sizeof differ));
    return differ;
}

/* `absent` has bit i if operand i is absent. A constant `absent` leaves no branches. */
HOT_AVX2 bool same_shapes_without(const struct seen_call *seen, const void *args,
                                  const struct op_row *row, uint32_t absent)
{
    const struct hw_tensor *t = args;
    __m256i form = differ_tail(seen, args, row);
    __m128i layout = _mm_setzero_si128();
    uint32_t dtypes = HW_NONE;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < row->operand_count; i++) {
        const struct hw_tensor *like = &seen->operand[i].tensor;
        if (!is_there(row, absent, i)) {
            dtypes |= (uint32_t)t[i].dtype;
            continue;
        }
        form = _mm256_or_si256(form, differ_32(t[i].extent, like->extent));
        form = _mm256_or_si256(form, differ_32(t[i].stride, like->stride));
        if (i + 1 < row->operand_count)
            layout = _mm_or_si128(layout,
                                  differ_layout(&t[i], like, row->weights >> i & 1));
    }
    return none_in(_mm256_or_si256(form, _mm256_zextsi128_si256(layout))) && !dtypes;
}

/* Whether separate code for calls without optional operands is worth its size. */
HOT bool may_split(const struct op_row *row)
{
    return (row->optional & (row->optional - 1)) != 0;
}

HOT_AVX2 bool same_shapes_avx2(const struct seen_call *seen, const void *args,
                               const struct op_row *row)
{
    return may_split(row) && likely(seen->absent == row->optional)
               ? same_shapes_without(seen, args, row, row->optional)
               : same_shapes_without(seen, args, row, seen->absent);
}

HOT_AVX2 bool same_places_without(const struct seen_call *seen, const void *args,
                                  const struct op_row *row, uint32_t absent)
{
    const struct hw_tensor *t = args;
    __m256i where = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (uint32_t i = 0; i < row->operand_count; i++)
        if (is_there(row, absent, i))
            where = _mm256_or_si256(where, differ_32(&t[i], &seen->operand[i].tensor));
    return none_in(where);
}

HOT_AVX2 bool same_places_avx2(const struct seen_call *seen, const void *args,
                               const struct op_row *row)
{
    return may_split(row) && likely(seen->absent == row->optional)
               ? same_places_without(seen, args, row, row->optional)
               : same_places_without(seen, args, row, seen->absent);
}

#endif
