/* SPDX-License-Identifier: MIT */
/* Plain C: one work-item per group (GROUP == 1), so a barrier does nothing, and a loop over
 * a group's elements is an ordinary loop, which the compiler vectorises. KERNEL_NAME
 * renames the kernels, so that one file can be compiled for several storage types and
 * instruction sets. */
#ifndef KERNELS_DIALECT_C_H
#define KERNELS_DIALECT_C_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The text of a kernel states the order of sums, and several functions depend on it. */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) ||                             \
    defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "kernels are built without -ffast-math, -fassociative-math and -ffinite-math-only"
#endif

#ifndef KERNEL_NAME
#define KERNEL_NAME(name) name
#endif
/* Static, so that a small one becomes a part of the loop over its groups. */
#define KERNEL(name) static void KERNEL_NAME(name)
#define FUNC         static inline
#define LOCAL_FUNC   FUNC
/* For loops to vectorise, what they call has to be inlined. */
#define LOOP_FUNC FUNC __attribute__((always_inline))
#define GLOBAL
#define LOCAL
#define SHARED
#define PRIVATE
#define ARGS(type) type
#define GRID       , int group_id_
#define BARRIER()  ((void)0)
#define group_id() group_id_
#define local_id() 0
#undef GROUP
#define GROUP 1

/* The widest vector of the instruction set. Compilers vectorise plain loops, but only values
 * of this type stay in registers from one loop to the next. */
#ifndef VEC
#if defined(__AVX512F__)
#define VEC 16
#elif defined(__AVX__)
#define VEC 8
#else
#define VEC 4
#endif
typedef float vec __attribute__((vector_size(4 * VEC)));
typedef float vec_at __attribute__((vector_size(4 * VEC), aligned(4), may_alias));
#define load_vec(p)     (*(const vec_at *)(p))
#define store_vec(p, v) (*(vec_at *)(p) = (v))
#define vec_zero        ((vec){ 0.0f })

/* The sum of a vector, by halves. It stays in registers if the compiler has a shuffle (GCC
 * from 12 on, clang); for the loop, GCC goes through memory. */
#ifndef __has_builtin
#define __has_builtin(name) 0
#endif
static inline float vec_sum(vec v)
{
#if !__has_builtin(__builtin_shufflevector)
    for (int span = VEC / 2; span > 0; span /= 2)
        for (int i = 0; i < span; i++)
            v[i] += v[i + span];
#elif VEC == 16
    v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6,
                                 7);
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10,
                                 11);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12,
                                 13);
    v += __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15,
                                 14);
#elif VEC == 8
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    v += __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
#else
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
    v += __builtin_shufflevector(v, v, 1, 0, 3, 2);
#endif
    return v[0];
}
#endif

typedef int8_t i8;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;

FUNC float f32_of_bits(u32 u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

FUNC u32 bits_of_f32(float f)
{
    u32 u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* a * b, rounded before it is added to anything: the compiler cannot know what the empty
 * instruction does to the product, so it cannot contract it with a sum. */
#if defined(__x86_64__)
#define ANY_FLOAT "+x"
#elif defined(__aarch64__)
#define ANY_FLOAT "+w"
#else
#define ANY_FLOAT "+m"
#endif
FUNC float mul_exact(float a, float b)
{
    float product = a * b;
    __asm__("" : ANY_FLOAT(product));
    return product;
}

FUNC float sqrt_f32(float x)
{
    return sqrtf(x);
}

/* No branches in the two conversions, so that loops over them vectorise. Subnormals come
 * from one exact sum with a constant whose last bit has their unit. */
FUNC float f32_of_f16(u16 h)
{
    const u32 sign = (u32)(h & 0x8000u) << 16, rest = (u32)(h & 0x7fffu) << 13;
    const u32 wide = rest + (rest < 0x0f800000u ? 0x38000000u : 0x70000000u);
    const float tiny = f32_of_bits(rest + 0x38800000u) - f32_of_bits(0x38800000u);
    return f32_of_bits(sign | (rest < 0x00800000u ? bits_of_f32(tiny) : wide));
}

/* The processor's own conversion. Compilers do not vectorise it, but it is the shortest one
 * for a single number. */
#if defined(__F16C__) && defined(__FLT16_MAX__)
FUNC float f32_of_one_f16(u16 h)
{
    __extension__ _Float16 f;
    memcpy(&f, &h, sizeof f);
    return (float)f;
}
#define f32_of_one_f16 f32_of_one_f16
#endif

FUNC u16 f16_of_f32(float f)
{
    const u32 sign = bits_of_f32(f) >> 16 & 0x8000u, u = bits_of_f32(f) & 0x7fffffffu;
    const u32 tiny = bits_of_f32(f32_of_bits(u) + 0.5f) - 0x3f000000u;
    const u32 rounded = (u + (u >> 13 & 1u) + 0xfffu - 0x38000000u) >> 13;
    const u32 fits = u < 0x38800000u ? tiny : rounded;
    const u32 huge = u > 0x7f800000u ? 0x7e00u | (u >> 13 & 0x3ffu) : 0x7c00u;
    return (u16)(sign | (u < 0x477ff000u ? fits : huge));
}

#endif
