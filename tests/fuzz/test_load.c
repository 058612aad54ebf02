/* SPDX-License-Identifier: MIT */
/* test_load.c - a file that passes preflight, and that one process has loaded, does not kill the
 * next one that loads it: the process of the probe proves it for the application. Each byte of a
 * plugin's tables is changed in several ways; each file that the reader of object files still
 * accepts is loaded by a child process, and if that survives, by more of them, whose addresses
 * differ.
 *
 * The tables are everything in front of the code (header, segments, symbols, versions,
 * relocations) and the dynamic section. A changed table may also point into the middle
 * of a function or to another function. That is a different program, which no reader can
 * detect. The code is therefore replaced first: every instruction of the plugin is a
 * return, so a child that dies was killed by the tables.
 *
 * Usage: test_load [-n COUNT] PLUGIN...   -n: this many changes per plugin, evenly
 * spread (default: all); a fifth of them for the quick cases */
#define _GNU_SOURCE
#include "probe/object/object.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_BYTES (16u << 20)

enum end { REFUSED, LOADED, NOT_LOADED, DIED, DIED_LATER, ENDS };

#define AGAIN 2 /* further loads of a file that was loaded once */

#if defined(__x86_64__)
static const uint8_t returns[] = { 0xc3 };
#elif defined(__aarch64__)
static const uint8_t returns[] = { 0xc0, 0x03, 0x5f, 0xd6 };
#else
static const uint8_t returns[] = { 0 };
#endif

/* A plugin in memory, and the offsets of its table bytes. */
struct image {
    uint8_t *bytes;
    uint32_t *tables;
    size_t size, count;
    int fd; /* the same bytes, as a file */
};

static enum end load_in_child(int fd)
{
    char path[64];
    int status = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    pid_t child = fork();
    if (child == 0) {
        /* Processor time, so that a busy machine makes no difference. */
        setrlimit(RLIMIT_CPU, &(struct rlimit){ 2, 2 });
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library && dlsym(library, "hw_plugin_entry"))
            dlclose(library);
        _exit(library ? LOADED : NOT_LOADED);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    /* The dynamic loader exits with its own status after "Inconsistency detected". */
    bool ours = WIFEXITED(status) && WEXITSTATUS(status) < DIED;
    return ours ? (enum end)WEXITSTATUS(status) : DIED;
}

static enum end try(const struct image *image)
{
    struct source source = { .data = image->bytes, .fd = -1, .size = image->size };
    struct object object;
    char why[256];
    enum object_fault fault = object_read(&source, &object, why, sizeof why);
    object_free(&object);
    enum end end = fault ? REFUSED : load_in_child(image->fd);
    for (int i = 0; i < AGAIN && end == LOADED; i++)
        end = load_in_child(image->fd) == LOADED ? LOADED : DIED_LATER;
    return end;
}

static enum end try_changed(struct image *image, uint32_t at, uint8_t change)
{
    uint8_t was = image->bytes[at], is = was ^ change;
    image->bytes[at] = is;
    pwrite(image->fd, &is, 1, at);
    enum end end = try(image);
    image->bytes[at] = was;
    pwrite(image->fd, &was, 1, at);
    return end;
}

/* Headers and code may share a segment, so sections say where the code is. */
static void prepare(struct image *image)
{
    ElfW(Ehdr) header;
    size_t code = image->size, start = 0, end = 0;
    memcpy(&header, image->bytes, sizeof header);
    for (unsigned i = 0; i < header.e_shnum; i++) {
        ElfW(Shdr) row;
        memcpy(&row, image->bytes + header.e_shoff + i * sizeof row, sizeof row);
        if (row.sh_flags & SHF_EXECINSTR) {
            code = row.sh_offset < code ? row.sh_offset : code;
            for (size_t j = 0; j < row.sh_size; j++)
                image->bytes[row.sh_offset + j] = returns[j % sizeof returns];
        }
        if (row.sh_type == SHT_DYNAMIC) {
            start = row.sh_offset;
            end = start + row.sh_size;
        }
    }
    for (size_t i = 0; i < image->size; i++)
        if (i < code || (i >= start && i < end))
            image->tables[image->count++] = (uint32_t)i;
}

/* Tests one plugin. Returns 1 if a change killed a later process, but not the first. */
static int sweep(const char *path, struct image *image, size_t most)
{
    static const uint8_t changes[] = { 0x01, 0x02, 0x08, 0x40, 0x80, 0xff };
    unsigned ends[ENDS] = { 0 };
    FILE *file = fopen(path, "rb");
    image->count = 0;
    image->size = file ? fread(image->bytes, 1, MOST_BYTES, file) : 0;
    image->fd = memfd_create("plugin", 0);
    if (file)
        fclose(file);
    if (image->size < sizeof(ElfW(Ehdr)) || image->fd < 0)
        return 2;
    prepare(image);
    if (write(image->fd, image->bytes, image->size) != (ssize_t)image->size ||
        try(image) != LOADED) {
        printf("%s: cannot be loaded unchanged\n", path);
        return 2;
    }
    if (getenv("HW_TEST_QUICK"))
        most /= 5;
    size_t total = image->count * sizeof changes;
    size_t step = most && most < total ? total / most : 1;
    for (size_t i = 0; i < total; i += step) {
        uint32_t at = image->tables[i / sizeof changes];
        uint8_t change = changes[i % sizeof changes];
        enum end end = try_changed(image, at, change);
        ends[end]++;
        if (end == DIED_LATER)
            printf("%s: killed by 0x%02x ^ 0x%02x at 0x%x\n", path, image->bytes[at],
                   change, (unsigned)at);
    }
    close(image->fd);
    printf(
        "%s: %u refused, %u loaded, %u refused by the system, %u killed the first process, "
        "%u a later one\n",
        path, ends[REFUSED], ends[LOADED], ends[NOT_LOADED], ends[DIED], ends[DIED_LATER]);
    return ends[DIED_LATER] != 0;
}

int main(int argc, char **argv)
{
    bool some = argc > 2 && strcmp(argv[1], "-n") == 0;
    struct image image = { .bytes = malloc(MOST_BYTES),
                           .tables = malloc(MOST_BYTES * sizeof *image.tables) };
    int failed = argc < (some ? 4 : 2) ? 2 : 0;
    if (!image.bytes || !image.tables)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!freopen("/dev/null", "w", stderr)) /* the last words of the system's loader */
        return 2;
    for (int i = some ? 3 : 1; i < argc; i++)
        failed |= sweep(argv[i], &image, some ? strtoul(argv[2], NULL, 10) : 0);
    free(image.bytes);
    free(image.tables);
    return failed;
}
