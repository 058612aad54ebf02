/* SPDX-License-Identifier: MIT */
/* fuzz_elf.c - the reader of ELF on arbitrary bytes. */
#include "object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_as(data, size,
                   "\x7f"
                   "ELF",
                   4);
}
