/* SPDX-License-Identifier: MIT */
/* config_value.c - parses the value of each setting. */
#include "settings/config_value.h"

#include "base/message.h"
#include "base/text.h"
#include "settings/config.h"

#include <stddef.h>
#include <string.h>

/* Parses a decimal integer of at most `limit`; false if there is none. */
static bool number_parse(const char *text, const char **end, uint64_t limit,
                         uint64_t *value)
{
    uint64_t sum = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(*p - '0'), &sum) || sum > limit)
            return false;
    }
    *end = p;
    *value = sum;
    return p != text;
}

/* "8G", "512M", "512 MiB", "1073741824": powers of 1024. */
static bool bytes_parse(const char *text, uint64_t *bytes)
{
    const char *end;
    if (!number_parse(text, &end, UINT64_MAX, bytes))
        return false;
    while (*end == ' ')
        end++;
    static const char units[] = "KMGT";
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    if (unit) {
        uint64_t factor = (uint64_t)1 << (10 * (unit - units + 1));
        if (__builtin_mul_overflow(*bytes, factor, bytes))
            return false;
        end += strcmp(end + 1, "iB") == 0 ? 3 : 1;
    }
    return *end == '\0' || strcmp(end, "B") == 0;
}

/* From 1 to `limit`. */
static bool whole_parse(const char *text, uint64_t limit, uint32_t *value)
{
    const char *end;
    uint64_t n;
    if (!number_parse(text, &end, limit, &n) || *end || n == 0)
        return false;
    *value = (uint32_t)n;
    return true;
}

/* The first control character, or NULL. */
static const char *control_character(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return text;
    return NULL;
}

bool config_is_line(const char *text)
{
    return strlen(text) < VALUE_BYTES && !control_character(text);
}

static enum hw_status line_check(enum setting setting, const char *text, const char *source)
{
    if (strlen(text) >= VALUE_BYTES)
        return fail(HW_INVALID, "%s: the value of %s has %zu bytes; at most %d are allowed",
                    source, setting_variables[setting], strlen(text), VALUE_BYTES - 1);
    const char *control = control_character(text);
    if (control)
        return fail(HW_INVALID,
                    "%s: the value of %s contains the control character 0x%02x; remove it",
                    source, setting_variables[setting], (unsigned char)*control);
    return HW_OK;
}

/* ---- the value of each setting ---- */

/* The form of a value: one of some words, whose index is kept; a number from 1 to a limit; or what
 * a function takes. Lists and paths have no row: the code that uses them checks them. */
struct row {
    const char *accepted; /* for the message */
    size_t field;         /* of struct settings, with 32 bits */
    const char *words[5];
    uint32_t limit;
    bool (*take)(struct settings *settings, const char *text); /* false: not a value */
};

static bool take_word(const struct row *row, const char *text, uint32_t *value)
{
    for (uint32_t i = 0; i < 5 && row->words[i]; i++)
        if (strcmp(text, row->words[i]) == 0) {
            *value = i;
            return true;
        }
    return false;
}

static bool take_memory_limit(struct settings *settings, const char *text)
{
    uint64_t bytes;
    if (!bytes_parse(text, &bytes))
        return false;
    settings->memory_limit = bytes;
    return true;
}

static bool take_cache_dir(struct settings *settings, const char *text)
{
    (void)settings;
    return *text == '/' || strcmp(text, "off") == 0;
}

static bool take_kernel(struct settings *settings, const char *text)
{
    (void)settings;
    return kernel_list_valid(text);
}

/* "1/100" */
static bool take_shadow(struct settings *settings, const char *text)
{
    settings->shadow = 0;
    return strcmp(text, "off") == 0 || (strncmp(text, "1/", 2) == 0 &&
                                        whole_parse(text + 2, 1000000, &settings->shadow));
}

#define FIELD(name) .field = offsetof(struct settings, name)
static const struct row rows[SETTING_COUNT] = {
    [SETTING_fallback] = { "allow, warn or error", FIELD(fallback),
                           .words = { "allow", "warn", "error" } },
    [SETTING_trust] = { "on or off", FIELD(trust), .words = { "off", "on" } },
    [SETTING_probe] = { "child, full or inproc", FIELD(probe),
                        .words = { "inproc", "child", "full" } },
    [SETTING_probe_timeout] = { "seconds, 1 to 3600", FIELD(probe_timeout), .limit = 3600 },
    [SETTING_threads] = { "a number of threads, 1 to 4096", FIELD(threads), .limit = 4096 },
    [SETTING_precision] = { "fp32, fp16 or int8", FIELD(precision),
                            .words = { "fp32", "fp16", "int8" } },
    [SETTING_memory_limit] = { "a number of bytes, with or without K, M, G or T: 8G",
                               .take = take_memory_limit },
    [SETTING_cache_dir] = { "an absolute path, or off", .take = take_cache_dir },
    [SETTING_kernel] = { "a list of portable, <row> or <op>=<row>, separated by commas",
                         .take = take_kernel },
    [SETTING_log] = { "off, error, warn, info or debug", FIELD(log_level),
                      .words = { "off", "error", "warn", "info", "debug" } },
    [SETTING_shadow] = { "off, or 1/N with N from 1 to 1000000: 1/100",
                         .take = take_shadow },
};

static bool take_value(const struct row *row, struct settings *settings, const char *text)
{
    uint32_t *field = (void *)((char *)settings + row->field);
    return row->take    ? row->take(settings, text)
           : row->limit ? whole_parse(text, row->limit, field)
                        : take_word(row, text, field);
}

enum hw_status config_apply(struct settings *settings, enum setting setting,
                            const char *text, const char *source)
{
    const struct row *row = &rows[setting];
    const enum hw_status status = line_check(setting, text, source);
    if (status || !*text || !row->accepted)
        return status;
    const bool good = take_value(row, settings, text);
    settings->trust = settings->trust || settings->elevated;
    return good ? HW_OK
                : fail(HW_INVALID, "%s: \"%.200s\" is not a value of %s; it must be %s",
                       source, text, setting_variables[setting], row->accepted);
}
