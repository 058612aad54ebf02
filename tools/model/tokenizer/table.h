/* SPDX-License-Identifier: MIT */
/* table.h - a hash table of indices into an array of the caller, who hashes and compares the
 * elements. */
#ifndef HW_MODEL_TABLE_H
#define HW_MODEL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_NONE UINT32_MAX

struct table {
    struct slot *slots;
    size_t mask;
};

/* Allocates room for `count` indices, less than TABLE_NONE. Returns false if out of memory.
 */
bool table_create(struct table *table, size_t count);
void table_free(struct table *table);

/* Adds a new index. Returns false if so many have nearly the same hash that look-ups would be
 * slow, which only a malicious file achieves. */
bool table_add(struct table *table, uint64_t hash, uint32_t index);

/* The index with this hash for which `same` is true, or TABLE_NONE. */
uint32_t table_find(const struct table *table, uint64_t hash,
                    bool (*same)(const void *user, uint32_t index), const void *user);

uint64_t table_hash(const char *bytes, size_t length);

#endif
