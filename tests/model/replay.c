/* SPDX-License-Identifier: MIT */
/* replay.c - gives every file of a directory to LLVMFuzzerTestOneInput(): a corpus as a
 * test. */
#define _POSIX_C_SOURCE 200809L
#include "blob.h"

#include <dirent.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int main(int argc, char **argv)
{
    DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
    int count = 0;
    if (!directory) {
        fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
        return 2;
    }
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[4096];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        uint8_t *bytes = entry->d_name[0] == '.' ? NULL : slurp(path, &size);
        if (!bytes)
            continue;
        fprintf(stderr, "%s\n", path); /* the last one printed is the one that failed */
        LLVMFuzzerTestOneInput(bytes, size);
        free(bytes);
        count++;
    }
    closedir(directory);
    printf("%d files\n", count);
    return count > 0 ? 0 : 1;
}
