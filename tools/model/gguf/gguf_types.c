/* SPDX-License-Identifier: MIT */
/* gguf_types.c - the names and sizes of the format's value types and tensor types. */
#include "gguf.h"

static const struct {
    const char *name;
    size_t bytes; /* 0: not of fixed size */
} kinds[GGUF_KINDS] = {
    [GGUF_U8] = { "u8", 1 },         [GGUF_I8] = { "i8", 1 },
    [GGUF_U16] = { "u16", 2 },       [GGUF_I16] = { "i16", 2 },
    [GGUF_U32] = { "u32", 4 },       [GGUF_I32] = { "i32", 4 },
    [GGUF_F32] = { "f32", 4 },       [GGUF_BOOL] = { "bool", 1 },
    [GGUF_STRING] = { "string", 0 }, [GGUF_ARRAY] = { "array", 0 },
    [GGUF_U64] = { "u64", 8 },       [GGUF_I64] = { "i64", 8 },
    [GGUF_F64] = { "f64", 8 },
};

/* Every tensor type of the format, so that unsupported ones are named, too. */
static const struct {
    const char *name; /* NULL: no such type */
    uint16_t block, bytes;
} types[GGUF_TYPE_END] = {
    [0] = { "F32", 1, 4 },         [1] = { "F16", 1, 2 },
    [2] = { "Q4_0", 32, 18 },      [3] = { "Q4_1", 32, 20 },
    [6] = { "Q5_0", 32, 22 },      [7] = { "Q5_1", 32, 24 },
    [8] = { "Q8_0", 32, 34 },      [9] = { "Q8_1", 32, 36 },
    [10] = { "Q2_K", 256, 84 },    [11] = { "Q3_K", 256, 110 },
    [12] = { "Q4_K", 256, 144 },   [13] = { "Q5_K", 256, 176 },
    [14] = { "Q6_K", 256, 210 },   [15] = { "Q8_K", 256, 292 },
    [16] = { "IQ2_XXS", 256, 66 }, [17] = { "IQ2_XS", 256, 74 },
    [18] = { "IQ3_XXS", 256, 98 }, [19] = { "IQ1_S", 256, 50 },
    [20] = { "IQ4_NL", 32, 18 },   [21] = { "IQ3_S", 256, 110 },
    [22] = { "IQ2_S", 256, 82 },   [23] = { "IQ4_XS", 256, 136 },
    [24] = { "I8", 1, 1 },         [25] = { "I16", 1, 2 },
    [26] = { "I32", 1, 4 },        [27] = { "I64", 1, 8 },
    [28] = { "F64", 1, 8 },        [29] = { "IQ1_M", 256, 56 },
    [30] = { "BF16", 1, 2 },       [34] = { "TQ1_0", 256, 54 },
    [35] = { "TQ2_0", 256, 66 },   [39] = { "MXFP4", 32, 17 },
    [40] = { "NVFP4", 64, 36 },    [41] = { "Q1_0", 128, 18 },
};

/* Types that the format had for a time. */
static const struct {
    uint32_t type;
    const char *name;
} retired[] = {
    { 4, "Q4_2" },      { 5, "Q4_3" },        { 31, "Q4_0_4_4" },   { 32, "Q4_0_4_8" },
    { 33, "Q4_0_8_8" }, { 36, "IQ4_NL_4_4" }, { 37, "IQ4_NL_4_8" }, { 38, "IQ4_NL_8_8" },
};

const char *gguf_type_name(uint32_t type)
{
    return type < GGUF_TYPE_END && types[type].name ? types[type].name : "?";
}

uint32_t gguf_type_block(uint32_t type)
{
    return types[type].block;
}

uint32_t gguf_type_bytes(uint32_t type)
{
    return types[type].bytes;
}

const char *gguf_kind_name(enum gguf_kind kind)
{
    return kinds[kind].name;
}

size_t gguf_kind_bytes(enum gguf_kind kind)
{
    return kinds[kind].bytes;
}

const char *gguf_type_retired(uint32_t type)
{
    for (size_t i = 0; i < sizeof retired / sizeof *retired; i++)
        if (retired[i].type == type)
            return retired[i].name;
    return NULL;
}
