/* SPDX-License-Identifier: MIT */
/* rows.h - a plugin's table of kernels: which row computes an op on this device.
 *
 * A plugin lists its rows once, in kernels.def:
 *
 *   KERNEL(op, row, needs, dtypes, condition)
 *
 * `op` as in HW_OPS; `row`, the name that logs and HW_KERNEL use; `needs`, bits of features
 * that the device must have, whose meaning is the plugin's; `dtypes`, the types that the
 * op's float and block operands may have (F32 | F16 | ANY ...); `condition`, an expression
 * on `op`, a pointer to the op's struct. The first row of an op that fits wins; its last
 * one is the portable one. The rows of one op stand together. In launch.c:
 *
 *   #define KERNEL KERNEL_FITS
 *   #include "kernels.def"
 *   #undef KERNEL
 *   #define KERNEL KERNEL_ROW
 *   static const struct kernel_row rows[] = {
 *   #include "kernels.def"
 *   };
 *   #undef KERNEL
 *
 * No cache: a row is found in a few comparisons, cheaper than a look-up by dtype and shape.
 */
#ifndef COMMON_ROWS_H
#define COMMON_ROWS_H

#include <hw/plugin.h>

#include <stdbool.h>

/* Types of operands, as a row states them. Index operands (i32) are not asked about. */
#define KERNEL_TYPE(dtype) (UINT32_C(1) << (dtype))
#define F32                KERNEL_TYPE(HW_F32)
#define F16                KERNEL_TYPE(HW_F16)
#define BF16               KERNEL_TYPE(HW_BF16)
#define Q8_0               KERNEL_TYPE(HW_Q8_0)
#define Q4_0               KERNEL_TYPE(HW_Q4_0)
#define ANY                UINT32_MAX

struct kernel_row {
    uint32_t op;
    uint32_t dtypes;
    const char *name;
    uint64_t needs;
    const char *condition; /* as it stands in kernels.def */
    bool (*fits)(const void *args);
};

struct kernel_table {
    const struct kernel_row *rows;
    uint32_t count;
    /* Puts a row's `needs` in words, for people: "x86-64-v4"; "" for nothing. */
    void (*needs_in_words)(uint64_t needs, char *text, size_t size);
};

#define KERNEL_FITS(op_, row, needs_, dtypes_, condition_)                                 \
    static bool fits_##row(const void *args)                                               \
    {                                                                                      \
        const struct hw_##op_ *op = args;                                                  \
        (void)op;                                                                          \
        return condition_;                                                                 \
    }
#define KERNEL_ROW(op_, row, needs_, dtypes_, condition_)                                  \
    { kernel_op_##op_, dtypes_, #row, needs_, #condition_, fits_##row },

/* HW_OP_MATMUL by the name that rows are written with. */
enum {
#define X(NAME, name) kernel_op_##name = HW_OP_##NAME,
    HW_OPS(X)
#undef X
};

/* What a queue may choose from: for each op a range of rows, best first. */
struct kernel_choice {
    uint64_t features;
    uint16_t first[HW_OP_COUNT], last[HW_OP_COUNT];
    bool forced[HW_OP_COUNT];
};

/* Fills in `choice` for a device with `features`. `spec` is that of hw_queue_desc.kernel. A
 * name that no op has, or a row that the device can not run, is HW_INVALID; the message
 * lists the rows. */
int32_t kernel_choose(const struct hw_host *host, const struct kernel_table *table,
                      uint64_t features, const char *spec, struct kernel_choice *choice);

/* The row that computes this, as an index of the table, or -1. */
int32_t kernel_select(const struct kernel_table *table, const struct kernel_choice *choice,
                      uint32_t op, const void *args);

/* For hw_plugin.kernel_info: the index-th row of `op`; HW_END past the last. */
int32_t kernel_list(const struct kernel_table *table, uint64_t features, uint32_t op,
                    uint32_t index, struct hw_kernel_info *info);

/* The operands of an op, as tensors of `args`: "a f32 [4,8], b q8_0 [16,8], ...". */
void kernel_describe(uint32_t op, const void *args, char *text, size_t size);

#endif
