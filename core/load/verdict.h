/* SPDX-License-Identifier: MIT */
/* verdict.h - the result of probing a plugin file, as a struct and as bytes. The bytes are the
 * reply of the program hw-probe and the contents of the cache. */
#ifndef HW_LOAD_VERDICT_H
#define HW_LOAD_VERDICT_H

#include "call/ops.h"
#include "open/candidate.h"

/* The limits of a verdict. A larger verdict is not written, and refused when read. */
enum {
    VERDICT_BYTES = 1 << 20,
    VERDICT_TEXT = 1024, /* of a string, with its NUL */
    VERDICT_WITHDRAWN = 1024,
    VERDICT_FORMS = 512 /* more than the admission test has */
};

/* A device, as the plugin reported it. */
struct verdict_device {
    struct hw_device_info info;
    char *fault; /* why it cannot be opened; NULL: it was opened and closed again */
};

/* An op that a device must not compute, because it failed the admission test, or took too long. */
struct withdrawn {
    uint32_t device; /* the plugin's index */
    uint32_t op;     /* enum hw_op */
    uint32_t slow;   /* 1: it took too long, and may be right; else 0 */
    /* In the order of the op's operands; HW_NONE: any, or absent. */
    int32_t dtype[MAX_OPERANDS];
    char *why;
};

/* Strings are not NULL, unless a comment says so. */
struct verdict {
    enum reason reason; /* why the plugin cannot be used; REASON_NONE: it can */
    char *message;      /* NULL: the sentence of the reason */
    char *remedy;       /* NULL: the remedy of the reason */
    char *version;      /* of the plugin; NULL: it stopped before its version was known */
    char *depends;      /* cache/depends.h; NULL: the verdict cannot be kept */
    bool locked;        /* plugins.lock of its directory lists it with this content */
    uint64_t ops;       /* bit 1 << op for each op that the plugin has */
    /* The admission test: how many cases the devices computed, how many were skipped because time
     * or memory ran out, and how long the test took. */
    uint32_t tested, untested;
    uint64_t microseconds;
    uint32_t device_count; /* 1 to MAX_DEVICES if the plugin can be used, else 0 */
    uint32_t withdrawn_count;
    uint32_t form_count;     /* 0: no case was skipped because time ran out */
    uint32_t left_out_count; /* may be set even if the plugin cannot be used */
    struct verdict_device *devices;
    struct withdrawn *withdrawn;
    /* All forms that cases have. `left` has, for each device, a number for each form: how many of
     * its cases were skipped because time ran out. */
    struct op_form *forms;
    uint8_t *left;
    struct left_out *left_out; /* their strings are not NULL */
};

/* Reads a verdict from bytes of any origin. Returns false, with nothing to free, if they are not a
 * valid verdict of this version of the format; or if memory runs out, with ENOMEM in errno. */
bool verdict_decode(struct verdict *verdict, const unsigned char *bytes, size_t size);

void verdict_free(struct verdict *verdict);

/* Moves the fields of a verdict from bytes or to bytes; to bytes, it changes nothing in the
 * verdict. False if they do not fit, if there are too many of them, or if memory runs out; the
 * caller of a codec that reads then frees the verdict. */
struct verdict_codec {
    /* Moves one field. False if there are not so many bytes. */
    bool (*move)(struct verdict_codec *codec, void *field, size_t size);
    bool reads; /* from bytes */
};
bool verdict_move(struct verdict_codec *codec, struct verdict *verdict);

/* Adds the result of a later test of one form on one device: the verdict `found` of hw-probe. Cases
 * for which memory ran out stay skipped. False if memory runs out or a limit is reached: then the
 * result is added only in part. */
bool verdict_add(struct verdict *verdict, uint32_t device, const struct op_form *form,
                 const struct verdict *found);

/* Bytes of the member `left`. */
static inline size_t verdict_left_size(const struct verdict *verdict)
{
    return (size_t)verdict->device_count * verdict->form_count;
}

/* How many of the skipped cases have a result now. */
static inline uint32_t verdict_settles(const struct verdict *found, uint32_t cases)
{
    return cases - (found->untested < cases ? found->untested : cases);
}

/* The first bytes of every verdict. */
extern const char verdict_magic[8];

/* The bytes of a verdict beside its fields: the magic and the size, and a checksum at the end. */
enum {
    VERDICT_HEAD = sizeof verdict_magic + sizeof(uint64_t),
    VERDICT_TAIL = sizeof(uint64_t),
    VERDICT_FRAME = VERDICT_HEAD + VERDICT_TAIL
};
#define VERDICT_NO_TEXT UINT32_MAX /* the length of a string that is NULL */

#endif
