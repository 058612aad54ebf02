/* SPDX-License-Identifier: MIT */
/* config_value.c - parses the value of each setting. */
#include "settings/config_value.h"

#include "base/message.h"
#include "base/text.h"
#include "settings/config.h"

#include <string.h>

static enum hw_status bad(const char *source, enum setting setting, const char *text,
                          const char *right)
{
    return fail(HW_INVALID, "%s: \"%.200s\" is not a value of %s; it must be %s", source,
                text, setting_variables[setting], right);
}

/* The index of `text` in the NULL-terminated list, or -1. */
static int32_t choice(const char *text, const char *const *list)
{
    for (int32_t i = 0; list[i]; i++)
        if (strcmp(text, list[i]) == 0)
            return i;
    return -1;
}

/* Parses a decimal integer of at most `limit`; false if there is none. */
static bool number(const char *text, const char **end, uint64_t limit, uint64_t *value)
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
static bool byte_count(const char *text, uint64_t *bytes)
{
    const char *end;
    if (!number(text, &end, UINT64_MAX, bytes))
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
static bool whole_number(const char *text, uint64_t limit, uint32_t *value)
{
    const char *end;
    uint64_t n;
    if (!number(text, &end, limit, &n) || *end || n == 0)
        return false;
    *value = (uint32_t)n;
    return true;
}

bool config_trust_off(const char *text)
{
    return strcmp(text, "off") == 0;
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

static enum hw_status one_line(enum setting setting, const char *text, const char *source)
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

static bool take_fallback(struct settings *settings, const char *text)
{
    const int32_t picked = choice(text,
                                  (const char *const[]){ "allow", "warn", "error", NULL });
    settings->fallback = (enum fallback_mode)(picked < 0 ? FALLBACK_WARN : picked);
    return picked >= 0;
}

static bool take_trust(struct settings *settings, const char *text)
{
    const int32_t picked = choice(text, (const char *const[]){ "off", "on", NULL });
    settings->trust = picked != 0 || settings->elevated;
    return picked >= 0;
}

static bool take_probe(struct settings *settings, const char *text)
{
    const int32_t picked = choice(text,
                                  (const char *const[]){ "inproc", "child", "full", NULL });
    settings->probe_child = picked >= 1;
    settings->probe_full = picked == 2;
    return picked >= 0;
}

static bool take_probe_timeout(struct settings *settings, const char *text)
{
    return whole_number(text, 3600, &settings->probe_timeout);
}

static bool take_threads(struct settings *settings, const char *text)
{
    return whole_number(text, 4096, &settings->threads);
}

static bool take_precision(struct settings *settings, const char *text)
{
    const int32_t picked = choice(text,
                                  (const char *const[]){ "fp32", "fp16", "int8", NULL });
    settings->precision = (enum hw_precision)(picked < 0 ? 0 : picked);
    return picked >= 0;
}

static bool take_memory_limit(struct settings *settings, const char *text)
{
    return byte_count(text, &settings->memory_limit);
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
                                        whole_number(text + 2, 1000000, &settings->shadow));
}

static bool take_log(struct settings *settings, const char *text)
{
    const int32_t picked = choice(
        text, (const char *const[]){ "off", "error", "warn", "info", "debug", NULL });
    settings->log_level = picked < 0 ? HW_LOG_WARN : picked;
    return picked >= 0;
}

/* Lists and paths have no row: the code that uses them checks them. */
static const struct {
    bool (*take)(struct settings *settings, const char *text); /* false: not a value */
    const char *accepted;
} rows[SETTING_COUNT] = {
    [SETTING_fallback] = { take_fallback, "allow, warn or error" },
    [SETTING_trust] = { take_trust, "on or off" },
    [SETTING_probe] = { take_probe, "child, full or inproc" },
    [SETTING_probe_timeout] = { take_probe_timeout, "seconds, 1 to 3600" },
    [SETTING_threads] = { take_threads, "a number of threads, 1 to 4096" },
    [SETTING_precision] = { take_precision, "fp32, fp16 or int8" },
    [SETTING_memory_limit] = { take_memory_limit,
                               "a number of bytes, with or without K, M, G or T: 8G" },
    [SETTING_cache_dir] = { take_cache_dir, "an absolute path, or off" },
    [SETTING_kernel] = { take_kernel,
                         "a list of portable, <row> or <op>=<row>, separated by commas" },
    [SETTING_log] = { take_log, "off, error, warn, info or debug" },
    [SETTING_shadow] = { take_shadow, "off, or 1/N with N from 1 to 1000000: 1/100" },
};

enum hw_status config_apply(struct settings *settings, enum setting setting,
                            const char *text, const char *source)
{
    const enum hw_status status = one_line(setting, text, source);
    if (status || !*text)
        return status;
    return !rows[setting].take || rows[setting].take(settings, text)
               ? HW_OK
               : bad(source, setting, text, rows[setting].accepted);
}
