/* SPDX-License-Identifier: MIT */
/* sha256.h - SHA-256 as in FIPS 180-4: for plugins.lock, and in plugins for the names and
 * checksums of the entries in the program cache. Our own because library and plugins depend
 * on nothing but the C library and the vendors'. */
#ifndef HW_BASE_SHA256_H
#define HW_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_TEXT = 2 * SHA256_BYTES };

struct sha256 {
    uint32_t state[8];
    uint64_t bytes; /* hashed so far */
    uint8_t block[64];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t bytes);
void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES]);

/* Writes the digest of the file's bytes from its beginning as digits of 0-9 and a-f, and a
 * NUL. Returns 0, or an errno; EFBIG if the file has more than `limit` bytes. */
int sha256_file(int fd, uint64_t limit, char text[SHA256_TEXT + 1]);

#endif
