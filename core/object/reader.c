/* SPDX-License-Identifier: MIT */
/* reader.c - reads bytes of an object file, by offset or by address, within its bounds. */
#define _DEFAULT_SOURCE
#include "object/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum object_fault because(struct reader *reader, enum object_fault fault,
                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->why, reader->why_size, format, arguments);
    va_end(arguments);
    return fault;
}

enum object_fault truncated(struct reader *reader, const char *what)
{
    return because(reader, OBJECT_TRUNCATED, "the file is truncated: it ends before its %s",
                   what);
}

enum object_fault malformed(struct reader *reader, const char *what)
{
    return because(reader, OBJECT_MALFORMED, "the object file is damaged: %s", what);
}

enum object_fault no_memory(struct reader *reader)
{
    return because(reader, OBJECT_NO_MEMORY, "out of memory");
}

bool source_read(struct source *source, uint64_t offset, void *to, uint64_t bytes)
{
    uint64_t end;
    if (__builtin_add_overflow(offset, bytes, &end) || end > source->size)
        return false;
    if (source->data) {
        memcpy(to, source->data + offset, (size_t)bytes);
        return true;
    }
    for (char *p = to; bytes;) {
        ssize_t got = pread(source->fd, p, (size_t)bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            source->error = errno;
        if (got <= 0)
            return false; /* 0: the file has shrunk */
        p += got;
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return true;
}

bool in_file(struct source *source, uint64_t offset, uint64_t bytes)
{
    uint64_t end;
    return !__builtin_add_overflow(offset, bytes, &end) && end <= source->size;
}

const ElfW(Phdr) * segment_of(const struct reader *reader, uint64_t address, uint64_t bytes,
                              uint32_t rights)
{
    for (unsigned i = 0; i < reader->header.e_phnum; i++) {
        const ElfW(Phdr) *segment = &reader->segments[i];
        uint64_t inside = address - segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & rights) == rights &&
            inside <= segment->p_memsz && bytes <= segment->p_memsz - inside)
            return segment;
    }
    return NULL;
}

bool locate(const struct reader *reader, uint64_t address, uint64_t bytes, uint64_t *offset)
{
    const ElfW(Phdr) *segment = segment_of(reader, address, bytes, PF_R);
    if (!segment || address - segment->p_vaddr + bytes > segment->p_filesz)
        return false;
    *offset = segment->p_offset + (address - segment->p_vaddr);
    return true;
}

bool read_memory(const struct reader *reader, uint64_t address, void *to, uint64_t bytes)
{
    uint64_t offset;
    return locate(reader, address, bytes, &offset) &&
           source_read(reader->source, offset, to, bytes);
}

bool executable(const struct reader *reader, uint64_t address)
{
    const ElfW(Phdr) *segment = segment_of(reader, address, 1, PF_X);
    return segment && address - segment->p_vaddr < segment->p_filesz &&
           (NATIVE_MACHINE != EM_AARCH64 || address % 4 == 0);
}
