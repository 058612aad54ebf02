/* SPDX-License-Identifier: MIT */
/* verdict_write.c - writes a verdict as bytes, and adds later results to one. load/verdict.c has
 * the format. */
#define _POSIX_C_SOURCE 200809L
#include "probe/verdict_write.h"

#include "base/hash.h"
#include "open/registry.h"

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
    unsigned char *bytes;
    size_t size, room;
    bool failed;
};

static void put(struct writer *writer, const void *from, size_t size)
{
    if (writer->failed || size > VERDICT_BYTES - writer->size) {
        writer->failed = true;
        return;
    }
    if (size > writer->room - writer->size) {
        const size_t room = 2 * (writer->size + size);
        unsigned char *bytes = realloc(writer->bytes, room);
        if (!bytes) {
            writer->failed = true;
            return;
        }
        writer->bytes = bytes;
        writer->room = room;
    }
    if (size)
        memcpy(writer->bytes + writer->size, from, size);
    writer->size += size;
}

static void put_u32(struct writer *writer, uint32_t value)
{
    put(writer, &value, sizeof value);
}

static void put_u64(struct writer *writer, uint64_t value)
{
    put(writer, &value, sizeof value);
}

static void put_long_text(struct writer *writer, const char *text, size_t length)
{
    put_u32(writer, text ? (uint32_t)length : VERDICT_NO_TEXT);
    put(writer, text, length);
}

/* Truncates long text, which is only for people to read. */
static void put_text(struct writer *writer, const char *text)
{
    put_long_text(writer, text, text ? strnlen(text, VERDICT_TEXT - 1) : 0);
}

static void put_device(struct writer *writer, const struct verdict_device *device)
{
    put_u32(writer, sizeof device->info);
    put(writer, &device->info, sizeof device->info);
    put_text(writer, device->fault);
}

static void put_withdrawn(struct writer *writer, const struct withdrawn *withdrawn)
{
    put_u32(writer, withdrawn->device);
    put_u32(writer, withdrawn->op);
    put(writer, withdrawn->dtype, sizeof withdrawn->dtype);
    put_u32(writer, withdrawn->slow);
    put_text(writer, withdrawn->why);
}

static void put_form(struct writer *writer, const struct op_form *form)
{
    put_u32(writer, form->op);
    put(writer, form->dtype, sizeof form->dtype);
}

static void put_left_out(struct writer *writer, const struct left_out *left_out)
{
    put_text(writer, left_out->name);
    put_text(writer, left_out->why);
}

/* Reasons may share a code, so the sentence and the remedy are written, too. */
static void put_reason(struct writer *writer, const struct verdict *verdict)
{
    const struct reason_row *row = &reason_rows[verdict->reason];
    const bool own = verdict->reason != REASON_NONE;
    put_text(writer, row->code);
    put_text(writer, own && !verdict->message ? row->sentence : verdict->message);
    put_text(writer, own && !verdict->remedy ? row->remedy : verdict->remedy);
}

static void put_fields(struct writer *writer, const struct verdict *verdict)
{
    put_reason(writer, verdict);
    put_text(writer, verdict->version);
    put_long_text(writer, verdict->depends,
                  verdict->depends ? strlen(verdict->depends) : 0);
    put_u32(writer, verdict->locked);
    put_u64(writer, verdict->ops);
    put_u32(writer, verdict->tested);
    put_u32(writer, verdict->untested);
    put_u64(writer, verdict->microseconds);
    put_u32(writer, verdict->device_count);
    for (uint32_t i = 0; i < verdict->device_count; i++)
        put_device(writer, &verdict->devices[i]);
    put_u32(writer, verdict->withdrawn_count);
    for (uint32_t i = 0; i < verdict->withdrawn_count; i++)
        put_withdrawn(writer, &verdict->withdrawn[i]);
    put_u32(writer, verdict->form_count);
    for (uint32_t i = 0; i < verdict->form_count; i++)
        put_form(writer, &verdict->forms[i]);
    put(writer, verdict->left, verdict_left_size(verdict));
    put_u32(writer, verdict->left_out_count);
    for (uint32_t i = 0; i < verdict->left_out_count; i++)
        put_left_out(writer, &verdict->left_out[i]);
}

bool verdict_encode(const struct verdict *verdict, unsigned char **bytes, size_t *size)
{
    static const unsigned char empty[VERDICT_HEAD];
    struct writer writer = { 0 };
    put(&writer, empty, VERDICT_HEAD);
    put_fields(&writer, verdict);
    put(&writer, empty, VERDICT_TAIL);
    if (writer.failed || verdict->device_count > MAX_DEVICES ||
        verdict->withdrawn_count > VERDICT_WITHDRAWN ||
        verdict->form_count > VERDICT_FORMS || verdict->left_out_count > LEFT_OUT_MAX) {
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
