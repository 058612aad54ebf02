/* SPDX-License-Identifier: MIT */
/* plugin_file.c - see plugin_file.h. Although the file has passed the library's checks, every read
 * is checked against its bounds. */
#define _GNU_SOURCE /* ElfW() */

#include "plugin_file.h"

#include "command/output.h"

#include <hw/plugin.h>

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

/* ---- Needed libraries ---- */

static void read_needed(const struct image *image, const ElfW(Shdr) * section,
                        json_t *names)
{
    static const char library[] = "libhw.so";
    const ElfW(Dyn) *rows = (const void *)(image->bytes + section->sh_offset);
    for (size_t i = 0; i < section->sh_size / sizeof *rows && rows[i].d_tag; i++) {
        const char *name = rows[i].d_tag == DT_NEEDED
                               ? name_at(image, section, rows[i].d_un.d_val)
                               : "";
        if (!strncmp(name, library, sizeof library - 1))
            json_array_append_new(names, json_string(name));
    }
}

static void read_dynamic(const struct image *image, json_t *names)
{
    const ElfW(Ehdr) *header = (const void *)image->bytes;
    const ElfW(Shdr) *sections = sections_of(image);
    for (size_t i = 0; sections && i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_DYNAMIC && sections[i].sh_link < header->e_shnum &&
            is_inside(image, sections[i].sh_offset, sections[i].sh_size))
            read_needed(image, &sections[i], names);
}

/* ---- The manifest ---- */

static bool is_known_key(const char *key, size_t length)
{
    static const char *const known[] = { "abi",      "name",   "title", "vendor",
                                         "rank",     "match",  "needs", "driver",
                                         "variable", "remedy", "build" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == length && !memcmp(known[i], key, length))
            return true;
    return false;
}

/* Adds the unknown keys of the lines key=value in `text`. */
static void read_lines(const char *text, const char *end, json_t *keys)
{
    while (text < end && *text) {
        const char *line = memchr(text, '\n', (size_t)(end - text));
        const char *stop = line ? line : end;
        const char *equals = memchr(text, '=', (size_t)(stop - text));
        const size_t length = (size_t)((equals ? equals : stop) - text);
        if (length > 0 && !is_known_key(text, length))
            json_array_append_new(keys, json_text(text, length));
        text = stop + (line != NULL);
    }
}

/* The name and the text of a note have multiples of 4 bytes. */
static size_t padded(uint32_t bytes)
{
    return ((size_t)bytes + 3) / 4 * 4;
}

/* The notes of one section, as HW_PLUGIN() writes one. */
static void read_notes(const char *at, size_t left, json_t *keys)
{
    uint32_t head[3]; /* bytes of the name, bytes of the text, type */
    while (left >= sizeof head) {
        memcpy(head, at, sizeof head);
        at += sizeof head;
        left -= sizeof head;
        if (padded(head[0]) > left || padded(head[1]) > left - padded(head[0]))
            return;
        if (head[0] >= 2 && !memcmp(at, "hw", 2) && head[2] == HW_NOTE_TYPE)
            read_lines(at + padded(head[0]), at + padded(head[0]) + head[1], keys);
        at += padded(head[0]) + padded(head[1]);
        left -= padded(head[0]) + padded(head[1]);
    }
}

static void read_manifest(const struct image *image, json_t *keys)
{
    const ElfW(Ehdr) *header = (const void *)image->bytes;
    const ElfW(Shdr) *sections = sections_of(image);
    for (size_t i = 0; sections && i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_NOTE && sections[i].sh_offset <= image->size &&
            sections[i].sh_size <= image->size - sections[i].sh_offset)
            read_notes((const char *)image->bytes + sections[i].sh_offset,
                       sections[i].sh_size, keys);
}

/* ---- Both ---- */

/* Maps the file and returns an array of the names that `collect` finds. */
static json_t *list_of(const char *path,
                       void (*collect)(const struct image *image, json_t *list))
{
    json_t *list = json_array();
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;

    if (fd < 0)
        return list;
    if (!fstat(fd, &about) && about.st_size > 0) {
        struct image image = { .size = (size_t)about.st_size };
        void *bytes = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            image.bytes = bytes;
            collect(&image, list);
            munmap(bytes, image.size);
        }
    }
    close(fd);
    return list;
}

json_t *extra_exports(const char *path)
{
    return list_of(path, read_symbols);
}

json_t *linked_library(const char *path)
{
    return list_of(path, read_dynamic);
}

json_t *unknown_keys(const char *path)
{
    return list_of(path, read_manifest);
}
