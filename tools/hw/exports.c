/* SPDX-License-Identifier: MIT */
/* exports.c - see exports.h. The file has passed the library's checks and was loaded; it is still
 * read with bounds. */
#define _GNU_SOURCE /* ElfW() */

#include "exports.h"

#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const unsigned char *bytes;
    size_t size;
};

static bool is_inside(const struct image *image, uint64_t offset, uint64_t bytes)
{
    return offset <= image->size && bytes <= image->size - offset && offset % 8 == 0;
}

static const ElfW(Shdr) * sections_of(const struct image *image)
{
    const ElfW(Ehdr) *header = (const void *)image->bytes;
    if (image->size < sizeof *header || header->e_shentsize != sizeof(ElfW(Shdr)) ||
        !is_inside(image, header->e_shoff, (uint64_t)header->e_shnum * sizeof(ElfW(Shdr))))
        return NULL;
    return (const void *)(image->bytes + header->e_shoff);
}

/* The section of dynamic symbols, or NULL. */
static const ElfW(Shdr) * symbol_table(const struct image *image)
{
    const ElfW(Ehdr) *header = (const void *)image->bytes;
    const ElfW(Shdr) *sections = sections_of(image);
    for (size_t i = 0; sections && i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < header->e_shnum &&
            is_inside(image, sections[i].sh_offset, sections[i].sh_size))
            return &sections[i];
    return NULL;
}

/* A name in the table's section of strings; "" if the offset is wrong. */
static const char *name_at(const struct image *image, const ElfW(Shdr) * table,
                           uint64_t offset)
{
    const ElfW(Shdr) *strings = sections_of(image) + table->sh_link;
    if (strings->sh_offset > image->size ||
        strings->sh_size > image->size - strings->sh_offset || offset >= strings->sh_size)
        return "";
    const char *name = (const char *)image->bytes + strings->sh_offset + offset;
    return memchr(name, '\0', strings->sh_size - offset) ? name : "";
}

static bool is_exported(const ElfW(Sym) * symbol)
{
    const int binding = symbol->st_info >> 4, visibility = symbol->st_other & 3;
    return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
           binding != STB_LOCAL &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

static void read_symbols(const struct image *image, json_t *names)
{
    const ElfW(Shdr) *table = symbol_table(image);
    if (!table)
        return;
    const ElfW(Sym) *rows = (const void *)(image->bytes + table->sh_offset);
    for (size_t i = 1; i < table->sh_size / sizeof *rows; i++) {
        const char *name = name_at(image, table, rows[i].st_name);
        if (is_exported(&rows[i]) && strcmp(name, "hw_plugin_entry"))
            json_array_append_new(names, json_string(name));
    }
}

json_t *extra_exports(const char *path)
{
    json_t *names = json_array();
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;

    if (fd < 0)
        return names;
    if (!fstat(fd, &about) && about.st_size > 0) {
        struct image image = { .size = (size_t)about.st_size };
        void *bytes = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            image.bytes = bytes;
            read_symbols(&image, names);
            munmap(bytes, image.size);
        }
    }
    close(fd);
    return names;
}
