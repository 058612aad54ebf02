/* SPDX-License-Identifier: MIT */
/* digest.h - the SHA-256 of a file, for plugins.lock. */
#ifndef HW_PROBE_DIGEST_H
#define HW_PROBE_DIGEST_H

#include <stdint.h>

enum { DIGEST_TEXT = 64 };

/* Writes the digest of the whole file as lower-case hexadecimal digits and a NUL. Returns 0 or an
 * error number; EFBIG if the file has more than `limit` bytes. */
int digest_file(int fd, uint64_t limit, char text[DIGEST_TEXT + 1]);

#endif
