/* SPDX-License-Identifier: MIT */
/* caches.c - see caches.h. */
#define _POSIX_C_SOURCE 200809L /* access() */

#include "caches.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CORES = 8192, MOST_INDICES = 16, PATH_BYTES = 512, WORD_BYTES = 64 };

/* Reads one attribute of a cache: its level, type, size, or the cores that share it. */
static bool read_word(const char *root, int core, int index, const char *name,
                      char word[WORD_BYTES])
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/cpu%d/cache/index%d/%s", root, core, index, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    const bool good = fgets(word, WORD_BYTES, file) != NULL;
    fclose(file);
    return good;
}

static bool has_core(const char *root, int core)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/cpu%d", root, core);
    return access(path, F_OK) == 0;
}

/* "307200K" */
static double size_of(const char *word)
{
    char *unit;
    const double number = strtod(word, &unit);
    return number * (*unit == 'G'   ? 0x1p30
                     : *unit == 'M' ? 0x1p20
                     : *unit == 'K' ? 0x1p10
                                    : 1);
}

double cache_bytes(const char *root)
{
    double bytes = 0;
    int last = 0; /* the highest level so far */

    for (int core = 0; core < MOST_CORES && has_core(root, core); core++)
        for (int index = 0; index < MOST_INDICES; index++) {
            char level[WORD_BYTES], type[WORD_BYTES], size[WORD_BYTES], cores[WORD_BYTES];
            if (!read_word(root, core, index, "level", level))
                break;
            if (!read_word(root, core, index, "type", type) ||
                !read_word(root, core, index, "size", size) ||
                !strncmp(type, "Instruction", 11) || atoi(level) < last)
                continue;
            if (read_word(root, core, index, "shared_cpu_list", cores) &&
                atoi(cores) != core)
                continue; /* already counted for the first core that shares it */
            if (atoi(level) > last)
                bytes = 0;
            last = atoi(level);
            bytes += size_of(size);
        }
    return bytes;
}

/* "0-3,8-11" */
static uint32_t count_of(const char *list)
{
    uint32_t count = 0;
    while (*list) {
        char *end;
        const long first = strtol(list, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        if (end == list || last < first || last - first >= MOST_CORES)
            break;
        count += (uint32_t)(last - first + 1);
        list = *end == ',' ? end + 1 : "";
    }
    return count ? count : 1;
}

bool cache_of_level(const char *root, int level, struct data_cache *cache)
{
    for (int index = 0; index < MOST_INDICES; index++) {
        char at[WORD_BYTES], type[WORD_BYTES], size[WORD_BYTES], cores[WORD_BYTES];
        if (!read_word(root, 0, index, "level", at))
            break;
        if (atoi(at) != level || !read_word(root, 0, index, "type", type) ||
            !read_word(root, 0, index, "size", size) || !strncmp(type, "Instruction", 11))
            continue;
        cache->bytes = size_of(size);
        cache->cores = read_word(root, 0, index, "shared_cpu_list", cores) ? count_of(cores)
                                                                           : 1;
        return cache->bytes > 0;
    }
    return false;
}
