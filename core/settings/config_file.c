/* SPDX-License-Identifier: MIT */
/* config_file.c - reads the configuration file: lines of key = value. */
#define _POSIX_C_SOURCE 200809L
#include "settings/config_file.h"

#include "base/message.h"
#include "base/text.h"
#include "load/trust.h"
#include "settings/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_FILE "configuration file %s: "
#define OTHER_FILE  "; correct it, or set HW_CONFIG to another file"

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void trim(const char **text, size_t *length)
{
    while (*length && blank(**text)) {
        ++*text;
        --*length;
    }
    while (*length && blank((*text)[*length - 1]))
        --*length;
}

static enum hw_status unknown_key(const char *key, size_t length, const char *path,
                                  unsigned line)
{
    char name[64];
    size_t kept = length < sizeof name - 1 ? length : sizeof name - 1;
    memcpy(name, key, kept);
    name[kept] = '\0';
    const char *near = nearest(name, setting_fields, SETTING_COUNT);
    return fail(HW_INVALID, "%s:%u: there is no setting \"%s\"; %s%s%s", path, line, name,
                near ? "did you mean \"" : "docs/settings.md lists them", near ? near : "",
                near ? "\"?" : "");
}

static enum hw_status parse_line(struct file_values *values, const char *text,
                                 size_t length, const char *path, unsigned line)
{
    trim(&text, &length);
    if (length == 0 || *text == '#')
        return HW_OK;
    if (memchr(text, '\0', length))
        return fail(HW_INVALID, "%s:%u: a NUL byte; the file is not a text file", path,
                    line);
    const char *equals = memchr(text, '=', length);
    if (!equals)
        return fail(HW_INVALID, "%s:%u: \"%.*s\" does not have the form key = value", path,
                    line, (int)(length < 80 ? length : 80), text);

    const char *key = text, *value = equals + 1;
    size_t key_length = (size_t)(equals - text), value_length = length - key_length - 1;
    trim(&key, &key_length);
    trim(&value, &value_length);
    int setting = 0;
    while (setting < SETTING_COUNT &&
           (strlen(setting_fields[setting]) != key_length ||
            memcmp(setting_fields[setting], key, key_length) != 0))
        setting++;
    if (setting == SETTING_COUNT)
        return unknown_key(key, key_length, path, line);
    if (setting == SETTING_config)
        return fail(
            HW_INVALID,
            "%s:%u: \"config\" is not allowed in a configuration file; remove the line",
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
        status = parse_line(values, text, (size_t)(stop_at - text), path, line);
        text = newline ? newline + 1 : end;
    }
    return status;
}

/* Reads at most `size` bytes; returns -1 on an error. */
static ssize_t read_all(int fd, char *text, size_t size)
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

static enum hw_status load_open(struct file_values *values, const char *path, int fd)
{
    char *text = malloc(CONFIG_FILE_BYTES + 1);
    if (!text)
        return fail(HW_NO_MEMORY, "out of memory for the settings");
    ssize_t bytes = read_all(fd, text, CONFIG_FILE_BYTES + 1);
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

static enum hw_status not_opened(const char *path, const struct distrust *why)
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
                    reason_rows[why->reason].remedy);
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
        return not_opened(path, &why);
    enum hw_status status = load_open(values, path, fd);
    close(fd);
    return status;
}

void file_values_free(struct file_values *values)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        free(values->text[i]);
}
