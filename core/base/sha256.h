/* SPDX-License-Identifier: MIT */
/* sha256.h - SHA-256 as in FIPS 180-4: for plugins.lock, and in plugins for the names and
 * checksums of the entries in the program cache. It is our own, because library and plugins depend
 * only on the C library and the vendors' libraries. */
#ifndef HW_BASE_SHA256_H
#define HW_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_TEXT = 2 * SHA256_BYTES };

struct sha256 {
    uint32_t state[8];
    uint64_t bytes; /* number hashed so far */
    uint8_t block[64];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t bytes);
void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES]);

/* Writes the digest of the whole file as lower-case hexadecimal digits and a NUL. Returns 0 or an
 * error number; EFBIG if the file has more than `limit` bytes. */
int sha256_file(int fd, uint64_t limit, char text[SHA256_TEXT + 1]);

#endif
