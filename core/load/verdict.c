/* SPDX-License-Identifier: MIT */
/* verdict.c - reads the result of a probe, which probe/verdict_write.c writes:
 *
 *   8 bytes  the magic, which has the version of the format in it
 *   u64      bytes in all
 *   ...      the fields of struct verdict in order; a string is a u32 with its length and the bytes
 *   u64      checksum of everything before it
 *
 * Numbers have the byte order of the machine, because only the same machine reads them. The
 * checksum finds accidental damage. It does not stop an attacker, so every count and value is
 * checked, too. */
#define _POSIX_C_SOURCE 200809L
#include "load/verdict.h"

#include "base/hash.h"
#include "cache/depends.h"
#include "open/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The last character is the version of the format. It covers the fields and their meaning. */
const char verdict_magic[8] = { 'h', 'w', 'p', 'r', 'o', 'b', 'e', '7' };

_Static_assert(HW_OP_COUNT <= 64, "struct verdict has a bit for each op");

static uint64_t checksum(const unsigned char *bytes, size_t size)
{
    return hash_add(HASH_START, bytes, size);
}

/* ---- reading ---- */

struct reader {
    const unsigned char *bytes;
    size_t left;
};

static bool get(struct reader *reader, void *to, size_t size)
{
    if (size > reader->left)
        return false;
    memcpy(to, reader->bytes, size);
    reader->bytes += size;
    reader->left -= size;
    return true;
}

static bool get_u32(struct reader *reader, uint32_t *value)
{
    return get(reader, value, sizeof *value);
}

static bool get_u64(struct reader *reader, uint64_t *value)
{
    return get(reader, value, sizeof *value);
}

/* Makes the text one line: control characters become spaces. */
static void one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = ' ';
}

static bool get_flag(struct reader *reader, bool *flag)
{
    uint32_t value = 0;
    const bool good = get_u32(reader, &value) && value <= 1;
    *flag = value;
    return good;
}

static bool get_long_text(struct reader *reader, char **text, size_t most)
{
    uint32_t length;
    *text = NULL;
    if (!get_u32(reader, &length))
        return false;
    if (length == VERDICT_NO_TEXT)
        return true;
    if (length >= most || length > reader->left || memchr(reader->bytes, '\0', length) ||
        !(*text = calloc(1, (size_t)length + 1)))
        return false;
    return get(reader, *text, length);
}

static bool get_text(struct reader *reader, char **text)
{
    if (!get_long_text(reader, text, VERDICT_TEXT))
        return false;
    if (*text)
        one_line(*text);
    return true;
}

static bool get_reason(struct reader *reader, enum reason *reason)
{
    char *code;
    bool good = get_text(reader, &code) && code && reason_named(code, reason);
    free(code);
    return good;
}

static bool get_device(struct reader *reader, struct verdict_device *device)
{
    uint32_t size;
    return get_u32(reader, &size) && size == sizeof device->info &&
           get(reader, &device->info, size) && device->info.size == size &&
           !device_fault(&device->info) && get_text(reader, &device->fault);
}

static bool get_devices(struct reader *reader, struct verdict *verdict)
{
    uint32_t count;
    if (!get_u32(reader, &count) || count > MAX_DEVICES ||
        (count == 0) != (verdict->reason != REASON_NONE) ||
        !(verdict->devices = calloc((size_t)count + 1, sizeof *verdict->devices)))
        return false;
    /* Counts each device before reading it, so that its allocations are freed on an error. */
    while (verdict->device_count < count)
        if (!get_device(reader, &verdict->devices[verdict->device_count++]))
            return false;
    return true;
}

static bool get_form(struct reader *reader, uint32_t *op, int32_t dtype[MAX_OPERANDS])
{
    bool good = get_u32(reader, op) && *op < HW_OP_COUNT &&
                get(reader, dtype, MAX_OPERANDS * sizeof *dtype);
    for (int i = 0; i < MAX_OPERANDS && good; i++)
        good = dtype[i] >= 0 && dtype[i] < HW_DTYPE_END;
    return good;
}

static bool get_one_withdrawn(struct reader *reader, const struct verdict *verdict,
                              struct withdrawn *withdrawn)
{
    if (!get_u32(reader, &withdrawn->device) ||
        withdrawn->device >= verdict->device_count ||
        !get_form(reader, &withdrawn->op, withdrawn->dtype) ||
        !get_u32(reader, &withdrawn->slow) || withdrawn->slow > 1)
        return false;
    return get_text(reader, &withdrawn->why) && withdrawn->why;
}

static bool get_withdrawn(struct reader *reader, struct verdict *verdict)
{
    uint32_t count;
    if (!get_u32(reader, &count) || count > VERDICT_WITHDRAWN ||
        !(verdict->withdrawn = calloc((size_t)count + 1, sizeof *verdict->withdrawn)))
        return false;
    while (verdict->withdrawn_count < count)
        if (!get_one_withdrawn(reader, verdict,
                               &verdict->withdrawn[verdict->withdrawn_count++]))
            return false;
    return true;
}

static bool get_forms(struct reader *reader, struct verdict *verdict)
{
    uint32_t count;
    if (!get_u32(reader, &count) || count > VERDICT_FORMS ||
        (count && !verdict->device_count) ||
        !(verdict->forms = calloc((size_t)count + 1, sizeof *verdict->forms)))
        return false;
    for (; verdict->form_count < count; verdict->form_count++) {
        struct op_form *form = &verdict->forms[verdict->form_count];
        if (!get_form(reader, &form->op, form->dtype))
            return false;
    }
    uint64_t sum = 0;
    const size_t size = verdict_left_size(verdict);
    if (!(verdict->left = malloc(size + 1)) || !get(reader, verdict->left, size))
        return false;
    for (size_t i = 0; i < size; i++)
        sum += verdict->left[i];
    return sum <= verdict->untested;
}

static bool get_left_out(struct reader *reader, struct verdict *verdict)
{
    uint32_t count;
    if (!get_u32(reader, &count) || count > LEFT_OUT_MAX ||
        !(verdict->left_out = calloc((size_t)count + 1, sizeof *verdict->left_out)))
        return false;
    while (verdict->left_out_count < count) {
        struct left_out *one = &verdict->left_out[verdict->left_out_count++];
        if (!get_text(reader, &one->name) || !one->name || !get_text(reader, &one->why) ||
            !one->why)
            return false;
    }
    return true;
}

static bool get_fields(struct reader *reader, struct verdict *verdict)
{
    return get_reason(reader, &verdict->reason) && get_text(reader, &verdict->message) &&
           get_text(reader, &verdict->remedy) && get_text(reader, &verdict->version) &&
           get_long_text(reader, &verdict->depends, DEPENDS_BYTES) &&
           get_flag(reader, &verdict->locked) && get_u64(reader, &verdict->ops) &&
           (HW_OP_COUNT == 64 || verdict->ops >> HW_OP_COUNT == 0) &&
           get_u32(reader, &verdict->tested) && get_u32(reader, &verdict->untested) &&
           get_u64(reader, &verdict->microseconds) && get_devices(reader, verdict) &&
           get_withdrawn(reader, verdict) && get_forms(reader, verdict) &&
           get_left_out(reader, verdict) && (verdict->version || verdict->reason) &&
           (!verdict->reason || (verdict->message && verdict->remedy)) && !reader->left;
}

/* Whether the bytes have the length and the checksum that they state. */
static bool is_whole(const unsigned char *bytes, size_t size)
{
    uint64_t stated, sum;
    if (size > VERDICT_BYTES || size < VERDICT_FRAME ||
        memcmp(bytes, verdict_magic, sizeof verdict_magic) != 0)
        return false;
    memcpy(&stated, bytes + sizeof verdict_magic, sizeof stated);
    memcpy(&sum, bytes + size - VERDICT_TAIL, sizeof sum);
    return stated == size && sum == checksum(bytes, size - VERDICT_TAIL);
}

bool verdict_decode(struct verdict *verdict, const unsigned char *bytes, size_t size)
{
    *verdict = (struct verdict){ 0 };
    errno = 0;
    if (!is_whole(bytes, size))
        return false;
    struct reader reader = { bytes + VERDICT_HEAD, size - VERDICT_FRAME };
    if (get_fields(&reader, verdict))
        return true;
    const int error = errno;
    verdict_free(verdict);
    errno = error;
    return false;
}

void verdict_free(struct verdict *verdict)
{
    for (uint32_t i = 0; i < verdict->device_count; i++)
        free(verdict->devices[i].fault);
    for (uint32_t i = 0; i < verdict->withdrawn_count; i++)
        free(verdict->withdrawn[i].why);
    left_out_free(verdict->left_out, verdict->left_out_count);
    free(verdict->devices);
    free(verdict->withdrawn);
    free(verdict->forms);
    free(verdict->left);
    free(verdict->message);
    free(verdict->remedy);
    free(verdict->version);
    free(verdict->depends);
    *verdict = (struct verdict){ 0 };
}

/* ---- adding later results ---- */

static bool is_known(const struct verdict *verdict, const struct withdrawn *withdrawn)
{
    bool known = false;
    for (uint32_t i = 0; i < verdict->withdrawn_count && !known; i++) {
        const struct withdrawn *w = &verdict->withdrawn[i];
        known = w->device == withdrawn->device && w->op == withdrawn->op &&
                !memcmp(w->dtype, withdrawn->dtype, sizeof w->dtype);
    }
    return known;
}

static bool add_withdrawn(struct verdict *verdict, const struct verdict *found)
{
    const uint32_t most = verdict->withdrawn_count + found->withdrawn_count;
    struct withdrawn *longer =
        most > VERDICT_WITHDRAWN ? NULL
                                 : realloc(verdict->withdrawn, (most + 1) * sizeof *longer);
    if (!longer)
        return false;
    verdict->withdrawn = longer;
    for (uint32_t i = 0; i < found->withdrawn_count; i++) {
        struct withdrawn one = found->withdrawn[i];
        if (is_known(verdict, &one))
            continue;
        if (!(one.why = strdup(one.why)))
            return false;
        verdict->withdrawn[verdict->withdrawn_count++] = one;
    }
    return true;
}

bool verdict_add(struct verdict *verdict, uint32_t device, const struct op_form *form,
                 const struct verdict *found)
{
    if (device >= verdict->device_count || !add_withdrawn(verdict, found))
        return false;
    for (uint32_t i = 0; i < verdict->form_count; i++) {
        if (memcmp(&verdict->forms[i], form, sizeof *form) != 0)
            continue;
        uint8_t *left = &verdict->left[device * verdict->form_count + i];
        const uint32_t known = verdict_settles(found, *left);
        verdict->untested -= known;
        verdict->tested += known < found->tested ? known : found->tested;
        *left -= (uint8_t)known;
    }
    verdict->microseconds += found->microseconds;
    return true;
}
