/* SPDX-License-Identifier: MIT */
/* test_cuts.c - a good plugin truncated at every length is rejected, because the
 * system's loader would crash on it; the complete file is accepted. */
#include "probe/object/object.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_BYTES (4u << 20)

static enum object_fault check(const uint8_t *bytes, size_t size)
{
    /* The copy is allocated with its exact size, so that a sanitizer detects reads past the
     * end. */
    uint8_t *exact = malloc(size ? size : 1);
    struct source source = { .data = exact, .fd = -1, .size = size };
    struct object object;
    char why[256];
    if (!exact)
        abort();
    for (size_t i = 0; i < size; i++)
        exact[i] = bytes[i];
    enum object_fault fault = object_read(&source, &object, why, sizeof why);
    object_free(&object);
    free(exact);
    return fault;
}

int main(int argc, char **argv)
{
    static uint8_t bytes[MOST_BYTES];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file)
        return 2;
    size_t size = fread(bytes, 1, sizeof bytes, file);
    int failed = check(bytes, size) != OBJECT_GOOD;
    fclose(file);
    if (failed)
        fprintf(stderr, "the whole file: fault %d\n", (int)check(bytes, size));
    for (size_t cut = 0; cut < size; cut++) {
        enum object_fault fault = check(bytes, cut);
        if (fault == (cut ? OBJECT_TRUNCATED : OBJECT_EMPTY))
            continue;
        if (failed++ < 8)
            fprintf(stderr, "cut after %zu bytes: fault %d\n", cut, (int)fault);
    }
    printf("cut after each of %zu bytes\n", size);
    return failed != 0;
}
