/* SPDX-License-Identifier: MIT */
/* vectors.h - shared by tuned kernels: four numbers at a time, and the matrices of a batch. Follows
 * the headers of kernels/. */
#ifndef VECTORS_H
#define VECTORS_H

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

/* Elements i .. i + 3 of a row of floats; i is a multiple of 4, and the row is aligned to four
 * elements. FOUR(f16)(row, i) takes the type from a macro. */
#define FOUR(type) JOIN(four_, type)

FUNC float4 four_f32(GLOBAL const u8 *row, i64 i)
{
    return *(GLOBAL const float4 *)(row + i * 4);
}

FUNC float4 four_f16(GLOBAL const u8 *row, i64 i)
{
    const ushort4 v = *(GLOBAL const ushort4 *)(row + i * 2);
    return (float4)(f32_of_f16(v.x), f32_of_f16(v.y), f32_of_f16(v.z), f32_of_f16(v.w));
}

FUNC float4 four_bf16(GLOBAL const u8 *row, i64 i)
{
    return as_float4(convert_uint4(*(GLOBAL const ushort4 *)(row + i * 2)) << 16);
}

FUNC float4 four_of(GLOBAL const u8 *row, int type, i64 i)
{
    return type == STORAGE_F32   ? four_f32(row, i)
           : type == STORAGE_F16 ? four_f16(row, i)
                                 : four_bf16(row, i);
}

/* The place of matrix number `matrix` of c, whose last but two extent is `batch1`. */
FUNC struct index batch_of(i64 matrix, i64 batch1)
{
    struct index batch;
    batch.i0 = matrix / batch1;
    batch.i1 = matrix % batch1;
    batch.i2 = 0;
    return batch;
}

/* For blocks, in rows that are aligned to them. */
FUNC float4 four_q8_0(GLOBAL const u8 *row, i64 i)
{
    GLOBAL const u8 *block = row + i / BLOCK * Q8_0_BYTES;
    GLOBAL const ushort *codes = (GLOBAL const ushort *)(block + 2 + i % BLOCK);
    return load_scale(block) * convert_float4(as_char4((ushort2)(codes[0], codes[1])));
}

#define FOUR_OF_BLOCKS(type)                                                               \
    FUNC float4 four_##type(GLOBAL const u8 *row, i64 i)                                   \
    {                                                                                      \
        float v[4];                                                                        \
        load_##type(v, row, i, 4);                                                         \
        return vload4(0, v);                                                               \
    }
FOUR_OF_BLOCKS(q4_0)
FOUR_OF_BLOCKS(q4_K)

#endif
