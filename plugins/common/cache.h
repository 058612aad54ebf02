/* SPDX-License-Identifier: MIT */
/* cache.h - a directory of compiled programs, shared by all processes of one user.
 *
 * An entry is one file, named by its key. It is written under a temporary name and then renamed, so
 * readers see a whole entry or none. If two processes write the same entry, the later one wins. An
 * entry is used only if it is a regular file that belongs to this user, nobody else may write to it
 * or to the directory, and its length and checksum are right. Anything else counts as missing, and
 * the next write replaces it. The write fails if a directory that is not empty has that name.
 *
 * When a write takes the directory beyond CACHE_BYTES_MAX, the oldest entries are removed. Only
 * files with the name of an entry are ever removed. */
#ifndef COMMON_CACHE_H
#define COMMON_CACHE_H

#include "sha256.h"

#include <stdbool.h>

enum {
    CACHE_ENTRY_MAX = 64 << 20, /* bytes of one program */
    CACHE_BYTES_MAX = 512 << 20 /* of all files together */
};

/* The program with this key in the directory `path`, or NULL; the caller frees it. `*bytes`
 * is its size, never 0. */
void *cache_read(const char *path, const uint8_t key[SHA256_BYTES], size_t *bytes);

/* Stores a program. Creates the directory and its parents if they are missing, for this user alone.
 * On failure returns false, and `why` gets the reason. */
bool cache_write(const char *directory, const uint8_t key[SHA256_BYTES], const void *data,
                 size_t bytes, char *why, size_t why_size);

/* Whether this user owns the directory but others may write to it. Such a directory is not used;
 * `chmod go-w` repairs it. */
bool cache_is_shared(const char *directory);

#endif
