/* SPDX-License-Identifier: MIT */
/* shapes.c - see shapes.h. */
#include "shapes.h"

#include "options.h"
#include "output.h"

#include <hw/hw.h>
#include <hw/report.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = 8, MOST_TYPES = 3 };

/* The parameters of an op's cases that the numbers of a shape set, in order; "+" joins parameters
 * that get the same number. Without keys, the whole text is the value of "shape". */
static const struct form {
    const char *op, *form, *keys, *types, *more, *usual;
} forms[] = {
    { "matmul", "MxNxK", "m n k", "a b c", "tb=1", "512x512x512" },
    { "matmul_id", "TOKENSxUSEDxEXPERTSxNxK", "tokens used experts n k", "a b c", "",
      "64x2x8x512x512" },
    { "attention", "QUERIESxKEYSxHEADSxD", "tq tmax hq+hkv d+dv", "type kv", "",
      "64x512x8x64" },
    { "conv2d", "BATCHxCINxHxWxCOUTxKHxKW", "batch cin h w cout kh kw", "x weight y", "",
      "1x16x64x64x16x3x3" },
    { "get_rows", "ROWSxCOLSxCOUNT", "rows cols count", "table y", "", "1024x1024x64" },
    { "set_rows", "ROWSxCOLSxCOUNT", "rows cols count", "table x", "", "1024x1024x64" },
    { "rope", "TOKENSxHEADSxD", "", "type", "", "64x8x64" },
    { "copy", "EXTENTS, as in 64x1024", "", "src dst", "", "64x1024" },
    { "dot", "EXTENTS, as in 64x1024", "", "a b y", "", "64x1024" },
    { "", "EXTENTS, as in 64x1024", "", "type", "", "64x1024" },
};

static bool is_op(const char *name)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (!strcmp(name, hw_op_name(op)))
            return true;
    return false;
}

/* The last form is for all other ops. */
static const struct form *form_of(const char *op)
{
    const struct form *form = forms;
    while (*form->op && strcmp(form->op, op) != 0)
        form++;
    return is_op(op) ? form : NULL;
}

/* ---- a case that grows ---- */

struct growing {
    char *text;
    size_t used;
    bool first;
};

static void add(struct growing *g, const char *key, size_t key_length, const char *value,
                size_t length)
{
    if (g->used < SHAPE_CASE)
        g->used += (size_t)snprintf(g->text + g->used, SHAPE_CASE - g->used, "%s%.*s%s%.*s",
                                    g->first ? "" : ",", (int)key_length, key,
                                    key_length ? "=" : "", (int)length, value);
    g->first = false;
}

/* Takes the next word before `separator`; false at the end. */
static bool next_word(const char **at, char separator, const char **word, size_t *length)
{
    if (!**at)
        return false;
    const char *end = strchr(*at, separator);
    *word = *at;
    *length = end ? (size_t)(end - *at) : strlen(*at);
    *at += *length + (end != NULL);
    return true;
}

/* Each number of the shape sets one parameter or two. */
static bool add_shape(struct growing *g, const struct form *form, const char *shape)
{
    const char *keys = form->keys, *numbers = shape, *key, *number, *one;
    size_t key_length, length, one_length;
    if (!*keys) {
        add(g, "shape", 5, shape, strlen(shape));
        return strspn(shape, "0123456789x") == strlen(shape) && *shape;
    }
    while (next_word(&keys, ' ', &key, &key_length)) {
        char both[32];
        const char *at = both;
        if (!next_word(&numbers, 'x', &number, &length) || length == 0 ||
            strspn(number, "0123456789") < length)
            return false;
        snprintf(both, sizeof both, "%.*s", (int)key_length, key);
        while (next_word(&at, '+', &one, &one_length))
            add(g, one, one_length, number, length);
    }
    return !*numbers && shape[strlen(shape) - 1] != 'x';
}

static bool is_block(const char *name, size_t length)
{
    for (int32_t dtype = 1; dtype < HW_DTYPE_END; dtype++)
        if (strlen(hw_dtype_name(dtype)) == length &&
            !strncmp(name, hw_dtype_name(dtype), length))
            return hw_dtype_block(dtype) > 1;
    return false;
}

/* Types that are not given default to the first one, or to f32 if that is a block type. */
static bool add_types(struct growing *g, const struct form *form, const char *types)
{
    const char *keys = form->types, *names = types, *key, *name = "f32", *first = NULL;
    size_t key_length, length = 3, first_length = 0;
    while (next_word(&keys, ' ', &key, &key_length)) {
        if (next_word(&names, ',', &name, &length)) {
            if (!first) {
                first = is_block(name, length) ? "f32" : name;
                first_length = is_block(name, length) ? 3 : length;
            }
        } else if (first) {
            name = first;
            length = first_length;
        }
        if (length == 0)
            return false;
        add(g, key, key_length, name, length);
    }
    return !*names;
}

bool shape_case(const char *op, const char *shape, const char *types, char text[SHAPE_CASE])
{
    const struct form *form = form_of(op);
    struct growing g = { .text = text, .first = true };
    if (!form) {
        const char *ops[HW_OP_COUNT + 1] = { NULL };
        for (uint32_t i = 0; i < HW_OP_COUNT; i++)
            ops[i] = hw_op_name(i);
        return is_known("op", op, ops);
    }
    if (!shape)
        shape = form->usual;
    g.used = (size_t)snprintf(text, SHAPE_CASE, "%s(", op);
    if (!add_shape(&g, form, shape)) {
        complain("%s: not a shape of %s, which takes %s", shape, op, form->form);
        return false;
    }
    if (!add_types(&g, form, types ? types : "f32")) {
        complain("%s: not types for %s, which takes those of: %s", types, op, form->types);
        return false;
    }
    if (*form->more)
        add(&g, "", 0, form->more, strlen(form->more));
    if (g.used + 2 > SHAPE_CASE) {
        complain("%s: the shape or the types are too long", op);
        return false;
    }
    strcat(text, ")");
    return true;
}
