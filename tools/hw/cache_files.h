/* SPDX-License-Identifier: MIT */
/* cache_files.h - the files below HW_CACHE_DIR: the library's verdicts on plugins, and the plugins'
 * compiled programs. docs/cache.md and docs/common.md describe them. */
#ifndef HW_TOOL_CACHE_FILES_H
#define HW_TOOL_CACHE_FILES_H

#include <jansson.h>
#include <stdint.h>

/* The result of a removal. */
struct cleared {
    unsigned files, failures;
    uint64_t bytes;
    char why[512]; /* the first failure */
};

/* The verdicts on a plugin, or on all for NULL, in the order of their names: an array of
 * {"plugin", "file", "outcome", "written", "expires", "age", "retry", "bytes", "entry", "problem"}.
 * A verdict that cannot be read has a problem and no outcome. */
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
