/* SPDX-License-Identifier: MIT */
/* shapes.h - turns the words of --op, --shape and --dtype into a case of verify.h. */
#ifndef HW_TOOL_SHAPES_H
#define HW_TOOL_SHAPES_H

#include <stdbool.h>
#include <stddef.h>

enum { SHAPE_CASE = 320 };

/* Makes a case, "matmul(m=512,...)", from a shape and types (NULL: the default). Returns false,
 * with a complaint that shows the accepted form. */
bool shape_case(const char *op, const char *shape, const char *types,
                char text[SHAPE_CASE]);

#endif
