/* SPDX-License-Identifier: MIT */
/* test_machine.c - the CPU plugin's facts about the machine: this one, compared with shell
 * commands, and invented ones, made as trees of files. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "cpu.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/hw-machine-XXXXXX";

/* The processors that this process may run on, for invented machines. */
static struct {
    cpu_set_t set;
    bool is;
} affinity;

/* Replaces the C library's function. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    if (affinity.is) {
        memcpy(set, &affinity.set, size);
        return 0;
    }
    memset(set, 0, size);
    return syscall(SYS_sched_getaffinity, pid, size, set) < 0 ? -1 : 0;
}

/* Lets the process run on the processors whose bits are set. */
static void allow(uint64_t processors)
{
    CPU_ZERO(&affinity.set);
    for (unsigned i = 0; i < 64; i++)
        if (processors >> i & 1)
            CPU_SET(i, &affinity.set);
    affinity.is = true;
}

/* Writes a file below the root and creates its parent directories. */
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
    affinity.is = false;
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
    uint64_t left = 1;
    (void)state;
    assert_int_equal(machine_quota(root), 0);
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

/* A parent group's limit applies; the file cache does not count as used. */
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
    (void)state;
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    assert_int_equal(machine_quota(root), 3);
}

static void quota_v1(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "3:cpuacct,cpu:/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(machine_quota(root), 1);
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(machine_quota(root), 0);
}

/* The limits of all groups above count, too. */
static void quota_of_parents(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "1:cpu:/x/y/z\n0::/a/b/c\n");
    put("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "500000 100000\n");
    assert_int_equal(machine_quota(root), 5);
    put("/sys/fs/cgroup/cpu/x/y/z/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/x/y/z/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "400000\n");
    put("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    assert_int_equal(machine_quota(root), 4);
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "30000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "20000\n");
    assert_int_equal(machine_quota(root), 2);
}

static uint32_t threads(void)
{
    struct affinity allowed;
    machine_affinity(&allowed);
    return machine_threads(machine_cores(&allowed, root), machine_quota(root));
}

/* Declares the SMT threads of a processor's core. */
static void put_core(int processor, const char *list)
{
    char path[128];
    snprintf(path, sizeof path,
             "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", processor);
    put(path, list);
}

static void put_smt(const char *active)
{
    put("/sys/devices/system/cpu/smt/active", active);
}

static void threads_within_affinity(void **state)
{
    (void)state;
    allow(0xff);
    assert_int_equal(threads(), 8);
    allow(1 << 2 | 1 << 5 | 1 << 6);
    assert_int_equal(threads(), 3);
    allow(1 << 7);
    assert_int_equal(threads(), 1);
}

/* Four cores of two threads: 0 and 4, 1 and 5, ... */
static void threads_of_one_core_count_once(void **state)
{
    char list[16];
    (void)state;
    put_smt("1\n");
    for (int i = 0; i < 8; i++) {
        snprintf(list, sizeof list, "%d,%d\n", i % 4, i % 4 + 4);
        put_core(i, list);
    }
    allow(0xff);
    assert_int_equal(threads(), 4);
    allow(1 << 1 | 1 << 5); /* one core */
    assert_int_equal(threads(), 1);
    allow(1 << 5 | 1 << 6 | 1 << 7); /* the second thread of each of three */
    assert_int_equal(threads(), 3);
    put_smt("0\n");
    assert_int_equal(threads(), 3);
}

/* As on Intel: two fast cores with two threads each, and four slow ones. */
static void threads_of_hybrid_cores(void **state)
{
    static const char *const cores[] = { "0-1", "0-1", "2-3", "2-3", "4", "5", "6", "7" };
    (void)state;
    put_smt("1\n");
    put("/sys/devices/cpu_core/cpus", "0-3\n");
    put("/sys/devices/cpu_atom/cpus", "4-7\n");
    for (int i = 0; i < 8; i++)
        put_core(i, cores[i]);
    allow(0xff);
    assert_int_equal(threads(), 6);
    allow(0x0f);
    assert_int_equal(threads(), 2);
    allow(0xf0);
    assert_int_equal(threads(), 4);
}

/* As on Arm: each processor is a core, and no file lists SMT threads. Slow cores compute as well;
 * test_team.c tests their share. */
static void threads_of_big_and_little_cores(void **state)
{
    char path[64];
    (void)state;
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", i);
        put(path, i < 4 ? "1024\n" : "446\n");
    }
    allow(0xff);
    assert_int_equal(threads(), 8);
}

static void threads_within_quota(void **state)
{
    (void)state;
    allow(0xff);
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    assert_int_equal(threads(), 3);
    allow(0x3);
    assert_int_equal(threads(), 2);
    put("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    assert_int_equal(threads(), 1);
}

static void topology_that_makes_no_sense(void **state)
{
    (void)state;
    allow(0xff);
    put_smt("1\n");
    for (int i = 0; i < 8; i++)
        put_core(i, "99999,5\n");
    assert_int_equal(threads(), 8);
    for (int i = 0; i < 8; i++)
        put_core(i, "none\n");
    assert_int_equal(threads(), 8);
}

/* Files with invalid contents. */
static void nonsense(void **state)
{
    uint64_t left;
    (void)state;
    put("/proc/meminfo", "MemTotal: \nMemAvailable: 99999999999999999999 kB\n");
    put("/proc/self/cgroup", ":::::\n0\n\n0::no/slash/first\n7:cpu\n");
    put("/sys/fs/cgroup/cpu.max", "100000 0\n");
    assert_int_equal(machine_quota(root), 0);
    assert_int_equal(total_of(root, &left), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(real_machine),
        TEST(nothing_readable),
        TEST(memory_without_limits),
        TEST(memory_of_group_v2),
        TEST(memory_of_group_v1),
        TEST(quota_v2),
        TEST(quota_v1),
        TEST(quota_of_parents),
        TEST(threads_within_affinity),
        TEST(threads_of_one_core_count_once),
        TEST(threads_of_hybrid_cores),
        TEST(threads_of_big_and_little_cores),
        TEST(threads_within_quota),
        TEST(topology_that_makes_no_sense),
        TEST(nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
