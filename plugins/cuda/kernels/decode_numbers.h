/* SPDX-License-Identifier: MIT */
/* decode_numbers.h - what attention_decode.cu has of the machine, and its numbers: parts of
 * 11 bits, and loads of cached types. Follows args.h, the prelude and device.h. */
#ifndef CUDA_KERNELS_DECODE_NUMBERS_H
#define CUDA_KERNELS_DECODE_NUMBERS_H

/* ---- the machine ---- */

/* nvcc also reads this without an architecture. */
#ifdef __CUDA_ARCH__
#define CAPABILITY (__CUDA_ARCH__ / 10)
#else
#define CAPABILITY 90
#endif

struct place3 {
    int x, y, z;
};

FUNC struct place3 group_place()
{
    struct place3 at;
    asm("mov.u32 %0, %%ctaid.x;" : "=r"(at.x));
    asm("mov.u32 %0, %%ctaid.y;" : "=r"(at.y));
    asm("mov.u32 %0, %%ctaid.z;" : "=r"(at.z));
    return at;
}

FUNC bool any_lane(bool is)
{
    int any;
    asm volatile(
        "{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.any.pred p, p, 0xffffffff; "
        "selp.s32 %0, 1, 0, p; }"
        : "=r"(any)
        : "r"((int)is));
    return any != 0;
}

/* 2^x */
FUNC float exp2_f32(float x)
{
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Of whole rows of 128 bytes, the L2 cache is to fetch all at once, and to keep none. */
template <int TYPE> FUNC void copy_16(u8 *to, GLOBAL const u8 *from)
{
    u32 at;
    asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }"
        : "=r"(at)
        : "l"(to));
    if (TYPE == STORAGE_Q8_0)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from)
                     : "memory");
    else
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(
                at),
            "l"(from), "l"(READ_ONCE)
            : "memory");
#else
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(at),
                     "l"(from)
                     : "memory");
#endif
}

FUNC void copies_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for all but the last PENDING commits. */
template <int PENDING> FUNC void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* c += a . b: 16 x 8 numbers from 16 x 8 and 8 x 8. A lane has the rows lane / 4 and lane / 4 + 8
 * of a and c, its column is lane % 4 and lane % 4 + 4 of a, 2 (lane % 4) and the next one of c; of
 * b it has the rows lane % 4 and lane % 4 + 4 of column lane / 4. */
FUNC void multiply(float *c, struct quad a, u32 b0, u32 b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1));
}

/* A number is high + low, each with 11 bits; the product ignores what high has beyond. */
FUNC u32 high_of(float v)
{
    return bits_of_f32(v) & 0xffffe000u;
}

FUNC u32 low_of(float v)
{
    return bits_of_f32(v - f32_of_bits(high_of(v)));
}

/* ---- numbers ---- */

/* The first part, of numbers that may need no other. */
template <int TYPE> FUNC u32 part_of(float v)
{
    return TYPE == STORAGE_F32 ? high_of(v) : bits_of_f32(v);
}

FUNC int bytes_of(int type, int numbers)
{
    return type == STORAGE_F32    ? numbers * 4
           : type == STORAGE_Q8_0 ? numbers / BLOCK * Q8_0_BYTES
                                  : numbers * 2;
}

/* A row of blocks, which begins at an even address. Four codes at a multiple of 4 bytes from there,
 * or at 2 more, are in two words from from[0] or from[1] on, behind so many bits. */
struct codes {
    const u8 *from[2];
    u32 before[2];
};

FUNC struct codes codes_of(const u8 *row)
{
    const int odd = (int)((u64)row % 4);
    struct codes c;
    c.from[0] = row - odd;
    c.from[1] = row + (odd ? 0 : -2);
    c.before[0] = (u32)odd * 8;
    c.before[1] = odd ? 0 : 16;
    return c;
}

/* Four codes with a sign as floats: a byte is the end of a float of 2^23. */
FUNC void load_codes(float *to, const struct codes &c, int at)
{
    const u32 *words = (const u32 *)(c.from[at / 2 % 2] + at);
    u32 codes;
    asm("shf.r.wrap.b32 %0, %1, %2, %3;"
        : "=r"(codes)
        : "r"(words[0]), "r"(words[1]), "r"(c.before[at / 2 % 2]));
    codes ^= 0x80808080u;
    UNROLL for (int i = 0; i < 4; i++)
    {
        u32 bits;
        asm("prmt.b32 %0, %1, 0x4b000000, %2;" : "=r"(bits) : "r"(codes), "r"(0x7440 + i));
        to[i] = f32_of_bits(bits) - 8388736.0f;
    }
}

FUNC float scale_at(const u8 *block)
{
    return f32_of_f16(*(const u16 *)block);
}

/* Eight neighbours in a row of floats, from a multiple of eight on. */
template <int TYPE> FUNC void load_eight(float *to, const u8 *row, int first)
{
    if (TYPE == STORAGE_F32) {
        const struct quad *from = (const struct quad *)(row + first * 4);
        UNROLL for (int i = 0; i < 8; i++) to[i] = f32_of_bits(from[i / 4].v[i % 4]);
    } else {
        const struct quad from = *(const struct quad *)(row + first * 2);
        UNROLL for (int i = 0; i < 8; i++)
        {
            const u16 bits = (u16)(from.v[i / 2] >> i % 2 * 16);
            to[i] = TYPE == STORAGE_F16 ? f32_of_f16(bits) : f32_of_bf16(bits);
        }
    }
}

/* A number as it is stored, so that many are on their way before one is converted. */
FUNC u32 raw_at(GLOBAL const u8 *row, int type, int i)
{
    return type == STORAGE_F32 ? ((GLOBAL const u32 *)row)[i]
                               : ((GLOBAL const u16 *)row)[i];
}

FUNC float float_of(u32 raw, int type)
{
    return type == STORAGE_F32   ? f32_of_bits(raw)
           : type == STORAGE_F16 ? f32_of_f16((u16)raw)
                                 : f32_of_bf16((u16)raw);
}

#endif
