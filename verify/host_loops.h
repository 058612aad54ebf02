/* SPDX-License-Identifier: MIT */
/* host_loops.h - loops that keep one part of the processor busy. They are in assembly, so that no
 * compiler changes them and no compiler option has to allow the instructions. Each runs `count`
 * turns and reads from `p`: 64 bytes of numbers, or all the bytes of its turns. */
#ifndef VERIFY_HOST_LOOPS_H
#define VERIFY_HOST_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

/* The quantity that a loop measures. */
enum host_what { HOST_F32, HOST_BF16, HOST_INT8, HOST_READ };

struct host_loop {
    enum host_what what;
    const char *unit;   /* of the processor */
    double turn;        /* operations or bytes of a turn */
    bool (*runs)(void); /* on this processor */
    void (*loop)(const void *p, int64_t count);
};

/* Twelve sums: more than the latency in cycles times the number of units. */
#define TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
enum { SUMS = 12, READ_BYTES = 512 };

#if defined(__x86_64__)

static bool always(void)
{
    return true;
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}

static bool has_vnni512(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512vnni");
}

/* The bit of leaf 7, subleaf 1. */
static bool has_bit(uint32_t bit)
{
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> bit & 1;
}

static bool has_avx_vnni(void)
{
    return has_avx2() && has_bit(4);
}

static bool has_bf16(void)
{
    return has_avx512() && has_bit(5);
}

#define CLOBBERS                                                                           \
    "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",        \
        "xmm8", "xmm9", "xmm10", "xmm11", "xmm14", "xmm15"

#define CLEAR(i) "vpxor %%xmm" #i ", %%xmm" #i ", %%xmm" #i "\n"
#define SUM_LOOP(name, OP, reg)                                                            \
    static void name(const void *p, int64_t count)                                         \
    {                                                                                      \
        __asm__ volatile(TWELVE(CLEAR) "vmovups (%1), %%" reg "14\n"                       \
                                       "vmovups (%1), %%" reg "15\n"                       \
                                       ".p2align 5\n"                                      \
                                       "1:\n" TWELVE(OP) "dec %0\n"                        \
                                                         "jnz 1b\n"                        \
                                                         "vzeroupper\n"                    \
                         : "+r"(count)                                                     \
                         : "r"(p)                                                          \
                         : CLOBBERS);                                                      \
    }
#define FMA_512(i)  "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #i "\n"
#define FMA_256(i)  "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #i "\n"
#define DOT_512(i)  "vpdpbusd %%zmm14, %%zmm15, %%zmm" #i "\n"
#define DOT_256(i)  "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm" #i "\n"
#define BF16_512(i) "vdpbf16ps %%zmm14, %%zmm15, %%zmm" #i "\n"
SUM_LOOP(fma_512, FMA_512, "zmm")
SUM_LOOP(fma_256, FMA_256, "ymm")
SUM_LOOP(dot_512, DOT_512, "zmm")
SUM_LOOP(dot_256, DOT_256, "ymm")
SUM_LOOP(bf16_512, BF16_512, "zmm")

/* Without FMA, half of the sums are products. */
static void mul_add(const void *p, int64_t count)
{
#define ZERO(i)    "xorps %%xmm" #i ", %%xmm" #i "\n"
#define PAIR(m, a) "mulps %%xmm14, %%xmm" #m "\naddps %%xmm15, %%xmm" #a "\n"
    __asm__ volatile(TWELVE(ZERO) "movups (%1), %%xmm14\n"
                                  "movups (%1), %%xmm15\n"
                                  "1:\n" PAIR(0, 1) PAIR(2, 3) PAIR(4, 5) PAIR(6, 7)
                                      PAIR(8, 9) PAIR(10, 11) "dec %0\n"
                                                              "jnz 1b\n"
                     : "+r"(count)
                     : "r"(p)
                     : CLOBBERS);
#undef PAIR
#undef ZERO
}

#define LOAD(at, move, reg) move " " #at "(%1), %%" reg "\n"
#define READ_LOOP(name, loads)                                                             \
    static void name(const void *p, int64_t count)                                         \
    {                                                                                      \
        __asm__ volatile(".p2align 5\n"                                                    \
                         "1:\n" loads "add $512, %1\n"                                     \
                         "dec %0\n"                                                        \
                         "jnz 1b\n"                                                        \
                         : "+r"(count), "+r"(p)                                            \
                         :                                                                 \
                         : CLOBBERS);                                                      \
    }
#define LINE_512(at) LOAD(at, "vmovups", "zmm0")
#define LINE_256(at) LOAD(at, "vmovups", "ymm0") LOAD(32 + at, "vmovups", "ymm1")
#define LINE_128(at)                                                                       \
    LOAD(at, "movups", "xmm0")                                                             \
    LOAD(16 + at, "movups", "xmm1")                                                        \
    LOAD(32 + at, "movups", "xmm2") LOAD(48 + at, "movups", "xmm3")
#define LINES(X) X(0) X(64) X(128) X(192) X(256) X(320) X(384) X(448)
READ_LOOP(read_512, LINES(LINE_512))
READ_LOOP(read_256, LINES(LINE_256))
READ_LOOP(read_128, LINES(LINE_128))

/* The best of each kind first. */
static const struct host_loop host_loops[] = {
    { HOST_F32, "AVX-512", SUMS * 32, has_avx512, fma_512 },
    { HOST_F32, "FMA", SUMS * 16, has_avx2, fma_256 },
    { HOST_F32, "SSE2", SUMS * 4, always, mul_add },
    { HOST_BF16, "AVX512_BF16", SUMS * 64, has_bf16, bf16_512 },
    { HOST_INT8, "AVX512_VNNI", SUMS * 128, has_vnni512, dot_512 },
    { HOST_INT8, "AVX-VNNI", SUMS * 64, has_avx_vnni, dot_256 },
    { HOST_READ, "AVX-512", READ_BYTES, has_avx512, read_512 },
    { HOST_READ, "AVX2", READ_BYTES, has_avx2, read_256 },
    { HOST_READ, "SSE2", READ_BYTES, always, read_128 },
};

#elif defined(__aarch64__)

static bool always(void)
{
    return true;
}

static bool has_hwcap(unsigned long word, int bit)
{
#if defined(__linux__)
    return getauxval(word) >> bit & 1;
#else
    return (void)word, (void)bit, false;
#endif
}

static bool has_dotprod(void)
{
    return has_hwcap(16 /* AT_HWCAP */, 20);
}

static bool has_i8mm(void)
{
    return has_hwcap(26 /* AT_HWCAP2 */, 13);
}

static bool has_bf16(void)
{
    return has_hwcap(26 /* AT_HWCAP2 */, 14);
}

#define CLOBBERS                                                                           \
    "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",     \
        "v11", "v14", "v15"

#define CLEAR(i) "movi v" #i ".4s, #0\n"
#define SUM_LOOP(name, OP)                                                                 \
    static void name(const void *p, int64_t count)                                         \
    {                                                                                      \
        __asm__ volatile(TWELVE(CLEAR) "ldr q14, [%1]\n"                                   \
                                       "ldr q15, [%1]\n"                                   \
                                       "1:\n" TWELVE(OP) "subs %0, %0, #1\n"               \
                                                         "b.ne 1b\n"                       \
                         : "+r"(count)                                                     \
                         : "r"(p)                                                          \
                         : CLOBBERS);                                                      \
    }
/* Encoded as numbers, because some assemblers do not know the extensions: operands v14 and v15. */
#define FMLA(i)   "fmla v" #i ".4s, v14.4s, v15.4s\n"
#define SDOT(i)   ".inst 0x4e8f95c0 + " #i "\n"
#define SMMLA(i)  ".inst 0x4e8fa5c0 + " #i "\n"
#define BFMMLA(i) ".inst 0x6e4fedc0 + " #i "\n"
SUM_LOOP(fmla, FMLA)
SUM_LOOP(sdot, SDOT)
SUM_LOOP(smmla, SMMLA)
SUM_LOOP(bfmmla, BFMMLA)

static void read_pairs(const void *p, int64_t count)
{
#define LINE(at)  "ldp q0, q1, [%1, #" #at "]\n"
    __asm__ volatile("1:\n" LINE(0) LINE(32) LINE(64) LINE(96) LINE(128) LINE(160) LINE(192)
                         LINE(224) LINE(256) LINE(288) LINE(320) LINE(352) LINE(384)
                             LINE(416) LINE(448) LINE(480) "add %1, %1, #512\n"
                                                           "subs %0, %0, #1\n"
                                                           "b.ne 1b\n"
                     : "+r"(count), "+r"(p)
                     :
                     : CLOBBERS);
#undef LINE
}

static const struct host_loop host_loops[] = {
    { HOST_F32, "NEON", SUMS * 8, always, fmla },
    { HOST_BF16, "BF16", SUMS * 32, has_bf16, bfmmla },
    { HOST_INT8, "I8MM", SUMS * 64, has_i8mm, smmla },
    { HOST_INT8, "DotProd", SUMS * 32, has_dotprod, sdot },
    { HOST_READ, "NEON", READ_BYTES, always, read_pairs },
};

#else

/* Other processors are not measured. */
static bool never(void)
{
    return false;
}

static const struct host_loop host_loops[] = { { HOST_F32, "", 0, never, NULL } };

#endif

#endif
