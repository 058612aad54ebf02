/* SPDX-License-Identifier: MIT */
/* manifest.h - what a plugin says about itself in its note. */
#ifndef HW_OBJECT_MANIFEST_H
#define HW_OBJECT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_SIZE      32 /* of a backend's name or title, with its terminator */
#define MATCHES        16
#define NEEDS          16
#define MANIFEST_BYTES 4096

struct manifest {
    char text[MANIFEST_BYTES]; /* what the strings below point into */
    char name[NAME_SIZE];
    uint32_t abi_min, abi_max;
    int32_t rank;
    const char *title; /* "" where not given, as the next ones */
    const char *vendor;
    const char *remedy;
    const char *build;
    const char *match[MATCHES];
    uint32_t match_count;
    const char *needs[NEEDS];
    uint32_t need_count;
};

/* Reads `bytes` of manifest text. False: `why` (of `size` bytes) says what is wrong. */
bool manifest_parse(struct manifest *manifest, const char *text, size_t bytes, char *why,
                    size_t size);
/* Whether `length` bytes are a name that a backend may have. */
bool name_valid(const char *name, size_t length);

#endif
