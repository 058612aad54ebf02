/* SPDX-License-Identifier: MIT */
/* verdict_write.c - writes a verdict as bytes, and adds later results to one. load/verdict.c has
 * the format. */
#define _POSIX_C_SOURCE 200809L
#include "probe/verdict_write.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

void verdict_seal(unsigned char *bytes, size_t size)
{
    const uint64_t all = size;
    memcpy(bytes, verdict_magic, sizeof verdict_magic);
    memcpy(bytes + sizeof verdict_magic, &all, sizeof all);
    const uint64_t sum = hash_add(HASH_START, bytes, size - VERDICT_TAIL);
    memcpy(bytes + size - VERDICT_TAIL, &sum, sizeof sum);
}

/* ---- writing ---- */

struct writer {
    struct verdict_codec codec;
    unsigned char *bytes;
    size_t size, room;
};

static bool write_bytes(struct verdict_codec *codec, void *from, size_t size)
{
    struct writer *writer = (struct writer *)codec;
    if (size > VERDICT_BYTES - writer->size)
        return false;
    if (size > writer->room - writer->size) {
        const size_t room = 2 * (writer->size + size);
        unsigned char *bytes = realloc(writer->bytes, room);
        if (!bytes)
            return false;
        writer->bytes = bytes;
        writer->room = room;
    }
    if (size)
        memcpy(writer->bytes + writer->size, from, size);
    writer->size += size;
    return true;
}

bool verdict_encode(const struct verdict *verdict, unsigned char **bytes, size_t *size)
{
    unsigned char empty[VERDICT_HEAD] = { 0 };
    struct writer writer = { .codec = { write_bytes, false } };
    struct verdict copy = *verdict;
    if (!write_bytes(&writer.codec, empty, VERDICT_HEAD) ||
        !verdict_move(&writer.codec, &copy) ||
        !write_bytes(&writer.codec, empty, VERDICT_TAIL)) {
        free(writer.bytes);
        return false;
    }
    verdict_seal(writer.bytes, writer.size);
    *bytes = writer.bytes;
    *size = writer.size;
    return true;
}

/* ---- taking over earlier results ---- */

static bool was_right(const struct verdict *before, uint32_t device,
                      const struct op_form *form)
{
    const uint8_t *left = before->left + (size_t)device * before->form_count;
    for (uint32_t i = 0; i < before->withdrawn_count; i++)
        if (before->withdrawn[i].device == device && before->withdrawn[i].op == form->op)
            return false;
    for (uint32_t i = 0; i < before->form_count; i++)
        if (!memcmp(&before->forms[i], form, sizeof *form))
            return !left[i];
    return false;
}

void verdict_inherit(struct verdict *verdict, const struct verdict *before, uint32_t device)
{
    uint8_t *left = verdict->left + (size_t)device * verdict->form_count;
    for (uint32_t i = 0; i < verdict->form_count; i++)
        if (left[i] && was_right(before, device, &verdict->forms[i])) {
            verdict->untested -= left[i];
            verdict->tested += left[i];
            left[i] = 0;
        }
}
