/* SPDX-License-Identifier: MIT */
/* fuzz_preflight.c - the ELF reader on arbitrary bytes: it returns, and reads no byte
 * out of bounds. */
#include "object/object.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* An empty input may be NULL, which the reader takes for a descriptor. */
    struct source source = { .data = size ? data : (const uint8_t *)"",
                             .fd = -1,
                             .size = size };
    struct object object;
    char why[256] = "";
    enum object_fault fault = elf_read(&source, &object, why, sizeof why);
    if (fault >= OBJECT_FAULT_COUNT || (fault && !why[0]) || !memchr(why, '\0', sizeof why))
        abort();
    /* What it hands out is all there. */
    size_t sum = 0;
    for (uint32_t i = 0; !fault && i < object.needed_count; i++)
        sum += strlen(object.needed[i]);
    for (uint32_t i = 0; !fault && i < object.version_count; i++)
        sum += strlen(object.versions[i]);
    if (sum > SIZE_MAX / 2)
        abort();
    object_free(&object);
    return 0;
}
