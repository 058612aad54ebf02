/* SPDX-License-Identifier: MIT */
/* digest.c - the digest of a file. */
#define _POSIX_C_SOURCE 200809L
#include "probe/digest.h"

#include "common/sha256.h"

#include <errno.h>
#include <unistd.h>

int digest_file(int fd, uint64_t limit, char text[DIGEST_TEXT + 1])
{
    uint8_t bytes[4096], digest[SHA256_BYTES];
    struct sha256 hash;

    sha256_begin(&hash);
    for (ssize_t count; (count = pread(fd, bytes, sizeof bytes, (off_t)hash.bytes)) != 0;) {
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno;
        sha256_add(&hash, bytes, (size_t)count);
        if (hash.bytes > limit)
            return EFBIG;
    }
    sha256_end(&hash, digest);
    for (int i = 0; i < DIGEST_TEXT; i++)
        text[i] = "0123456789abcdef"[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
    text[DIGEST_TEXT] = '\0';
    return 0;
}
