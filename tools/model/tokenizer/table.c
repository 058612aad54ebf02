/* SPDX-License-Identifier: MIT */
/* table.c - open addressing with linear probing, at most two thirds full. */
#include "table.h"

#include <stdlib.h>

/* With evenly spread hashes, runs of this length do not occur. */
enum { LONGEST_PROBE = 512 };

/* The other half of the hash tells most indices apart before they are looked at. */
struct slot {
    uint32_t taken; /* by this index + 1; 0: empty */
    uint32_t high;
};

bool table_create(struct table *table, size_t count)
{
    size_t size = 16;
    while (size / 3 * 2 < count)
        size *= 2;
    table->slots = calloc(size, sizeof *table->slots);
    table->mask = size - 1;
    return table->slots;
}

void table_free(struct table *table)
{
    free(table->slots);
    *table = (struct table){ 0 };
}

bool table_add(struct table *table, uint64_t hash, uint32_t index)
{
    for (size_t i = 0; i < LONGEST_PROBE; i++) {
        struct slot *slot = &table->slots[(hash + i) & table->mask];
        if (slot->taken == 0) {
            *slot = (struct slot){ index + 1, (uint32_t)(hash >> 32) };
            return true;
        }
    }
    return false;
}

uint32_t table_find(const struct table *table, uint64_t hash,
                    bool (*same)(const void *user, uint32_t index), const void *user)
{
    for (size_t i = 0; i < LONGEST_PROBE; i++) {
        const struct slot slot = table->slots[(hash + i) & table->mask];
        if (slot.taken == 0)
            break;
        if (slot.high == (uint32_t)(hash >> 32) && same(user, slot.taken - 1))
            return slot.taken - 1;
    }
    return TABLE_NONE;
}

/* FNV-1a, then the finaliser of MurmurHash3 (Appleby), so that the low bits depend on all
 * others. */
uint64_t table_hash(const char *bytes, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}
