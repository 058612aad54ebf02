/* SPDX-License-Identifier: MIT */
/* The library of needs_bundled.c. */
#include <stdint.h>

__attribute__((visibility("default"))) int32_t bundled_answer(void);

int32_t bundled_answer(void)
{
    return 42;
}
