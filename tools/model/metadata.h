/* SPDX-License-Identifier: MIT */
/* metadata.h - the metadata of a model file as JSON. */
#ifndef HW_TOOL_METADATA_H
#define HW_TOOL_METADATA_H

#include "model/gguf/gguf.h"

#include <jansson.h>

/* {key: {"type": "u32", "value": 7}}, sorted by key. An array is {"type": "array", "of":
 * "i32", "count": 1024, "value": [...]}, with at most `most` of its elements. Numbers
 * that JSON does not have, NaN and infinities, are strings, and so are integers above
 * 2^63 - 1. */
json_t *metadata_json(const struct gguf *file, size_t most);

#endif
