/* SPDX-License-Identifier: MIT */
/* fuzz_lock.c - a plugins.lock of arbitrary bytes. */
#include "probe/lock.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char file[] = "hw_cpu.so";
    const char *digest = NULL;
    unsigned number = 0;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    const enum lock_line found = lock_find(text, size, file, &digest, &number);
    if ((digest != NULL) < (found == LOCK_PRESENT) || (found == LOCK_DAMAGED && !number))
        abort();
    if (digest && (strspn(digest, "0123456789abcdef") != 64 ||
                   strncmp(digest + 66, file, strlen(file)) != 0))
        abort();
    free(text);
    return 0;
}
