/* SPDX-License-Identifier: MIT */
/* profile.c - reads the bytes of a profile. They are text: a line, the key, and the rows.
 * profile.h describes them. Any bytes can be read safely: numbers and counts are bounded, and an
 * inconsistent profile is ignored. */
#include "open/profile.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const cost_class_names[CLASS_COUNT] = { "f32", "f16", "bf16", "blocks" };
const char *const cost_form_names[FORM_COUNT] = { "many", "one" };

static const char magic[] = "hw-profile 1 ";

enum { MAGIC_CHARS = sizeof magic - 1, HASH_CHARS = 16, NAME_CHARS = 64 };
#define AMOUNT_MAX (UINT64_C(1) << 60)
#define NS_MAX     UINT64_C(1000000000000) /* 1000 s */

static bool refuse(struct profile *profile, const char *why)
{
    const bool first = !profile->why[0];
    if (first)
        snprintf(profile->why, sizeof profile->why, "%s", why);
    return false;
}

/* ---- text ---- */

struct text {
    const char *at, *end;
};

static bool take(struct text *text, char wanted)
{
    const bool there = text->at < text->end && *text->at == wanted;
    text->at += there;
    return there;
}

static bool take_number(struct text *text, uint64_t most, uint64_t *value)
{
    const char *begin = text->at;
    uint64_t sum = 0;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(*text->at - '0'), &sum))
            return false;
    *value = sum;
    return text->at > begin && sum <= most;
}

/* Takes the text before the next blank. */
static bool take_word(struct text *text, char word[NAME_CHARS])
{
    size_t length = 0;
    while (text->at<text->end && * text->at> ' ' && *text->at < 0x7f &&
           length < NAME_CHARS - 1)
        word[length++] = *text->at++;
    word[length] = '\0';
    return length > 0 && take(text, ' ');
}

/* ---- rows ---- */

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

/* The row named "matmul/f32/many"; NULL if the op or the class is from a later version. */
static struct cost_row *op_row_named(struct profile *profile, const char *name)
{
    const char *class = strchr(name, '/'), *form = class ? strchr(class + 1, '/') : NULL;
    uint32_t op = 0, c = 0, f = 0;
    if (!form)
        return NULL;
    while (op < HW_OP_COUNT && !is_word(name, (size_t)(class - name), hw_op_name(op)))
        op++;
    while (c < CLASS_COUNT &&
           !is_word(class + 1, (size_t)(form - class - 1), cost_class_names[c]))
        c++;
    while (f < FORM_COUNT && strcmp(form + 1, cost_form_names[f]) != 0)
        f++;
    return op < HW_OP_COUNT && c < CLASS_COUNT && f < FORM_COUNT ? &profile->op[op][c][f]
                                                                 : NULL;
}

static struct cost_row *row_named(struct profile *profile, const char *name)
{
    return strcmp(name, "up") == 0     ? &profile->up
           : strcmp(name, "down") == 0 ? &profile->down
           : strcmp(name, "wait") == 0 ? &profile->wait
                                       : op_row_named(profile, name);
}

/* Rejects rows with a time of zero: the clock stood still when they were measured. */
static bool makes_sense(const struct cost_row *row)
{
    uint64_t amount = 0, ns = 0;
    for (uint32_t i = 0; i < row->count; i++) {
        if (row->at[i].amount <= amount || row->at[i].ns < ns)
            return false;
        amount = row->at[i].amount;
        ns = row->at[i].ns;
    }
    return row->base + ns > 0;
}

/* "<name> <base> <spread> <count> <amount>:<ns> ..." */
static bool take_row(struct text *text, struct profile *profile)
{
    struct cost_row read = { 0 };
    char name[NAME_CHARS];
    uint64_t spread, count;
    if (!take_word(text, name) || !take_number(text, NS_MAX, &read.base) ||
        !take(text, ' ') || !take_number(text, 1000000, &spread) || !take(text, ' ') ||
        !take_number(text, PROFILE_POINTS, &count))
        return false;
    for (read.count = 0; read.count < count; read.count++)
        if (!take(text, ' ') ||
            !take_number(text, AMOUNT_MAX, &read.at[read.count].amount) ||
            !take(text, ':') || !take_number(text, NS_MAX, &read.at[read.count].ns))
            return false;
    struct cost_row *row = row_named(profile, name);
    if (!take(text, '\n') || !makes_sense(&read) || (row && (row->base || row->count)))
        return false;
    if (row)
        *row = read;
    return true;
}

static bool take_rows(struct text *text, struct profile *profile)
{
    for (uint32_t rows = 0; text->at < text->end; rows++)
        if (rows == PROFILE_ROWS || !take_row(text, profile))
            return refuse(profile, "a row of it does not make sense");
    return true;
}

/* ---- the key ---- */

/* Names the line that differs: "driver 1.2" and "driver 1.3". */
static bool refuse_key(struct profile *profile, const char *was, size_t size,
                       const char *now)
{
    while (size > 0 && *now) {
        const char *end = memchr(was, '\n', size);
        const size_t length = end ? (size_t)(end - was) : size;
        const size_t own = strcspn(now, "\n");
        if (length != own || memcmp(was, now, own) != 0) {
            snprintf(profile->why, sizeof profile->why,
                     "it was measured with \"%.*s\", and now there is \"%.*s\"",
                     length < 150 ? (int)length : 150, was, own < 150 ? (int)own : 150,
                     now);
            break;
        }
        was += length + (end != NULL);
        size -= length + (end != NULL);
        now += own + (now[own] == '\n');
    }
    for (char *c = profile->why; *c; c++) /* the profile may contain any bytes */
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    return refuse(profile, "it was measured under other conditions");
}

/* ---- the file ---- */

static bool checksum_is_right(const char *data, size_t size)
{
    char text[HASH_CHARS + 1];
    const size_t head = MAGIC_CHARS + HASH_CHARS;
    snprintf(text, sizeof text, "%016" PRIx64,
             hash_add(HASH_START, data + head, size - head));
    return memcmp(data + MAGIC_CHARS, text, HASH_CHARS) == 0;
}

bool profile_parse(char *data, size_t size, const char *key, struct profile *profile)
{
    uint64_t written, key_bytes, row_bytes;
    memset(profile, 0, sizeof *profile);
    if (size < MAGIC_CHARS + HASH_CHARS || size > PROFILE_BYTES_MAX ||
        memcmp(data, magic, MAGIC_CHARS) != 0)
        return refuse(profile, "it is not a profile, or of another version");
    if (!checksum_is_right(data, size))
        return refuse(profile, "it is damaged: its checksum is wrong");
    struct text text = { data + MAGIC_CHARS + HASH_CHARS, data + size };
    if (!take(&text, ' ') || !take_number(&text, INT64_MAX, &written) || written == 0 ||
        !take(&text, ' ') || !take_number(&text, size, &key_bytes) || !take(&text, ' ') ||
        !take_number(&text, size, &row_bytes) || !take(&text, '\n') ||
        (uint64_t)(text.end - text.at) < key_bytes ||
        (uint64_t)(text.end - text.at) - key_bytes != row_bytes)
        return refuse(profile, "it is damaged: its lengths are wrong");
    if (strlen(key) != key_bytes || memcmp(text.at, key, key_bytes) != 0)
        return refuse_key(profile, text.at, (size_t)key_bytes, key);
    text.at += key_bytes;
    if (take_rows(&text, profile)) {
        profile->written = (int64_t)written;
        return true;
    }
    char why[PROFILE_WHY];
    memcpy(why, profile->why, sizeof why);
    memset(profile, 0, sizeof *profile);
    memcpy(profile->why, why, sizeof why);
    return false;
}
