/* SPDX-License-Identifier: MIT */
/* test_machine.c - what the CPU plugin reports about the machine: this one, compared
 * with what shell commands say, and invented ones, made as trees of files. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "cpu.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/hw-machine-XXXXXX";

/* Writes a file below the root, and the directories that lead to it. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    strcpy(root + sizeof root - 7, "XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static uint64_t total_of(const char *directory, uint64_t *left)
{
    uint64_t total;
    machine_memory(directory, &total, left);
    return total;
}

static void real_machine(void **state)
{
    struct machine m;
    uint64_t left = 0;
    cpu_set_t set;
    (void)state;
    machine_read(&m, "");
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_int_equal(m.processors, CPU_COUNT(&set));
    const uint64_t total = total_of("", &left);
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    assert_true(total > 0 && total <= (uint64_t)pages * (uint64_t)page);
    assert_true(left > 0 && left <= total);
#if defined(__x86_64__)
    assert_non_null(strstr(m.arch, "x86-64"));
    assert_true(m.vendor[0]);
    /* The compiler's own reading of cpuid. */
    assert_int_equal((m.features & HAS(AVX2)) != 0, __builtin_cpu_supports("avx2") != 0);
    assert_int_equal((m.features & HAS(AVX512F)) != 0,
                     __builtin_cpu_supports("avx512f") != 0);
    assert_int_equal((m.features & HAS(AVX512_VNNI)) != 0,
                     __builtin_cpu_supports("avx512vnni") != 0);
    assert_int_equal((m.features & HAS(FMA)) != 0, __builtin_cpu_supports("fma") != 0);
    assert_true(!(m.features & HAS(TIER_V4)) || (m.features & HAS(TIER_V3)));
    assert_true(!(m.features & HAS(TIER_V3)) || (m.features & HAS(AVX2)));
#elif defined(__aarch64__)
    assert_string_equal(m.arch, "aarch64");
#endif
}

static void nothing_readable(void **state)
{
    struct machine m;
    uint64_t left = 1;
    (void)state;
    machine_read(&m, root);
    assert_int_equal(m.quota, 0);
    assert_int_equal(total_of(root, &left), 0);
    assert_int_equal(left, 0);
}

static void memory_without_limits(void **state)
{
    uint64_t left;
    (void)state;
    put("/proc/meminfo",
        "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    600 kB\n");
    assert_int_equal(total_of(root, &left), 1000 * 1024);
    assert_int_equal(left, 600 * 1024);
}

/* The limit of a parent group counts; files' caches are not in use. */
static void memory_of_group_v2(void **state)
{
    uint64_t left;
    (void)state;
    put("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\n");
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.max", "409600\n");
    put("/sys/fs/cgroup/a/memory.current", "204800\n");
    put("/sys/fs/cgroup/a/memory.stat", "anon 1\nactive_file 9\ninactive_file 102400\n");
    assert_int_equal(total_of(root, &left), 409600);
    assert_int_equal(left, 409600 - 102400);
}

static void memory_of_group_v1(void **state)
{
    uint64_t left;
    (void)state;
    put("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\n");
    put("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "400000\n");
    assert_int_equal(total_of(root, &left), 300000);
    assert_int_equal(left, 0);
}

static void quota_v2(void **state)
{
    struct machine m;
    (void)state;
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    machine_read(&m, root);
    assert_int_equal(m.quota, 3);
}

static void quota_v1(void **state)
{
    struct machine m;
    (void)state;
    put("/proc/self/cgroup", "3:cpuacct,cpu:/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    machine_read(&m, root);
    assert_int_equal(m.quota, 1);
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    machine_read(&m, root);
    assert_int_equal(m.quota, 0);
}

/* Says of each processor that the threads of its core are these. */
static void put_threads(const char *list)
{
    for (int i = 0; i < CPU_SETSIZE; i++) {
        char path[128];
        snprintf(path, sizeof path,
                 "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        put(path, list);
    }
}

static void threads_of_one_core(void **state)
{
    struct machine m;
    (void)state;
    machine_read(&m, root);
    assert_int_equal(machine_cores(root), m.processors); /* not told */
    put_threads("0-1023\n");
    put("/sys/devices/system/cpu/smt/active", "0\n");
    assert_int_equal(machine_cores(root), m.processors);
    put("/sys/devices/system/cpu/smt/active", "1\n");
    assert_int_equal(machine_cores(root), 1);
    put_threads("99999,5\n");
    assert_int_equal(machine_cores(root), m.processors);
    put_threads("none\n");
    assert_int_equal(machine_cores(root), m.processors);
}

/* Files that say something else than they should. */
static void nonsense(void **state)
{
    struct machine m;
    uint64_t left;
    (void)state;
    put("/proc/meminfo", "MemTotal: \nMemAvailable: 99999999999999999999 kB\n");
    put("/proc/self/cgroup", ":::::\n0\n\n0::no/slash/first\n7:cpu\n");
    put("/sys/fs/cgroup/cpu.max", "100000 0\n");
    machine_read(&m, root);
    assert_int_equal(m.quota, 0);
    assert_int_equal(total_of(root, &left), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(real_machine),       TEST(nothing_readable),    TEST(memory_without_limits),
        TEST(memory_of_group_v2), TEST(memory_of_group_v1),  TEST(quota_v2),
        TEST(quota_v1),           TEST(threads_of_one_core), TEST(nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
