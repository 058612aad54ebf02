/* SPDX-License-Identifier: MIT */
/* manifest.h - the manifest of a plugin. */
#ifndef HW_OBJECT_MANIFEST_H
#define HW_OBJECT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_SIZE      32 /* of a backend's name or title, including the NUL */
#define MATCHES        16
#define NEEDS          16
#define DRIVERS        16
#define VARIABLES      16
#define MANIFEST_BYTES 4096

struct manifest {
    char text[MANIFEST_BYTES]; /* the strings below point into it */
    char name[NAME_SIZE];
    uint32_t abi_min, abi_max;
    int32_t rank;
    const char *title; /* this and the next three are "" if not given */
    const char *vendor;
    const char *remedy;
    const char *build;
    const char *match[MATCHES];
    uint32_t match_count;
    const char *needs[NEEDS];
    uint32_t need_count;
    const char *drivers[DRIVERS]; /* absolute paths */
    uint32_t driver_count;
    const char *variables[VARIABLES];
    uint32_t variable_count;
};

/* Reads a rule "pci:VENDOR:DEVICE". Each number has four hexadecimal digits, or is *, which gives
 * -1. Returns false if the rule does not have this form. */
bool manifest_pci_rule(const char *rule, int32_t *vendor, int32_t *device);

/* Parses `bytes` bytes of text. Returns false, with the fault in `why`, of `size` bytes, if they
 * are not a valid manifest. */
bool manifest_parse(struct manifest *manifest, const char *text, size_t bytes, char *why,
                    size_t size);
/* Whether `length` bytes are a valid name of a backend. */
bool name_valid(const char *name, size_t length);

#endif
