/* SPDX-License-Identifier: MIT */
/* verdict.h - what a probe found out about a plugin file, and the same as bytes: the reply of
 * the program hw-probe, and what the cache keeps. */
#ifndef HW_OPEN_VERDICT_H
#define HW_OPEN_VERDICT_H

#include "open/candidate.h"
#include "run/ops.h"

/* The most bytes, strings and entries of a verdict; larger ones are not written, and refused
 * when read. */
enum {
    VERDICT_BYTES = 1 << 20,
    VERDICT_TEXT = 1024, /* of a string, with its NUL */
    VERDICT_WITHDRAWN = 1024,
    VERDICT_FORMS = 512 /* more than the admission test has */
};

/* A device, as the plugin reported it. */
struct verdict_device {
    struct hw_device_info info;
    char *fault; /* why it cannot be opened; NULL: it was opened, and closed again */
};

/* An op that a device must not be given, because it failed in the admission test. */
struct withdrawn {
    uint32_t device; /* the plugin's index */
    uint32_t op;     /* enum hw_op */
    int32_t dtype
        [MAX_OPERANDS]; /* in the order of the op's operands; HW_NONE: any, or absent */
    uint32_t seconds;   /* that it had, and needed more; 0: it failed, or was wrong */
    char *why;
};

/* Strings are never NULL, unless this is said of them. */
struct verdict {
    enum reason reason; /* why the plugin cannot be used; REASON_NONE: it can */
    char *message;      /* NULL: that of the reason */
    char *remedy;       /* NULL: that of the reason */
    char *version;      /* of the plugin; NULL: it did not come so far */
    uint64_t ops;       /* bit 1 << op for each op that it has */
    /* The admission test: the cases that its devices computed, those that were left out because
     * time or memory ran out, and the time for both. */
    uint32_t tested, untested;
    uint64_t microseconds;
    uint32_t device_count; /* 1 to MAX_DEVICES if the plugin can be used, else 0 */
    uint32_t withdrawn_count;
    uint32_t form_count;     /* 0: no case was left out because time ran out */
    uint32_t left_out_count; /* also if the plugin cannot be used */
    struct verdict_device *devices;
    struct withdrawn *withdrawn;
    /* All forms that cases have, and how many cases of each were left out because time ran out:
     * for each device, a number for each form. */
    struct op_form *forms;
    uint8_t *left;
    struct left_out *left_out; /* their strings are not NULL */
};

/* Writes the verdict to memory that the caller frees. False if memory runs out, or if the
 * verdict has more of something than it may. */
bool verdict_encode(const struct verdict *verdict, unsigned char **bytes, size_t *size);

/* Reads a verdict from bytes of any origin. False unless they are what verdict_encode() of
 * this version writes, of a verdict that makes sense; there is nothing to free then. errno is
 * ENOMEM if it is for lack of memory. */
bool verdict_decode(struct verdict *verdict, const unsigned char *bytes, size_t size);

void verdict_free(struct verdict *verdict);

/* Adds what a later test of one form on one device found: the verdict `found`, of hw-probe. Cases
 * for which there was no memory stay left out. False if memory runs out or there is no room: then
 * some of it is missing. */
bool verdict_add(struct verdict *verdict, uint32_t device, const struct op_form *form,
                 const struct verdict *found);

/* How many of the cases that had been left out are known now. */
uint32_t verdict_settles(const struct verdict *found, uint32_t cases);

/* Forms that this verdict leaves out on the device, and that were right when the one before it was
 * found, need no test. */
void verdict_inherit(struct verdict *verdict, const struct verdict *before,
                     uint32_t device);

/* The first bytes of every verdict. */
extern const char verdict_magic[8];

/* Writes the magic, the size and the checksum into what verdict_encode() is making: at least
 * VERDICT_FRAME bytes. For it, and for a fuzzer, who would not find them. */
enum { VERDICT_FRAME = 24 };
void verdict_seal(unsigned char *bytes, size_t size);

#endif
