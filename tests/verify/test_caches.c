/* SPDX-License-Identifier: MIT */
/* test_caches.c - cache sizes as sysfs describes them, for invented processors. */
#define _XOPEN_SOURCE 700 /* mkdtemp(), nftw() */
#include "caches.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[64];

static int begin(void **state)
{
    (void)state;
    strcpy(root, "caches-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int forget(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static int end(void **state)
{
    (void)state;
    return nftw(root, forget, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *folder, const char *name, const char *word)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", word);
    fclose(file);
}

struct cache {
    int index;
    const char *level, *type, *size, *cores;
};

/* Adds a core with its caches; the list ends with a NULL level. */
static void add_core(int core, const struct cache *caches)
{
    char folder[128];
    snprintf(folder, sizeof folder, "%s/cpu%d", root, core);
    assert_int_equal(mkdir(folder, 0755), 0);
    strcat(folder, "/cache");
    assert_int_equal(mkdir(folder, 0755), 0);
    for (; caches->level; caches++) {
        snprintf(folder, sizeof folder, "%s/cpu%d/cache/index%d", root, core,
                 caches->index);
        assert_int_equal(mkdir(folder, 0755), 0);
        put(folder, "level", caches->level);
        put(folder, "type", caches->type);
        put(folder, "size", caches->size);
        if (caches->cores)
            put(folder, "shared_cpu_list", caches->cores);
    }
}

/* Four cores in pairs that share a third level; a fifth core is offline. */
static void test_parts_of_the_last_level(void **state)
{
    static const char *const alone[] = { "0", "1", "2", "3" };
    (void)state;
    for (int core = 0; core < 4; core++)
        add_core(core, (struct cache[]){
                           { 0, "1", "Data", "48K", alone[core] },
                           { 1, "1", "Instruction", "32K", alone[core] },
                           { 2, "2", "Unified", "2048K", alone[core] },
                           { 3, "3", "Unified", "307200K", core < 2 ? "0-1" : "2-3" },
                           { 0 } });
    add_core(4, (struct cache[]){ { 0 } });
    assert_true(cache_bytes(root) == 2 * 300 * 0x1p20);

    struct data_cache found;
    assert_true(cache_of_level(root, 1, &found) && found.bytes == 48 * 0x1p10);
    assert_int_equal(found.cores, 1);
    assert_true(cache_of_level(root, 3, &found) && found.bytes == 300 * 0x1p20);
    assert_int_equal(found.cores, 2);
    assert_false(cache_of_level(root, 4, &found));
}

/* Only two levels, private to each core. An instruction cache does not count as a data cache. */
static void test_no_third_level(void **state)
{
    (void)state;
    for (int core = 0; core < 2; core++)
        add_core(core, (struct cache[]){ { 0, "1", "Data", "64K", NULL },
                                         { 1, "2", "Unified", "1M", NULL },
                                         { 2, "3", "Instruction", "9M", NULL },
                                         { 0 } });
    struct data_cache found;
    assert_true(cache_bytes(root) == 2 * 0x1p20);
    assert_true(cache_of_level(root, 2, &found) && found.cores == 1);
    assert_false(cache_of_level(root, 3, &found));
}

static void test_nothing_told(void **state)
{
    (void)state;
    assert_true(cache_bytes(root) == 0);
    add_core(0, (struct cache[]){ { 0 } });
    assert_true(cache_bytes(root) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parts_of_the_last_level, begin, end),
        cmocka_unit_test_setup_teardown(test_no_third_level, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_told, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
