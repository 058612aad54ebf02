/* SPDX-License-Identifier: MIT */
/* mapped.c - which file the code in the process came from. The system's loader opens a path itself.
 * At that moment another file may be at the path, and a moment later the right file again. So it is
 * not enough to look at the path before and after.
 *
 * The system lists device and inode of each mapped file. On some file systems (overlayfs, btrfs)
 * they differ from the result of fstat(). Then the constant parts of memory are compared with the
 * file. Code is not compared, because debuggers set breakpoints in it, nor is anything else in its
 * segment. The comparison covers the headers, the notes with the build id, and usually the tables
 * of symbols and the constants. */
#define _GNU_SOURCE
#include "open/mapped.h"

#include "base/loaded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- the system's list of mappings ---- */

/* Whether the line is for this address and this file. */
static bool is_line_of(const char *line, uintptr_t address, const struct stat *file)
{
    uintptr_t begin, end;
    unsigned major_number, minor_number;
    uint64_t inode;
    return sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %x:%x %" SCNu64, &begin, &end,
                  &major_number, &minor_number, &inode) == 5 &&
           address >= begin && address < end && inode == file->st_ino &&
           makedev(major_number, minor_number) == file->st_dev;
}

static bool is_listed(uintptr_t address, const struct stat *file)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    while (maps && !found && getline(&line, &size, maps) > 0)
        found = is_line_of(line, address, file);
    free(line);
    if (maps)
        fclose(maps);
    return found;
}

/* ---- memory and file ---- */

struct library {
    uintptr_t function, base;
    const ElfW(Phdr) * segments;
    size_t count;
};

static int take_library(struct dl_phdr_info *info, size_t size, void *user)
{
    struct library *library = user;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || library->function < begin ||
            library->function - begin >= segment->p_memsz)
            continue;
        library->base = info->dlpi_addr;
        library->segments = info->dlpi_phdr;
        library->count = info->dlpi_phnum;
        return 1;
    }
    return 0;
}

/* Like memcmp(). Also reads the gaps that AddressSanitizer puts between a library's variables. */
__attribute__((no_sanitize("address"))) static bool
is_equal(const unsigned char *a, const unsigned char *b, size_t bytes)
{
    unsigned differ = 0;
    for (size_t i = 0; i < bytes; i++)
        differ |= (unsigned)(a[i] ^ b[i]);
    return !differ;
}

static bool is_same(int fd, uint64_t offset, const unsigned char *memory, size_t bytes)
{
    unsigned char part[4096];
    while (bytes > 0) {
        const ssize_t n = pread(fd, part, bytes < sizeof part ? bytes : sizeof part,
                                (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || !is_equal(part, memory, (size_t)n))
            return false;
        offset += (uint64_t)n;
        memory += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* How many bytes of the segment stay as they are in the file. In old layouts, the headers are in
 * the segment of the code. */
static size_t constant_bytes(const struct library *library, const ElfW(Phdr) * segment)
{
    if (segment->p_type == PT_NOTE)
        return segment->p_filesz;
    if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
        return 0;
    if (!(segment->p_flags & PF_X))
        return segment->p_filesz;
    return segment->p_offset ? 0 : sizeof(ElfW(Ehdr)) + library->count * sizeof(ElfW(Phdr));
}

static bool is_same_library(const struct library *library, int fd)
{
    bool same = true;
    for (size_t i = 0; i < library->count && same; i++) {
        const ElfW(Phdr) *segment = &library->segments[i];
        const uintptr_t memory = library->base + segment->p_vaddr;
        same = is_same(fd, segment->p_offset, (const unsigned char *)memory,
                       constant_bytes(library, segment));
    }
    return same;
}

bool mapped_from(const void *function, int fd, const struct stat *file)
{
    struct library library = { .function = (uintptr_t)function };
    return is_listed(library.function, file) ||
           (loaded_each(take_library, &library) && is_same_library(&library, fd));
}
