/* SPDX-License-Identifier: MIT */
/* tune_plan.c - the ops, types and sizes that `hw tune` measures. */
#include "tune.h"

#include <stdio.h>
#include <string.h>

/* "#" in a shape is the size. */
static const struct kind {
    const char *op; /* "" stands for all ops not named above */
    const char *form, *shape, *blocks;
    int sizes[TUNE_SIZES], quick[TUNE_SIZES];
} kinds[] = {
    { "matmul",
      "many",
      "#x#x#",
      "f32,q8_0",
      { 32, 64, 128, 256, 512, 1024 },
      { 32, 128, 512 } },
    { "matmul", "one", "1x#x#", "f32,q8_0", { 64, 256, 1024, 4096 }, { 64, 512, 2048 } },
    { "matmul_id", "many", "#x2x8x256x256", "f32,q8_0", { 4, 16, 64, 256 }, { 4, 128 } },
    { "matmul_id", "one", "1x2x8x#x#", "f32,q8_0", { 64, 256, 1024 }, { 64, 512 } },
    { "attention", "many", "#x#x8x64", NULL, { 16, 64, 256, 1024 }, { 16, 256 } },
    { "attention", "one", "1x#x8x64", NULL, { 16, 256, 4096 }, { 16, 1024 } },
    { "conv2d", "many", "1x16x#x#x16x3x3", NULL, { 8, 32, 128 }, { 8, 64 } },
    { "get_rows", "many", "#x1024x#", "q8_0,f32", { 1, 16, 256, 2048 }, { 1, 256 } },
    { "set_rows", "many", "#x1024x#", "q8_0,f32", { 1, 16, 256, 2048 }, { 1, 256 } },
    { "rope", "many", "#x8x64", NULL, { 1, 8, 64, 512, 4096 }, { 1, 64, 1024 } },
    { "", "many", "#x1024", NULL, { 1, 8, 64, 512, 4096 }, { 1, 64, 1024 } },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *const classes[] = { "f32", "f16", "bf16", "blocks" };
enum { CLASSES = sizeof classes / sizeof classes[0], BLOCKS = CLASSES - 1 };

void tune_name(const struct tune_row *row, char name[TUNE_NAME])
{
    snprintf(name, TUNE_NAME, "%s/%s/%s", row->op, row->class, row->form);
}

static bool is_kind_of(const struct kind *kind, const char *op)
{
    bool named = false;
    for (int i = 0; i < KINDS; i++)
        named |= !strcmp(kinds[i].op, op);
    return *kind->op ? !strcmp(kind->op, op) : !named;
}

static void put_shape(const char *pattern, int size, char shape[TUNE_SHAPE])
{
    size_t used = 0;
    shape[0] = '\0';
    for (; *pattern && used < TUNE_SHAPE - 12; pattern++)
        used += (size_t)(*pattern == '#'
                             ? snprintf(shape + used, TUNE_SHAPE - used, "%d", size)
                             : snprintf(shape + used, TUNE_SHAPE - used, "%c", *pattern));
}

static void make_row(const struct kind *kind, const char *op, int class, bool quick,
                     struct tune_row *row)
{
    const int *sizes = quick ? kind->quick : kind->sizes;
    *row = (struct tune_row){ .op = op,
                              .class = classes[class],
                              .form = kind->form,
                              .types = class == BLOCKS ? kind->blocks : classes[class] };
    while (row->count < TUNE_SIZES && sizes[row->count]) {
        put_shape(kind->shape, sizes[row->count], row->shape[row->count]);
        row->count++;
    }
}

/* A quick run has no bf16, and block types only in products. */
static bool is_wanted(const struct kind *kind, int class, bool quick)
{
    if (class == BLOCKS)
        return kind->blocks && (!quick || !strncmp(kind->op, "matmul", 6));
    return !quick || class < 2;
}

bool tune_plan(int index, bool quick, struct tune_row *row)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (int class = 0; class < CLASSES; class ++)
            for (int kind = 0; kind < KINDS; kind++)
                if (is_kind_of(&kinds[kind], hw_op_name(op)) &&
                    is_wanted(&kinds[kind], class, quick) && index-- == 0) {
                    make_row(&kinds[kind], hw_op_name(op), class, quick, row);
                    return true;
                }
    return false;
}
