/* SPDX-License-Identifier: MIT */
/* config_file.c - reads the configuration file: lines of key = value. */
#define _POSIX_C_SOURCE 200809L
#include "settings/config_file.h"

#include "base/message.h"
#include "base/text.h"
#include "load/trust.h"
#include "settings/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_FILE "configuration file %s: "
#define OTHER_FILE  "; correct it, or set HW_CONFIG to another file"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void text_trim(const char **text, size_t *length)
{
    while (*length && is_blank(**text)) {
        ++*text;
        --*length;
    }
    while (*length && is_blank((*text)[*length - 1]))
        --*length;
}

/* Finds the setting whose field has this name. */
static enum hw_status setting_find(const char *key, size_t length, const char *path,
                                   unsigned line, enum setting *setting)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), key);
    *setting = setting_named(setting_fields, name);
    if (*setting != SETTING_COUNT)
        return HW_OK;
    const char *near = nearest(name, setting_fields, SETTING_COUNT);
    return fail(HW_INVALID, "%s:%u: there is no setting \"%s\"; %s%s%s", path, line, name,
                near ? "did you mean \"" : "docs/settings.md lists them", near ? near : "",
                near ? "\"?" : "");
}

static enum hw_status line_parse(struct file_values *values, const char *text,
                                 size_t length, const char *path, unsigned line)
{
    enum setting setting;
    text_trim(&text, &length);
    if (length == 0 || *text == '#')
        return HW_OK;
    if (memchr(text, '\0', length))
        return fail(HW_INVALID, "%s:%u: a NUL byte; the file is not a text file", path,
                    line);
    const char *equals = memchr(text, '=', length);
    if (!equals)
        return fail(HW_INVALID, "%s:%u: \"%.*s\" does not have the form key = value", path,
                    line, (int)(length < 80 ? length : 80), text);
    const char *value = equals + 1;
    size_t key_length = (size_t)(equals - text), value_length = length - key_length - 1;
    text_trim(&text, &key_length);
    text_trim(&value, &value_length);
    const enum hw_status status = setting_find(text, key_length, path, line, &setting);
    if (status)
        return status;
    if (setting == SETTING_config)
        return fail(HW_INVALID,
                    "%s:%u: \"config\" is not allowed in a configuration file; remove the "
                    "line",
                    path, line);
    if (values->line[setting])
        return fail(HW_INVALID,
                    "%s:%u: \"%s\" is already set in line %u; remove one of the two", path,
                    line, setting_fields[setting], values->line[setting]);
    values->line[setting] = line;
    values->text[setting] = strndup(value, value_length);
    return values->text[setting] ? HW_OK
                                 : fail(HW_NO_MEMORY, "out of memory for the settings");
}

enum hw_status config_parse(struct file_values *values, const char *text, size_t bytes,
                            const char *path)
{
    const char *end = text + bytes;
    enum hw_status status = HW_OK;
    for (unsigned line = 1; text < end && !status; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop_at = newline ? newline : end;
        status = line_parse(values, text, (size_t)(stop_at - text), path, line);
        text = newline ? newline + 1 : end;
    }
    return status;
}

/* Reads at most `size` bytes; returns -1 on an error. */
static ssize_t file_read(int fd, char *text, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(fd, text + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

static enum hw_status file_parse(struct file_values *values, const char *path, int fd)
{
    char *text = malloc(CONFIG_FILE_BYTES + 1);
    if (!text)
        return fail(HW_NO_MEMORY, "out of memory for the settings");
    ssize_t bytes = file_read(fd, text, CONFIG_FILE_BYTES + 1);
    enum hw_status status;
    if (bytes < 0)
        status = fail(HW_IO, CONFIG_FILE "%s" OTHER_FILE, path, strerror(errno));
    else if (bytes > CONFIG_FILE_BYTES)
        status = fail(HW_INVALID, CONFIG_FILE "it is larger than %d bytes" OTHER_FILE, path,
                      CONFIG_FILE_BYTES);
    else
        status = config_parse(values, text, (size_t)bytes, path);
    free(text);
    return status;
}

static enum hw_status file_refused(const char *path, const struct distrust *why)
{
    const size_t length = strlen(path);
    const bool named = !strncmp(why->message, path, length) && why->message[length] == ':';
    switch (why->reason) {
    case REASON_NO_MEMORY:
        return fail(HW_NO_MEMORY, "out of memory for the settings");
    case REASON_UNTRUSTED_OWNER:
    case REASON_UNTRUSTED_MODE:
    case REASON_UNTRUSTED_PATH:
        return fail(HW_UNTRUSTED, CONFIG_FILE "%s. Remedy: %s", path, why->message,
                    reason_remedy(why->reason));
    default:
        return named ? fail(HW_IO, "configuration file %s" OTHER_FILE, why->message)
                     : fail(HW_IO, CONFIG_FILE "%s" OTHER_FILE, path, why->message);
    }
}

enum hw_status config_load(struct file_values *values, const char *path, bool trust)
{
    struct distrust why;
    int fd = trust_open(path, trust, NULL, &why);
    if (fd < 0)
        return file_refused(path, &why);
    enum hw_status status = file_parse(values, path, fd);
    close(fd);
    return status;
}

void file_values_free(struct file_values *values)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        free(values->text[i]);
}
