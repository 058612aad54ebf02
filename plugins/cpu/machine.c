/* SPDX-License-Identifier: MIT */
/* The machine: facts from the processor, and the share of it that the operating system grants this
 * process. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "cpu.h"

#include <ctype.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

/* ---- small files ---- */

/* Reads the beginning of a file; returns false on failure. It avoids stdio, which would allocate a
 * buffer for each file. */
static bool read_text(const char *path, char *text, size_t size)
{
    size_t used = 0;
    ssize_t got = -1;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && used < size - 1 &&
           (got = read(file, text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    if (file >= 0)
        close(file);
    return used > 0 || got == 0;
}

/* Reads a number after optional blanks; "max" becomes UINT64_MAX. Returns the text after it, or
 * NULL if there is no number. */
static const char *number_at(const char *text, uint64_t *value)
{
    char *end;
    text += strspn(text, " \t");
    if (strncmp(text, "max", 3) == 0) {
        *value = UINT64_MAX;
        return text + 3;
    }
    const bool negative = *text == '-';
    if (!isdigit((unsigned char)text[negative]))
        return NULL;
    *value = strtoull(text, &end, 10);
    return end;
}

static bool read_number(const char *path, uint64_t *value)
{
    char text[64];
    return read_text(path, text, sizeof text) && number_at(text, value) != NULL;
}

/* The next line, or NULL after the last. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end && end[1] ? end + 1 : NULL;
}

/* The text after a line's leading `key` and a blank or colon, as in "MemTotal:   23 kB" or
 * "inactive_file 42". NULL if there is no such line. */
static const char *value_of(const char *text, const char *key)
{
    const size_t n = strlen(key);
    for (const char *line = text; line; line = next_line(line))
        if (strncmp(line, key, n) == 0 && line[n] && strchr(" :\t", line[n]))
            return line + n + 1;
    return NULL;
}

static bool number_of(const char *text, const char *key, uint64_t *value)
{
    const char *at = value_of(text, key);
    return at && number_at(at, value);
}

/* ---- the processor ---- */

/* Copies without the blanks at both ends; processors pad their names with them. */
static void copy_trimmed(char *to, size_t size, const char *from)
{
    while (isspace((unsigned char)*from))
        from++;
    size_t n = strlen(from);
    while (n && isspace((unsigned char)from[n - 1]))
        n--;
    n = n < size ? n : size - 1;
    memcpy(to, from, n);
    to[n] = '\0';
}

#if defined(__x86_64__)

enum register_index { EAX, EBX, ECX, EDX };
enum saved_state { STATE_AVX = 0x6, STATE_AVX512 = 0xe6, STATE_AMX = 0x60000 };

/* The answers of cpuid. In a virtual machine, each takes microseconds, so no leaf is read twice:
 * cpu.def lists the bits of a leaf side by side. */
struct cpuid {
    uint32_t first[4];  /* leaf 0: the last one, and the vendor */
    uint32_t last_name; /* of leaves from 0x80000000 */
    uint32_t leaf, subleaf, regs[4];
};

static void cpuid_begin(struct cpuid *id)
{
    memset(id, 0, sizeof *id);
    __cpuid(0, id->first[EAX], id->first[EBX], id->first[ECX], id->first[EDX]);
    id->last_name = (uint32_t)__get_cpuid_max(0x80000000u, NULL);
}

/* Four registers; zeros if there is no such leaf. */
static const uint32_t *cpuid_leaf(struct cpuid *id, uint32_t leaf, uint32_t subleaf)
{
    if (leaf == id->leaf && subleaf == id->subleaf)
        return id->regs;
    id->leaf = leaf;
    id->subleaf = subleaf;
    memset(id->regs, 0, sizeof id->regs);
    if (leaf <= (leaf < 0x80000000u ? id->first[EAX] : id->last_name))
        __cpuid_count(leaf, subleaf, id->regs[EAX], id->regs[EBX], id->regs[ECX],
                      id->regs[EDX]);
    return id->regs;
}

/* The register state that the operating system saves (XCR0); 0 if unknown. */
static uint64_t saved_state(struct cpuid *id)
{
    uint32_t eax, edx;
    if (!(cpuid_leaf(id, 1, 0)[ECX] & bit_OSXSAVE))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    return (uint64_t)edx << 32 | eax;
}

static uint64_t read_features(struct cpuid *id)
{
    const uint64_t saved = saved_state(id);
    uint64_t features = 0;
#define X86(NAME, leaf, subleaf, register, bit, state)                                     \
    if (((uint64_t)(state) & ~saved) == 0 &&                                               \
        (cpuid_leaf(id, leaf, subleaf)[register] >> (bit)&1))                              \
        features |= HAS(NAME);
#include "cpu.def"
    return features;
}

/* Returns the bits of all tiers that the processor has; `arch` gets the name of the highest. A tier
 * requires its own features and those of the tiers below. */
static uint64_t read_tiers(uint64_t features, char *arch, size_t size)
{
    uint64_t tiers = 0, needed = 0;
    copy_trimmed(arch, size, "x86-64");
#define TIER(NAME, text, added)                                                            \
    needed |= (added);                                                                     \
    if ((features & needed) == needed) {                                                   \
        tiers |= HAS(TIER_##NAME);                                                         \
        copy_trimmed(arch, size, text);                                                    \
    }
#include "cpu.def"
    return tiers;
}

static void read_name(struct machine *machine, struct cpuid *id)
{
    char text[3 * sizeof id->regs + 1] = "";
    for (uint32_t i = 0; i < 3; i++)
        memcpy(text + i * sizeof id->regs, cpuid_leaf(id, 0x80000002u + i, 0),
               sizeof id->regs);
    copy_trimmed(machine->name, sizeof machine->name, text);
}

static void read_vendor(struct machine *machine, const struct cpuid *id)
{
    char text[13] = "";
    memcpy(text, &id->first[EBX], 4);
    memcpy(text + 4, &id->first[EDX], 4);
    memcpy(text + 8, &id->first[ECX], 4);
    copy_trimmed(machine->vendor, sizeof machine->vendor,
                 strcmp(text, "GenuineIntel") == 0   ? "Intel"
                 : strcmp(text, "AuthenticAMD") == 0 ? "AMD"
                                                     : text);
}

static void read_processor(struct machine *machine, const char *root)
{
    struct cpuid id;
    (void)root;
    cpuid_begin(&id);
    const uint64_t features = read_features(&id);
    machine->features = features |
                        read_tiers(features, machine->arch, sizeof machine->arch);
    read_name(machine, &id);
    read_vendor(machine, &id);
}

#else

/* The value of the first line "key : value"; "" if there is none. */
static void cpuinfo_value(const char *cpuinfo, const char *key, char *value, size_t size)
{
    char line[256];
    const char *at = value_of(cpuinfo, key);
    at = at ? at + strspn(at, " \t:") : "";
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    copy_trimmed(value, size, line);
}

static uint64_t read_features(void)
{
    uint64_t features = 0;
#if defined(__aarch64__) && defined(__linux__)
#define ARM(NAME, word, bit)                                                               \
    if (getauxval(word) >> bit & 1)                                                        \
        features |= HAS(ARM_##NAME);
#include "cpu.def"
#endif
    return features;
}

/* Implementer codes that Arm has assigned (Arm ARM, MIDR_EL1). */
static const char *implementer(unsigned long code)
{
    switch (code) {
    case 0x41:
        return "Arm";
    case 0x42:
        return "Broadcom";
    case 0x43:
        return "Cavium";
    case 0x46:
        return "Fujitsu";
    case 0x48:
        return "HiSilicon";
    case 0x4e:
        return "NVIDIA";
    case 0x51:
        return "Qualcomm";
    case 0x53:
        return "Samsung";
    case 0x61:
        return "Apple";
    case 0xc0:
        return "Ampere";
    default:
        return "";
    }
}

/* On AArch64, Linux reports the processor's codes instead of a name, so the codes become the
 * name. */
static void read_processor(struct machine *machine, const char *root)
{
    char path[256], cpuinfo[8192], code[32], part[32];
    machine->features = read_features();
#if defined(__aarch64__)
    copy_trimmed(machine->arch, sizeof machine->arch, "aarch64");
#endif
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    read_text(path, cpuinfo, sizeof cpuinfo);
    cpuinfo_value(cpuinfo, "model name", machine->name, sizeof machine->name);
    cpuinfo_value(cpuinfo, "CPU implementer", code, sizeof code);
    cpuinfo_value(cpuinfo, "CPU part", part, sizeof part);
    copy_trimmed(machine->vendor, sizeof machine->vendor,
                 implementer(strtoul(code, NULL, 16)));
    if (!machine->name[0] && machine->vendor[0] && part[0])
        snprintf(machine->name, sizeof machine->name, "%s part %s", machine->vendor, part);
}

#endif

/* ---- resources granted to the process ---- */

/* The directory of the process's control group: in version 2 (`controller` is ""), or for one
 * controller of version 1. In a container, the group's path as seen from outside may not exist;
 * then the files are at the root of the mount. */
struct cgroup {
    char mount[512]; /* ".../sys/fs/cgroup" or ".../sys/fs/cgroup/memory" */
    char path[512];  /* "/a/b", or "" at the root */
};

/* Whether the comma-separated list `names` has `name`. */
static bool lists(const char *names, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = names; (at = strstr(at, name)) != NULL; at += n)
        if ((at == names || at[-1] == ',') && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

/* Finds the group in the text of /proc/self/cgroup: lines like "4:cpu,cpuacct:/a/b" and
 * "0::/a/b". */
static bool cgroup_find(struct cgroup *group, const char *list, const char *root,
                        const char *controller)
{
    char line[1024];
    for (const char *at = list; at; at = next_line(at)) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        names++;
        if (controller[0] ? !lists(names, controller) : names[0] != '\0')
            continue;
        snprintf(group->mount, sizeof group->mount, "%s/sys/fs/cgroup%s%s", root,
                 controller[0] ? "/" : "", controller);
        copy_trimmed(group->path, sizeof group->path, strcmp(path, "/") == 0 ? "" : path);
        return true;
    }
    return false;
}

/* Calls fn for the group and all its ancestors: their limits apply, too. */
static void cgroup_climb(struct cgroup *group,
                         void (*fn)(const char *directory, void *user), void *user)
{
    char directory[sizeof group->mount + sizeof group->path];
    for (;;) {
        snprintf(directory, sizeof directory, "%s%s", group->mount, group->path);
        fn(directory, user);
        char *slash = strrchr(group->path, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

static void cgroup_each(const char *root, const char *controller,
                        void (*fn)(const char *directory, void *user), void *user)
{
    char path[256], list[8192];
    struct cgroup group;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!read_text(path, list, sizeof list))
        return;
    if (cgroup_find(&group, list, root, ""))
        cgroup_climb(&group, fn, user);
    if (cgroup_find(&group, list, root, controller))
        cgroup_climb(&group, fn, user);
}

/* Version 2 has "200000 100000" or "max 100000" in cpu.max; version 1 has two files. */
static void quota_at(const char *directory, void *user)
{
    uint32_t *cores = user;
    char path[1100], text[64];
    uint64_t quota = 0, period = 0;

    snprintf(path, sizeof path, "%s/cpu.max", directory);
    if (read_text(path, text, sizeof text)) {
        const char *rest = number_at(text, &quota);
        if (!rest || !number_at(rest, &period))
            quota = 0;
    } else {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
        if (!read_number(path, &quota))
            return;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
        if (!read_number(path, &period))
            return;
    }
    if (quota && quota <= INT64_MAX && period) { /* "max" and -1: none */
        const uint64_t whole = quota / period + (quota % period != 0);
        if (whole < UINT32_MAX && (*cores == 0 || whole < *cores))
            *cores = (uint32_t)whole;
    }
}

void machine_affinity(struct affinity *affinity)
{
    memset(affinity, 0, sizeof *affinity);
#if defined(__linux__)
    cpu_set_t set;
    _Static_assert(sizeof set == sizeof affinity->set, "bits of cpu_set_t");
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        memcpy(affinity->set, &set, sizeof set);
        affinity->known = true;
        affinity->count = (uint32_t)CPU_COUNT(&set);
        return;
    }
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN); /* more than a cpu_set_t can hold */
    affinity->count = online > 0 ? (uint32_t)online : 1;
}

#if defined(__linux__)
/* The first processor among the threads of the same core: 3 for "3,7" or "3-4". If the system does
 * not say, the processor itself. */
static size_t first_thread(const char *root, size_t processor)
{
    char path[256];
    uint64_t first;
    snprintf(path, sizeof path,
             "%s/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", root,
             processor);
    return read_number(path, &first) && first < CPU_SETSIZE ? (size_t)first : processor;
}

uint32_t machine_cores(const struct affinity *affinity, const char *root)
{
    cpu_set_t set, first;
    char path[256];
    uint64_t active = 0;
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/smt/active", root);
    if (!affinity->known || !read_number(path, &active) || !active)
        return affinity->count;
    memcpy(&set, affinity->set, sizeof set);
    CPU_ZERO(&first);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            CPU_SET(first_thread(root, i), &first);
    return (uint32_t)CPU_COUNT(&first);
}
#else
uint32_t machine_cores(const struct affinity *affinity, const char *root)
{
    (void)root;
    return affinity->count;
}
#endif

uint32_t machine_quota(const char *root)
{
    uint32_t quota = 0;
    cgroup_each(root, "cpu", quota_at, &quota);
    return quota;
}

void machine_read(struct machine *machine, const char *root)
{
    struct affinity affinity;
    memset(machine, 0, sizeof *machine);
    read_processor(machine, root);
    machine_affinity(&affinity);
    machine->processors = affinity.count;
}

/* ---- memory ---- */

struct memory {
    uint64_t total, free;
};

/* A group counts cached files as used memory, but the system frees them on demand. */
static void memory_at(const char *directory, void *user)
{
    struct memory *memory = user;
    char path[1100], text[4096];
    uint64_t limit = 0, used = 0, cached = 0;

    snprintf(path, sizeof path, "%s/memory.max", directory);
    if (read_number(path, &limit)) {
        snprintf(path, sizeof path, "%s/memory.current", directory);
    } else {
        snprintf(path, sizeof path, "%s/memory.limit_in_bytes", directory);
        if (!read_number(path, &limit))
            return;
        snprintf(path, sizeof path, "%s/memory.usage_in_bytes", directory);
    }
    if (limit >= memory->total)
        return;
    memory->total = limit;
    if (!read_number(path, &used))
        used = 0;
    snprintf(path, sizeof path, "%s/memory.stat", directory);
    if (!read_text(path, text, sizeof text) || !number_of(text, "inactive_file", &cached) ||
        cached > used)
        cached = 0;
    used -= cached;
    const uint64_t left = limit > used ? limit - used : 0;
    if (left < memory->free)
        memory->free = left;
}

void machine_memory(const char *root, uint64_t *total, uint64_t *free)
{
    char path[256], text[1024];
    struct memory memory = { 0 };

    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (read_text(path, text, sizeof text) && number_of(text, "MemTotal", &memory.total) &&
        memory.total <= UINT64_MAX / 1024) {
        memory.total *= 1024;
        if (number_of(text, "MemAvailable", &memory.free) &&
            memory.free <= UINT64_MAX / 1024)
            memory.free *= 1024;
        cgroup_each(root, "memory", memory_at, &memory);
    }
    *total = memory.total;
    *free = memory.free;
}
