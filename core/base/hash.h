/* SPDX-License-Identifier: MIT */
/* hash.h - a hash that finds damage, not malice. */
#ifndef HW_BASE_HASH_H
#define HW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a (Fowler, Noll, Vo), 64 bits: two texts that differ in one byte never have the same
 * hash. Begin with HASH_START; to continue, give the hash of the preceding bytes. */
#define HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_add(uint64_t hash, const void *data, size_t bytes);

#endif
