/* SPDX-License-Identifier: MIT */
/* shapes.h - calls by the name of an op, a shape and types, as people write them. */
#ifndef HW_TOOL_SHAPES_H
#define HW_TOOL_SHAPES_H

#include <stdbool.h>
#include <stddef.h>

enum { SHAPE_CASE = 320 };

/* What --shape and --dtype take for an op: "MxNxK" and "a,b,c". NULL if there is no such op. */
const char *shape_form(const char *op);
const char *shape_types(const char *op);

/* Makes a case of verify.h, "matmul(m=512,...)", of a shape and types; NULL: the default. Returns
 * false, with a complaint that says what is accepted. */
bool shape_case(const char *op, const char *shape, const char *types,
                char text[SHAPE_CASE]);

#endif
