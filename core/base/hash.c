/* SPDX-License-Identifier: MIT */
/* hash.c - a hash that finds damage, not malice. */
#include "base/hash.h"

uint64_t hash_add(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ from[i]) * UINT64_C(0x100000001b3);
    return hash;
}
