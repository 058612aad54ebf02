/* SPDX-License-Identifier: MIT */
/* header.h - the beginning of a plugin file, read without executing or mapping it: what kind of
 * file it is, for which system and processor, whether it is complete, and its manifest. hw-probe
 * reads the rest (probe/object/object.h). Every offset, size and count is checked against the
 * file's size before it is used, and the bytes are copied, so a file that shrinks meanwhile causes
 * an error and not a signal. */
#ifndef HW_OBJECT_HEADER_H
#define HW_OBJECT_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a process cannot load a file as a plugin: X(NAME, code), with the code that `hw explain`
 * shows. */
#define OBJECT_FAULTS(X)                                                                   \
    X(EMPTY, "malformed")                                                                  \
    X(UNREADABLE, "unreadable")                                                            \
    X(SCRIPT, "not-an-object")                                                             \
    X(STATIC_LIBRARY, "not-an-object")                                                     \
    X(LINKER_SCRIPT, "not-an-object")                                                      \
    X(NOT_AN_OBJECT, "not-an-object")                                                      \
    X(WRONG_FORMAT, "wrong-machine")                                                       \
    X(WRONG_CLASS, "wrong-machine")                                                        \
    X(WRONG_BYTE_ORDER, "wrong-machine")                                                   \
    X(WRONG_MACHINE, "wrong-machine")                                                      \
    X(NOT_SHARED, "not-an-object")                                                         \
    X(TRUNCATED, "malformed")                                                              \
    X(MALFORMED, "malformed")                                                              \
    X(EXECUTABLE_STACK, "executable-stack")                                                \
    X(NO_ENTRY, "no-entry")                                                                \
    X(BAD_ENTRY, "no-entry")                                                               \
    X(TWO_MANIFESTS, "bad-manifest")                                                       \
    X(NO_MEMORY, "no-memory")
enum object_fault {
    OBJECT_GOOD,
#define X(NAME, code) OBJECT_##NAME,
    OBJECT_FAULTS(X)
#undef X
        OBJECT_FAULT_COUNT
};

enum object_format { OBJECT_NO_FORMAT, OBJECT_ELF, OBJECT_PE, OBJECT_MACHO };

/* The system that uses the format, such as "Windows"; "" if there is none. */
const char *format_system(enum object_format format);

/* The format of a file by its first bytes. A file that ends within the bytes that identify a format
 * has that format. *big is the byte order of Mach-O. */
enum object_format format_of(const uint8_t *start, size_t bytes, bool *big);

/* Describes a file without a format, such as "a script, not an object file". Stores the fault. */
const char *describe_other(const uint8_t *start, size_t bytes, enum object_fault *fault);

/* The name of a processor by its number in ELF; NULL if it is not known. */
const char *elf_machine(uint32_t number);

/* The system and the processors that an object is for. */
struct target {
    enum object_format format;
    const char *machines; /* "x86-64 and AArch64"; NULL: the file ends before it says so */
    bool here;            /* this processor is among them */
    bool several;         /* processors, so `bits` need not hold for all */
    unsigned bits;        /* of an address */
    bool big;             /* the byte order */
};

/* Whether an object is for this process. Returns OBJECT_GOOD, or OBJECT_WRONG_... with a
 * description in `why`. */
enum object_fault target_check(const struct target *target, char *why, size_t size);
/* The name of the processor of this process. */
const char *native_machine(void);

/* Whether the file begins like an object file for this machine. The system skips other files when
 * it searches for a library. */
bool header_is_native(int fd);

/* A plugin for this system, by the beginning of its file. */
struct header {
    char *manifest; /* as HW_PLUGIN() writes it; NULL: none. The caller frees it */
    size_t manifest_bytes;
    bool beside; /* it may search for libraries beside itself ($ORIGIN) */
};

/* Reads a plugin file of `bytes` bytes for this system. Returns OBJECT_GOOD, or a fault with its
 * description in `why`. */
enum object_fault header_read(int fd, uint64_t bytes, struct header *header, char *why,
                              size_t size);

#endif
