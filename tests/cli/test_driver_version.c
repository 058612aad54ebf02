/* SPDX-License-Identifier: MIT */
/* test_driver_version.c - the driver versions that `hw doctor` reports, on invented systems below a
 * directory. */
#define _GNU_SOURCE
#include "driver_version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/hw-driver-XXXXXX";

static void shell(const char *format, const char *word)
{
    char command[512], line[700];
    snprintf(command, sizeof command, format, word);
    snprintf(line, sizeof line, "cd %s && %s", root, command);
    assert_int_equal(system(line), 0);
}

/* Installs a kernel module of this version; "": none is loaded. */
static void give_kernel(const char *version)
{
    shell(
        "rm -rf sys && mkdir -p sys/module/nvidia && echo '%s' >sys/module/nvidia/version",
        version);
}

/* Installs a library of this name behind the link that programs open. */
static void give_library(const char *name)
{
    shell(
        "rm -rf usr && mkdir -p usr/lib/x86_64-linux-gnu && cd usr/lib/x86_64-linux-gnu && "
        "touch %s",
        name);
    shell("cd usr/lib/x86_64-linux-gnu && ln -s %s libcuda.so.1", name);
}

static void parts_of_one_version_are_whole(void **state)
{
    struct driver_version version;
    (void)state;
    give_kernel("580.159.04");
    give_library("libcuda.so.580.159.04");
    assert_int_equal(driver_version_nvidia(root, &version), DRIVER_WHOLE);
    assert_string_equal(version.kernel, "580.159.04");
    assert_non_null(
        strstr(version.path, "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04"));
}

static void an_update_without_a_restart_is_found(void **state)
{
    struct driver_version version;
    (void)state;
    give_kernel("580.126.09");
    give_library("libcuda.so.580.159.04");
    assert_int_equal(driver_version_nvidia(root, &version), DRIVER_MIXED);
    assert_string_equal(version.kernel, "580.126.09");
    assert_string_equal(version.user, "580.159.04");
}

static void what_tells_no_version_is_not_judged(void **state)
{
    static const char *const names[] = { "libcuda.so.7", "libcuda.so.580.x",
                                         "stub.so.580.159" };
    char endless[200];
    struct driver_version version;
    (void)state;
    give_kernel("580.159.04");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        give_library(names[i]);
        assert_int_equal(driver_version_nvidia(root, &version), DRIVER_UNKNOWN);
    }
    shell("rm -rf %s", "usr");
    assert_int_equal(driver_version_nvidia(root, &version), DRIVER_UNKNOWN);
    give_library("libcuda.so.580.159.04");
    give_kernel("");
    assert_int_equal(driver_version_nvidia(root, &version), DRIVER_UNKNOWN);
    memset(endless, '5', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    give_kernel(endless);
    assert_int_equal(driver_version_nvidia(root, &version), DRIVER_UNKNOWN);
}

static int make_root(void **state)
{
    (void)state;
    return !mkdtemp(root);
}

static int remove_root(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_one_version_are_whole),
        cmocka_unit_test(an_update_without_a_restart_is_found),
        cmocka_unit_test(what_tells_no_version_is_not_judged),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
