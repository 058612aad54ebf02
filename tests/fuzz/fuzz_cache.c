/* SPDX-License-Identifier: MIT */
/* fuzz_cache.c - entries of the verdict cache with arbitrary bytes: unchanged, and with a correct
 * checksum, so that the rest is read as well. */
#include "base/hash.h"
#include "cache/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char key[] = "file 1:2 3 bytes 4.5 6.7 /plugins/hw_good.so\nversion 1\n";
static const char start[] = "hw-verdict 1 ";

enum { HASH = 16, HEAD = sizeof start - 1 + HASH };

/* A copy of exactly this size, so that a sanitizer detects reads past the end. */
static void parse(char *data, size_t size)
{
    struct cached found;
    if (!cache_parse(data, size, key, &found))
        return;
    const char *bytes = (const char *)found.bytes;
    if (bytes < data + sizeof key - 1 || bytes + found.size != data + size ||
        memcmp(bytes - (sizeof key - 1), key, sizeof key - 1) != 0 ||
        !memchr(found.outcome, '\0', sizeof found.outcome) || !*found.outcome)
        abort();
    if (cache_counts(&found, 1000) && found.kind != CACHE_SUCCESS &&
        (found.written > 1000 || found.expires <= 1000))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1), text[HASH + 1];
    if (!copy)
        abort();
    memcpy(copy, data, size);
    parse(copy, size);
    memcpy(copy, data, size);
    if (size >= HEAD) {
        memcpy(copy, start, sizeof start - 1);
        snprintf(text, sizeof text, "%016llx",
                 (unsigned long long)hash_add(HASH_START, copy + HEAD, size - HEAD));
        memcpy(copy + sizeof start - 1, text, HASH);
        parse(copy, size);
    }
    free(copy);
    return 0;
}
