/* SPDX-License-Identifier: MIT */
/* seen_avx2.h - what compare() in seen.h says, 32 bytes at a time, on processors that have AVX2.
 * Part of ops.c. */
#ifndef HW_RUN_SEEN_AVX2_H
#define HW_RUN_SEEN_AVX2_H

#include "run/seen.h"

#include <immintrin.h>

#define AVX2     __attribute__((target("avx2")))
#define HOT_AVX2 static inline __attribute__((always_inline, target("avx2")))

struct difference_avx2 {
    __m256i first;   /* of operands: address, dtype and rank */
    __m256i form;    /* extents and strides; fields */
    __m128i layout;  /* and what is reserved */
    uint32_t absent; /* dtypes of operands that were absent */
};

/* `given` may be anywhere, `like` is aligned. */
HOT_AVX2 __m256i differ_32(const void *given, const void *like)
{
    return _mm256_xor_si256(_mm256_loadu_si256(given), _mm256_load_si256(like));
}

HOT_AVX2 void compare_operand_avx2(struct difference_avx2 *differ,
                                   const struct hw_tensor *t, const struct hw_tensor *like)
{
    const __m256i form = _mm256_or_si256(differ_32(t->extent, like->extent),
                                         differ_32(t->stride, like->stride));
    const __m128i layout = _mm_xor_si128(_mm_loadu_si128((const void *)&t->layout),
                                         _mm_load_si128((const void *)&like->layout));
    differ->first = _mm256_or_si256(differ->first, differ_32(t, like));
    differ->form = _mm256_or_si256(differ->form, form);
    differ->layout = _mm_or_si128(differ->layout, layout);
}

/* `count` and `fields`, bytes that are 0, 32 or 64, are known when compiling. */
HOT_AVX2 struct difference_avx2 compare_avx2(const struct seen_call *seen, const void *args,
                                             uint32_t count, uint64_t fields)
{
    const struct hw_tensor *t = args;
    const char *end = at(args, seen->size), *like = at(seen->tail, TAIL_BYTES);
    struct difference_avx2 differ = { .absent = HW_NONE };
    if (seen->field_bytes)
        for (; fields; fields -= sizeof(__m256i))
            differ.form = _mm256_or_si256(differ.form,
                                          differ_32(end - fields, like - fields));
#pragma GCC unroll 8
    for (uint32_t i = 0; i < count; i++)
        if (i > 0 && i + 1 < count && unlikely(is_absent(seen, i)))
            differ.absent |= (uint32_t)t[i].dtype;
        else
            compare_operand_avx2(&differ, &t[i], &seen->operand[i].tensor);
    return differ;
}

HOT_AVX2 bool none_in(__m256i bits)
{
    return _mm256_testz_si256(bits, bits);
}

HOT_AVX2 __m256i form_of(const struct difference_avx2 *differ)
{
    return _mm256_or_si256(differ->form, _mm256_zextsi128_si256(differ->layout));
}

HOT_AVX2 bool same_call_avx2(const struct difference_avx2 *differ)
{
    return none_in(_mm256_or_si256(form_of(differ), differ->first)) && !differ->absent;
}

HOT_AVX2 bool same_form_avx2(const struct difference_avx2 *differ)
{
    return none_in(form_of(differ)) && !differ->absent &&
           !_mm256_extract_epi64(differ->first, 3);
}

#endif
