/* SPDX-License-Identifier: MIT */
/* manifest.c - parses the manifest: lines of key=value. hw/plugin.h describes the keys. */
#include "object/manifest.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_RANK 100

bool name_valid(const char *name, size_t length)
{
    if (length == 0 || length >= NAME_SIZE)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
            return false;
    }
    return true;
}

struct reading {
    struct manifest *manifest;
    bool has_abi, has_name, has_rank;
    char *why;
    size_t size;
};

static bool manifest_refuse(struct reading *reading, const char *what, const char *value)
{
    snprintf(reading->why, reading->size, "%s: \"%.100s\"", what, value);
    return false;
}

/* A decimal number of at most nine digits. */
static bool read_number(const char **text, uint32_t *value)
{
    size_t digits = strspn(*text, "0123456789");
    if (digits == 0 || digits > 9)
        return false;
    *value = 0;
    for (size_t i = 0; i < digits; i++)
        *value = *value * 10 + (uint32_t)((*text)[i] - '0');
    *text += digits;
    return true;
}

static bool read_abi(struct reading *reading, const char *value)
{
    struct manifest *manifest = reading->manifest;
    const char *text = value;
    if (reading->has_abi)
        return manifest_refuse(reading, "abi occurs twice", value);
    if (!read_number(&text, &manifest->abi_min) || *text++ != '-' ||
        !read_number(&text, &manifest->abi_max) || *text || manifest->abi_min == 0 ||
        manifest->abi_min > manifest->abi_max)
        return manifest_refuse(reading, "abi must be a range of versions, such as 1-1",
                               value);
    return reading->has_abi = true;
}

static bool read_name(struct reading *reading, const char *value)
{
    if (reading->has_name)
        return manifest_refuse(reading, "name occurs twice", value);
    if (!name_valid(value, strlen(value)))
        return manifest_refuse(
            reading, "name must be 1 to 31 characters of a-z, 0-9, _ and -", value);
    memcpy(reading->manifest->name, value, strlen(value) + 1);
    return reading->has_name = true;
}

static bool read_rank(struct reading *reading, const char *value)
{
    const char *text = value;
    uint32_t rank;
    if (reading->has_rank)
        return manifest_refuse(reading, "rank occurs twice", value);
    if (!read_number(&text, &rank) || *text || rank > 1000)
        return manifest_refuse(reading, "rank must be a number from 0 to 1000", value);
    reading->manifest->rank = (int32_t)rank;
    return reading->has_rank = true;
}

/* A name for display: one short line that is not blank. */
static bool read_title(struct reading *reading, const char *value)
{
    size_t length = strlen(value);
    if (*reading->manifest->title)
        return manifest_refuse(reading, "title occurs twice", value);
    if (length == 0 || length >= NAME_SIZE || value[0] == ' ' || value[length - 1] == ' ')
        return manifest_refuse(
            reading, "title must be 1 to 31 bytes without spaces around them", value);
    reading->manifest->title = value;
    return true;
}

static bool read_item(struct reading *reading, const char *key, const char *value,
                      const char **list, uint32_t *count, uint32_t room)
{
    if (!*value)
        return manifest_refuse(reading, "a value is missing", key);
    if (*count == room)
        return manifest_refuse(reading, "a key occurs too often", key);
    list[(*count)++] = value;
    return true;
}

static bool read_path(struct reading *reading, const char *value)
{
    return *value == '/' ||
           manifest_refuse(reading, "driver must be an absolute path", value);
}

/* Moves past four hexadecimal digits or '*'. */
static bool read_id(const char **text, int32_t *id)
{
    const char *p = *text;
    *id = -1;
    if (*p == '*') {
        *text = p + 1;
        return true;
    }
    if (strspn(p, "0123456789abcdefABCDEF") < 4)
        return false;
    *id = 0;
    for (int i = 0; i < 4; i++)
        *id = *id * 16 + (p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
    *text = p + 4;
    return true;
}

bool manifest_pci_rule(const char *rule, int32_t *vendor, int32_t *device)
{
    if (strncmp(rule, "pci:", 4) != 0)
        return false;
    rule += 4;
    return read_id(&rule, vendor) && *rule++ == ':' && read_id(&rule, device) && !*rule;
}

/* Rules of unknown kinds are from a later version and are ignored. */
static bool read_match(struct reading *reading, const char *value)
{
    int32_t vendor, device;
    if (strncmp(value, "pci:", 4) == 0)
        return manifest_pci_rule(value, &vendor, &device) ||
               manifest_refuse(
                   reading,
                   "match must be pci:VENDOR:DEVICE, each four hexadecimal digits or *",
                   value);
    return strncmp(value, "node:", 5) != 0 || value[5] == '/' ||
           manifest_refuse(reading, "match must be node: and an absolute path", value);
}

static bool read_pair(struct reading *reading, const char *key, const char *value)
{
    struct manifest *manifest = reading->manifest;
    if (strcmp(key, "abi") == 0)
        return read_abi(reading, value);
    if (strcmp(key, "name") == 0)
        return read_name(reading, value);
    if (strcmp(key, "rank") == 0)
        return read_rank(reading, value);
    if (strcmp(key, "title") == 0)
        return read_title(reading, value);
    if (strcmp(key, "match") == 0)
        return read_match(reading, value) && read_item(reading, key, value, manifest->match,
                                                       &manifest->match_count, MATCHES);
    if (strcmp(key, "needs") == 0)
        return read_item(reading, key, value, manifest->needs, &manifest->need_count,
                         NEEDS);
    if (strcmp(key, "driver") == 0)
        return read_path(reading, value) &&
               read_item(reading, key, value, manifest->drivers, &manifest->driver_count,
                         DRIVERS);
    if (strcmp(key, "variable") == 0)
        return read_item(reading, key, value, manifest->variables,
                         &manifest->variable_count, VARIABLES);
    if (strcmp(key, "vendor") == 0)
        manifest->vendor = value;
    else if (strcmp(key, "remedy") == 0)
        manifest->remedy = value;
    else if (strcmp(key, "build") == 0)
        manifest->build = value;
    return true; /* unknown keys are from a later version */
}

static bool read_line(struct reading *reading, char *line)
{
    for (const char *p = line; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return manifest_refuse(reading, "a line contains a control character", line);
    char *equals = strchr(line, '=');
    if (!equals)
        return manifest_refuse(reading, "a line has no =", line);
    *equals = '\0';
    return read_pair(reading, line, equals + 1);
}

bool manifest_parse(struct manifest *manifest, const char *text, size_t bytes, char *why,
                    size_t size)
{
    struct reading reading = { .manifest = manifest, .why = why, .size = size };
    *manifest = (struct manifest){
        .rank = DEFAULT_RANK, .title = "", .vendor = "", .remedy = "", .build = ""
    };
    while (bytes && text[bytes - 1] == '\0')
        bytes--; /* the note is padded */
    if (bytes >= MANIFEST_BYTES) {
        snprintf(why, size, "it has %zu bytes; at most %d are allowed", bytes,
                 MANIFEST_BYTES - 1);
        return false;
    }
    if (memchr(text, '\0', bytes) && !manifest_refuse(&reading, "a NUL byte follows", text))
        return false;
    memcpy(manifest->text, text, bytes);
    manifest->text[bytes] = '\0';

    for (char *line = manifest->text; line && *line;) {
        char *newline = strchr(line, '\n');
        if (newline)
            *newline++ = '\0';
        if (*line && !read_line(&reading, line))
            return false;
        line = newline;
    }
    if (!reading.has_abi || !reading.has_name) {
        snprintf(why, size, "it has no %s", reading.has_abi ? "name" : "abi");
        return false;
    }
    return true;
}
