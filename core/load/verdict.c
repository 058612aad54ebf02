/* SPDX-License-Identifier: MIT */
/* verdict.c - the bytes of the result of a probe:
 *
 *   8 bytes  the magic, which has the version of the format in it
 *   u64      bytes in all
 *   ...      the fields of struct verdict in order; a string is a u32 with its length and the bytes
 *   u64      checksum of everything before it
 *
 * Numbers have the byte order of the machine, because only the same machine reads them. The
 * checksum finds accidental damage. It does not stop an attacker, so every count and value is
 * checked, too. One function moves the fields in both directions; probe/verdict_write.c uses it to
 * write them. */
#define _POSIX_C_SOURCE 200809L
#include "load/verdict.h"

#include "base/hash.h"
#include "cache/depends.h"
#include "open/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The last character is the version of the format. It covers the fields and their meaning. */
const char verdict_magic[8] = { 'h', 'w', 'p', 'r', 'o', 'b', 'e', '8' };

_Static_assert(HW_OP_COUNT <= 64, "struct verdict has a bit for each op");

/* ---- moving the fields ---- */

#define MOVE(codec, field) (codec)->move((codec), &(field), sizeof(field))

/* Makes the text one line: control characters become spaces. */
static void one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = ' ';
}

/* Writes a longer text only in part. */
static bool move_bytes(struct verdict_codec *codec, char **text, size_t most)
{
    uint32_t length = *text ? (uint32_t)strnlen(*text, most - 1) : VERDICT_NO_TEXT;
    if (!MOVE(codec, length))
        return false;
    if (length == VERDICT_NO_TEXT)
        return true;
    if (codec->reads && (length >= most || !(*text = calloc(1, (size_t)length + 1))))
        return false;
    return codec->move(codec, *text, length) && !memchr(*text, '\0', length);
}

static bool move_text(struct verdict_codec *codec, char **text)
{
    const bool good = move_bytes(codec, text, VERDICT_TEXT);
    if (good && codec->reads && *text)
        one_line(*text);
    return good;
}

/* Moves the number of the items of a list. Returns the list, with room for one more; items that
 * are to be read are zeros. NULL: there are too many, or memory runs out. */
static void *move_count(struct verdict_codec *codec, void *list, uint32_t *count,
                        uint32_t most, size_t size)
{
    static char none;
    uint32_t moved = *count;
    if (!MOVE(codec, moved) || moved > most)
        return NULL;
    if (!codec->reads)
        return list ? list : &none;
    list = calloc((size_t)moved + 1, size);
    *count = list ? moved : 0;
    return list;
}

#define MOVE_LIST(codec, verdict, list, one, most)                                         \
    (((verdict)->list = move_count(codec, (verdict)->list, &(verdict)->one##_count, most,  \
                                   sizeof *(verdict)->list)) != NULL)

static bool move_devices(struct verdict_codec *codec, struct verdict *verdict)
{
    bool good = MOVE_LIST(codec, verdict, devices, device, MAX_DEVICES);
    for (uint32_t i = 0; i < verdict->device_count && good; i++)
        good = MOVE(codec, verdict->devices[i].info) &&
               move_text(codec, &verdict->devices[i].fault);
    return good;
}

static bool move_withdrawn(struct verdict_codec *codec, struct verdict *verdict)
{
    bool good = MOVE_LIST(codec, verdict, withdrawn, withdrawn, VERDICT_WITHDRAWN);
    for (uint32_t i = 0; i < verdict->withdrawn_count && good; i++) {
        struct withdrawn *one = &verdict->withdrawn[i];
        good = MOVE(codec, one->device) && MOVE(codec, one->op) && MOVE(codec, one->slow) &&
               MOVE(codec, one->dtype) && move_text(codec, &one->why);
    }
    return good;
}

static bool move_forms(struct verdict_codec *codec, struct verdict *verdict)
{
    bool good = MOVE_LIST(codec, verdict, forms, form, VERDICT_FORMS);
    for (uint32_t i = 0; i < verdict->form_count && good; i++)
        good = MOVE(codec, verdict->forms[i].op) && MOVE(codec, verdict->forms[i].dtype);
    const size_t size = good ? verdict_left_size(verdict) : 0;
    if (good && codec->reads)
        good = (verdict->left = calloc(1, size + 1)) != NULL;
    return good && codec->move(codec, verdict->left, size);
}

static bool move_left_out(struct verdict_codec *codec, struct verdict *verdict)
{
    bool good = MOVE_LIST(codec, verdict, left_out, left_out, LEFT_OUT_MAX);
    for (uint32_t i = 0; i < verdict->left_out_count && good; i++)
        good = move_text(codec, &verdict->left_out[i].name) &&
               move_text(codec, &verdict->left_out[i].why);
    return good;
}

bool verdict_move(struct verdict_codec *codec, struct verdict *verdict)
{
    uint32_t reason = verdict->reason, locked = verdict->locked;
    const bool good = MOVE(codec, reason) && move_text(codec, &verdict->message) &&
                      move_text(codec, &verdict->remedy) &&
                      move_text(codec, &verdict->version) &&
                      move_bytes(codec, &verdict->depends, DEPENDS_BYTES) &&
                      MOVE(codec, locked) && MOVE(codec, verdict->ops) &&
                      MOVE(codec, verdict->tested) && MOVE(codec, verdict->untested) &&
                      MOVE(codec, verdict->microseconds) && move_devices(codec, verdict) &&
                      move_withdrawn(codec, verdict) && move_forms(codec, verdict) &&
                      move_left_out(codec, verdict);
    verdict->reason = reason < REASON_COUNT ? (enum reason)reason : REASON_NONE;
    verdict->locked = locked;
    return good && reason < REASON_COUNT && locked <= 1;
}

/* ---- reading ---- */

struct reader {
    struct verdict_codec codec;
    const unsigned char *bytes;
    size_t left;
};

static bool read_bytes(struct verdict_codec *codec, void *to, size_t size)
{
    struct reader *reader = (struct reader *)codec;
    if (size > reader->left)
        return false;
    memcpy(to, reader->bytes, size);
    reader->bytes += size;
    reader->left -= size;
    return true;
}

static bool form_valid(uint32_t op, const int32_t dtype[MAX_OPERANDS])
{
    bool good = op < HW_OP_COUNT;
    for (int i = 0; i < MAX_OPERANDS && good; i++)
        good = dtype[i] >= 0 && dtype[i] < HW_DTYPE_END;
    return good;
}

static bool lists_valid(const struct verdict *verdict)
{
    bool good = true;
    uint64_t left = 0;
    for (uint32_t i = 0; i < verdict->device_count && good; i++) {
        const struct hw_device_info *info = &verdict->devices[i].info;
        good = info->size == sizeof *info && !device_fault(info);
    }
    for (uint32_t i = 0; i < verdict->withdrawn_count && good; i++) {
        const struct withdrawn *one = &verdict->withdrawn[i];
        good = one->device < verdict->device_count && form_valid(one->op, one->dtype) &&
               one->slow <= 1 && one->why;
    }
    for (uint32_t i = 0; i < verdict->form_count && good; i++)
        good = form_valid(verdict->forms[i].op, verdict->forms[i].dtype);
    for (size_t i = 0; i < verdict_left_size(verdict); i++)
        left += verdict->left[i];
    for (uint32_t i = 0; i < verdict->left_out_count && good; i++)
        good = verdict->left_out[i].name && verdict->left_out[i].why;
    return good && left <= verdict->untested;
}

static bool verdict_valid(const struct verdict *verdict)
{
    return (verdict->device_count == 0) == (verdict->reason != REASON_NONE) &&
           (verdict->version || verdict->reason) &&
           (HW_OP_COUNT == 64 || verdict->ops >> HW_OP_COUNT == 0) &&
           (!verdict->form_count || verdict->device_count) && lists_valid(verdict);
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
    return stated == size && sum == hash_add(HASH_START, bytes, size - VERDICT_TAIL);
}

bool verdict_decode(struct verdict *verdict, const unsigned char *bytes, size_t size)
{
    *verdict = (struct verdict){ 0 };
    errno = 0;
    if (!is_whole(bytes, size))
        return false;
    struct reader reader = { { read_bytes, true },
                             bytes + VERDICT_HEAD,
                             size - VERDICT_FRAME };
    if (verdict_move(&reader.codec, verdict) && !reader.left && verdict_valid(verdict))
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
