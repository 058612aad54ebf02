/* SPDX-License-Identifier: MIT */
/* fuzz_macho.c - the readers of Mach-O and of universal files on arbitrary bytes. */
#include "object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)fuzz_as(data, size, "\xcf\xfa\xed\xfe", 4);
    return fuzz_as(data, size, "\xca\xfe\xba\xbe", 4);
}
