/* SPDX-License-Identifier: MIT */
/* cache_files.h - the files below HW_CACHE_DIR: verdicts on plugins, which the library keeps, and
 * compiled programs, which plugins keep. docs/cache.md and docs/common.md describe them. */
#ifndef HW_TOOL_CACHE_FILES_H
#define HW_TOOL_CACHE_FILES_H

#include <jansson.h>
#include <stdint.h>

/* What was removed, or could not be. */
struct cleared {
    unsigned files, failures;
    uint64_t bytes;
    char why[512]; /* the first failure */
};

/* The verdicts on a plugin, or on all for NULL, in the order of their names: an array of
 * {"plugin", "file", "outcome", "written", "expires", "age", "retry", "bytes", "entry", "problem"}.
 * Those that cannot be read have a problem and no outcome. */
json_t *cache_verdicts(const char *directory, const char *plugin);

/* How many compiled programs each plugin has there: an array of {"plugin", "files", "bytes",
 * "directory"}. */
json_t *cache_programs(const char *directory, const char *plugin);

/* Removes the verdicts, or the programs, and nothing else. */
void cache_clear_verdicts(const char *directory, const char *plugin,
                          struct cleared *cleared);
void cache_clear_programs(const char *directory, const char *plugin,
                          struct cleared *cleared);

#endif
