/* SPDX-License-Identifier: MIT */
/* table.h - a hash table of indices into an array of the caller, who hashes and compares
 * what they stand for. */
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

/* Adds an index that the table does not have. Returns false if so many have nearly the same
 * hash that looking them up would be slow: only a file that is made for it has them. */
bool table_add(struct table *table, uint64_t hash, uint32_t index);

/* The index with this hash for which `same` is true, or TABLE_NONE. */
uint32_t table_find(const struct table *table, uint64_t hash,
                    bool (*same)(const void *user, uint32_t index), const void *user);

uint64_t table_hash(const char *bytes, size_t length);

#endif
