/* SPDX-License-Identifier: MIT */
/* fuzz_pe.c - the reader of PE on arbitrary bytes. */
#include "object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_as(data, size, "MZ", 2);
}
