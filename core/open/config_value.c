/* SPDX-License-Identifier: MIT */
/* config_value.c - what the value of each setting may be, and what it means. */
#include "open/config_value.h"

#include "base/message.h"
#include "open/config.h"

#include <string.h>

static enum hw_status bad(const char *source, enum setting setting, const char *text,
                          const char *right)
{
    return fail(HW_INVALID, "%s: \"%.200s\" is no value of %s; right would be %s", source,
                text, setting_variables[setting], right);
}

/* The position of `text` in the NULL-terminated list, or -1. */
static int32_t choice(const char *text, const char *const *list)
{
    for (int32_t i = 0; list[i]; i++)
        if (strcmp(text, list[i]) == 0)
            return i;
    return -1;
}

/* A whole decimal number of at most `limit`; false for anything else. */
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

static enum hw_status apply_number(enum setting setting, const char *text,
                                   const char *source, uint64_t limit, const char *right,
                                   uint32_t *value)
{
    const char *end;
    uint64_t n;
    if (!number(text, &end, limit, &n) || *end || n == 0)
        return bad(source, setting, text, right);
    *value = (uint32_t)n;
    return HW_OK;
}

static enum hw_status apply_choice(enum setting setting, const char *text,
                                   const char *source, const char *const *list,
                                   const char *right, int32_t *value)
{
    int32_t found = choice(text, list);
    if (found < 0)
        return bad(source, setting, text, right);
    *value = found;
    return HW_OK;
}

/* "portable", "<row>" or "<op>=<row>", commas between them. Which rows there are is known
 * to each device only, when it is opened. */
static bool kernel_rows(const char *text)
{
    for (bool more = true; more;) {
        size_t length = strcspn(text, ","), equals = strcspn(text, "=,");
        bool known = equals == length;
        for (uint32_t op = 0; op < HW_OP_COUNT && !known; op++)
            known = strlen(hw_op_name(op)) == equals &&
                    memcmp(hw_op_name(op), text, equals) == 0;
        if (!known || length == 0 || equals + 1 == length)
            return false;
        more = text[length] == ',';
        text += length + more;
    }
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
        return fail(HW_INVALID, "%s: a value of %s has at most %d bytes, this one %zu",
                    source, setting_variables[setting], VALUE_BYTES - 1, strlen(text));
    const char *control = control_character(text);
    if (control)
        return fail(HW_INVALID,
                    "%s: control character 0x%02x in the value of %s; write it on "
                    "one line of text",
                    source, (unsigned char)*control, setting_variables[setting]);
    return HW_OK;
}

enum hw_status config_apply(struct settings *settings, enum setting setting,
                            const char *text, const char *source)
{
    static const char *const fallbacks[] = { "allow", "warn", "error", NULL };
    static const char *const switches[] = { "off", "on", NULL };
    static const char *const probes[] = { "child", "inproc", NULL };
    static const char *const precisions[] = { "fp32", "fp16", "int8", NULL };
    static const char *const levels[] = { "off", "error", "warn", "info", "debug", NULL };

    int32_t picked = 0;
    enum hw_status status = one_line(setting, text, source);
    if (status || !*text)
        return status;
    switch (setting) {
    case SETTING_fallback:
        status = apply_choice(setting, text, source, fallbacks, "allow, warn or error",
                              &picked);
        if (!status)
            settings->fallback = (enum fallback_mode)picked;
        return status;
    case SETTING_trust:
        status = apply_choice(setting, text, source, switches, "on or off", &picked);
        if (!status)
            settings->trust = picked == 1 || settings->elevated;
        return status;
    case SETTING_probe:
        return apply_choice(setting, text, source, probes, "child or inproc", &picked);
    case SETTING_precision:
        status = apply_choice(setting, text, source, precisions, "fp32, fp16 or int8",
                              &picked);
        if (!status)
            settings->precision = (enum hw_precision)picked;
        return status;
    case SETTING_log:
        return apply_choice(setting, text, source, levels,
                            "off, error, warn, info or debug", &settings->log_level);
    case SETTING_probe_timeout:
        status = apply_number(setting, text, source, 3600, "seconds, 1 to 3600",
                              &settings->probe_timeout_ms);
        if (!status)
            settings->probe_timeout_ms *= 1000;
        return status;
    case SETTING_threads:
        return apply_number(setting, text, source, 4096, "a number of threads, 1 to 4096",
                            &settings->threads);
    case SETTING_memory_limit:
        if (!byte_count(text, &settings->memory_limit))
            return bad(source, setting, text,
                       "bytes, or a whole number with K, M, G or T: 8G");
        return HW_OK;
    case SETTING_cache_dir:
        return *text == '/' || strcmp(text, "off") == 0
                   ? HW_OK
                   : bad(source, setting, text, "an absolute path, or off");
    case SETTING_kernel:
        return kernel_rows(text)
                   ? HW_OK
                   : bad(source, setting, text,
                         "portable, <row> or <op>=<row>, commas between them");
    default: /* lists, paths and row names are read by those who use them */
        return HW_OK;
    }
}
