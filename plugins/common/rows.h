/* SPDX-License-Identifier: MIT */
/* rows.h - a plugin's table of kernels, and the choice of the row that computes an op.
 *
 * A plugin lists its rows once, in its kernels.def:
 *
 *   ROW(op, row, needs, types, condition, plan)
 *
 * op: as in HW_OPS. row: the name that logs and HW_KERNEL use. needs: feature bits that the device
 * must have, defined by the plugin. types: the types that the op's float and block operands may
 * have, TYPE(F32) | TYPE(F16) or ANY_TYPE. condition: ALWAYS, or WHEN(expression, text): an
 * expression on `op`, a pointer to the op's struct, and its description for people. plan: the
 * function that prepares a launch of this row.
 *
 * Rows of one op are tried from first to last. The last one is the portable row: it needs nothing,
 * takes ANY_TYPE and is selected by HW_KERNEL=portable. A row is chosen before the op is lowered to
 * a portable kernel, so the rows above may compute ops that no portable kernel can. The plugin
 * makes its table like this:
 *
 *   #define ROW ROW_DECLARE
 *   #include "kernels.def"
 *   #define ROW ROW_ENTRY
 *   static const struct kernel_row rows[] = {
 *   #include "kernels.def"
 *   };
 *
 * (kernels.def ends with #undef ROW.) Choices are not cached: finding a row takes a few
 * comparisons, less than a lookup by type and shape. */
#ifndef COMMON_ROWS_H
#define COMMON_ROWS_H

#include <hw/plugin.h>

#include <stdbool.h>

#define TYPE(NAME) (UINT32_C(1) << HW_##NAME)
#define ANY_TYPE   UINT32_MAX

/* One call, ready to launch: the code, its addresses and its grid. Each plugin defines its own. */
struct plan;
struct kernel_row;

/* Fills in `plan` for an op with its checked struct. Returns NULL, or the reason why this row
 * cannot compute the op; then the next row is tried. */
typedef const char *kernel_plan_fn(struct plan *plan, const struct kernel_row *row,
                                   const void *args);

struct kernel_row {
    uint32_t op;
    uint32_t types; /* bits TYPE(...) of the operands; i32 operands do not count */
    const char *name;
    uint64_t needs;
    const char *condition; /* for people to read; "": none */
    bool (*fits)(const void *args);
    kernel_plan_fn *plan;
};

struct kernel_table {
    const struct kernel_row *rows;
    uint32_t count;
    /* Writes a row's `needs` as text: "x86-64-v4"; "" if there are none. NULL: no row needs
     * anything. */
    void (*describe_needs)(uint64_t needs, char *text, size_t size);
};

/* The column `condition`, a pair. */
#define WHEN(expression, text)            (expression, text)
#define ALWAYS                            (true, "")
#define ROW_EXPRESSION_(expression, text) (expression)
#define ROW_TEXT_(expression, text)       text

#define ROW_DECLARE(op_, row_, needs_, types_, condition_, plan_)                          \
    kernel_plan_fn plan_;                                                                  \
    static bool fits_##row_(const void *args)                                              \
    {                                                                                      \
        const struct hw_##op_ *op = args;                                                  \
        (void)op;                                                                          \
        return ROW_EXPRESSION_ condition_;                                                 \
    }
#define ROW_ENTRY(op_, row_, needs_, types_, condition_, plan_)                            \
    { kernel_op_##op_, types_, #row_, needs_, ROW_TEXT_ condition_, fits_##row_, plan_ },

/* HW_OP_MATMUL by the name that is written in kernels.def. */
enum {
#define X(NAME, name) kernel_op_##name = HW_OP_##NAME,
    HW_OPS(X)
#undef X
};

/* The rows that a queue may use: a range for each op, best first. */
struct kernel_choice {
    const struct kernel_table *table;
    uint64_t features; /* of the device */
    uint16_t first[HW_OP_COUNT], end[HW_OP_COUNT];
    bool forced[HW_OP_COUNT];
};

/* For hw_plugin.device_open: fills in the rest of `choice`; its table and features are already set.
 * HW_KERNEL applies to all devices, so it may name rows that this device lacks or cannot run. These
 * are skipped. */
void kernel_choose(const struct hw_host *host, struct kernel_choice *choice);

/* For hw_plugin.queue_open: like kernel_choose(), with desc->kernel; `choice` is a copy of the
 * device's. Returns HW_INVALID for a name that no op has and for a row that the device cannot run;
 * the message lists the rows. Returns HW_UNSUPPORTED if `desc` sets fields that this version of the
 * plugin does not know. */
int32_t kernel_choose_for_queue(const struct hw_host *host,
                                const struct hw_queue_desc *desc,
                                struct kernel_choice *choice);

/* Plans an op with the first row that takes it. Returns NULL, or the reason why no row does. */
const char *kernel_plan(const struct kernel_choice *choice, uint32_t op, const void *args,
                        struct plan *plan);

/* For hw_plugin.kernel_info: the index-th row of `op`; HW_END past the last. */
int32_t kernel_list(const struct kernel_choice *choice, uint32_t op, uint32_t index,
                    struct hw_kernel_info *info);

/* For hw_plugin.supports: passes on the result of kernel_plan(). */
int32_t kernel_supports(const char *why_not, char *why, size_t why_size);

/* Defines launch_supports() and launch_row() of slots.h, which answer the host's queries about ops.
 * A macro, because only the plugin knows struct plan and struct device; the latter has a member
 * `choice`. `bytes`: the memory that an op needs besides its operands, once `plan` is filled in. */
#define KERNEL_QUERIES KERNEL_QUERIES_WITH(0)
#define KERNEL_QUERIES_WITH(bytes)                                                         \
    int32_t launch_supports(void *device, uint32_t op, const void *args, char *why,        \
                            size_t why_size, uint64_t *scratch)                            \
    {                                                                                      \
        const struct kernel_choice *choice = &((struct device *)device)->choice;           \
        struct plan plan;                                                                  \
        const char *why_not = kernel_plan(choice, op, args, &plan);                        \
        if (scratch)                                                                       \
            *scratch = why_not ? 0 : (bytes);                                              \
        return kernel_supports(why_not, why, why_size);                                    \
    }                                                                                      \
    int32_t launch_row(void *device, uint32_t op, uint32_t index,                          \
                       struct hw_kernel_info *info)                                        \
    {                                                                                      \
        return kernel_list(&((struct device *)device)->choice, op, index, info);           \
    }

/* Defines launch_ops of slots.h: the functions that compute ops. Each gives its op to
 *
 *   static int32_t submit(struct queue *queue, uint32_t op, const void *args); */
#define KERNEL_OPS                                                                         \
    HW_OPS(KERNEL_FUNCTION_)                                                               \
    const struct hw_plugin_ops launch_ops = { .size = sizeof launch_ops,                   \
                                              HW_OPS(KERNEL_SLOT_) };
#define KERNEL_FUNCTION_(NAME, name)                                                       \
    static int32_t launch_##name(void *device, void *queue, const struct hw_##name *op)    \
    {                                                                                      \
        (void)device;                                                                      \
        return submit(queue, HW_OP_##NAME, op);                                            \
    }
#define KERNEL_SLOT_(NAME, name) .name = launch_##name,

/* The operands of an op, as tensors of `args`: "matmul: a f32 [4,8], b q8_0 [16,8]". */
void kernel_describe(uint32_t op, const void *args, char *buffer, size_t size);

#endif
