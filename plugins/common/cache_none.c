/* SPDX-License-Identifier: MIT */
/* cache_none.c - replaces cache.c on Windows, where nothing is cached: cache.c checks owners and
 * permissions as POSIX has them. */
#include "cache.h"

#include <stdio.h>

void *cache_read(const char *path, const uint8_t key[SHA256_BYTES], size_t *bytes)
{
    (void)path, (void)key, (void)bytes;
    return NULL;
}

bool cache_write(const char *directory, const uint8_t key[SHA256_BYTES], const void *data,
                 size_t bytes, char *why, size_t why_size)
{
    (void)directory, (void)key, (void)data, (void)bytes;
    snprintf(why, why_size, "compiled programs are not kept on Windows");
    return false;
}

bool cache_is_shared(const char *directory)
{
    (void)directory;
    return false;
}
