/* SPDX-License-Identifier: MIT */
/* sha256.h - SHA-256 as in FIPS 180-4: for the names and checksums of the entries in the program
 * cache, and outside plugins for plugins.lock. It is our own, because plugins depend only on the C
 * library and the vendors' libraries. */
#ifndef COMMON_SHA256_H
#define COMMON_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

struct sha256 {
    uint32_t state[8];
    uint64_t bytes; /* number hashed so far */
    uint8_t block[64];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t bytes);
void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES]);

#endif
