/* SPDX-License-Identifier: MIT */
/* zoo.c - directories of random plugins, faulty and damaged ones, beside a good one. */
#define _GNU_SOURCE
#include "soak.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Those that change the file of the fixture itself, or of other tests, are not for sharing. */
static bool is_fixture(const char *name)
{
    static const char *const no[] = { "hw_good.so", "hw_replaces_itself.so",
                                      "hw_tally.so" };
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (!strcmp(name, no[i]))
            return false;
    return length > 6 && !strncmp(name, "hw_", 3) && !strcmp(name + length - 3, ".so");
}

static void put_damaged(const char *directory, int number)
{
    size_t size;
    unsigned char *bytes = read_file(FIXTURES "/hw_plain.so", &size);
    if (random_below(3) == 0)
        size = random_below(size);
    for (uint64_t i = random_below(8); size && i > 0; i--)
        bytes[random_below(size < 8192 ? size : 8192)] = (unsigned char)random_below(256);
    write_file(below("%s/hw_damaged%d.so", directory, number), bytes, size, 0755);
    free(bytes);
}

static long fill_directory(const char *directory, struct dirent *const *fixtures, int count)
{
    long files = 0;
    put_good(directory);
    for (uint64_t k = 1 + random_below(6); k > 0; k--) {
        const char *name = fixtures[random_below((uint64_t)count)]->d_name;
        char *from = NULL;
        if (is_fixture(name) && asprintf(&from, FIXTURES "/%s", name) > 0)
            files += symlink(from, below("%s/%s", directory, name)) == 0;
        free(from);
    }
    for (int k = (int)random_below(3); k > 0; k--, files++)
        put_damaged(directory, k);
    return files;
}

void soak_zoo(long count)
{
    struct dirent **fixtures;
    const int all = scandir(FIXTURES, &fixtures, NULL, alphasort);
    long files = 0, alone = 0;
    if (all < 3)
        die(FIXTURES " has no fixtures");
    setenv("HW_PROBE", "child", 1);
    setenv("HW_PROBE_TIMEOUT", "2", 1);
    const struct host before = host_now();
    const double start = seconds();
    for (long i = 0; i < count; i++) {
        struct hw_context *context;
        char directory[32];
        snprintf(directory, sizeof directory, "zoo-%ld", i);
        files += fill_directory(directory, fixtures, all);
        if (open_on(below("%s", directory), &context))
            die("directory %ld: %s", i, hw_message());
        if (!has_good(context))
            die("directory %ld: the good plugin was not used: %s", i, hw_message());
        alone += hw_device_count(context) == 1;
        hw_close(context);
        remove_tree(below("%s", directory));
    }
    const struct host after = host_now();
    check_host(&before, &after);
    printf(
        "zoo: %ld directories with %ld files beside the good one in %.1f s; in %ld the good one "
        "was the only device\n",
        count, files, seconds() - start, alone);
    for (int i = 0; i < all; i++)
        free(fixtures[i]);
    free(fixtures);
}
