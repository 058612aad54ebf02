/* SPDX-License-Identifier: MIT */
/* json.c - JSON text that grows in a caller's buffer. It is valid whatever bytes a string
 * contains. */
#include "base/json.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put(struct json *json, const char *text, size_t length)
{
    if (json->length < json->size) {
        size_t room = json->size - json->length;
        memcpy(json->text + json->length, text, length < room ? length : room);
    }
    json->length += length;
}

static void put_text(struct json *json, const char *text)
{
    put(json, text, strlen(text));
}

static void put_escaped(struct json *json, const char *value)
{
    const unsigned char *s = (const unsigned char *)value;
    put_text(json, "\"");
    while (*s) {
        size_t length = utf8_length((const char *)s);
        char escape[8];
        if (length == 0) {
            put_text(json, "\xef\xbf\xbd"); /* U+FFFD, the replacement character */
            s++;
        } else if (*s == '"' || *s == '\\') {
            snprintf(escape, sizeof escape, "\\%c", *s++);
            put_text(json, escape);
        } else if (*s < 0x20 || *s == 0x7f) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*s++);
            put_text(json, escape);
        } else if (s[0] == 0xc2 && s[1] < 0xa0) { /* U+0080 to U+009F control terminals */
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)s[1]);
            put_text(json, escape);
            s += length;
        } else {
            put(json, (const char *)s, length);
            s += length;
        }
    }
    put_text(json, "\"");
}

static void put_key(struct json *json, const char *key)
{
    if (json->comma)
        put_text(json, ",");
    json->comma = true;
    if (!key)
        return;
    put_escaped(json, key);
    put_text(json, ":");
}

void json_open(struct json *json, const char *key, char bracket)
{
    put_key(json, key);
    put(json, &bracket, 1);
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    put(json, &bracket, 1);
    json->comma = true;
}

void json_string(struct json *json, const char *key, const char *value)
{
    put_key(json, key);
    if (value)
        put_escaped(json, value);
    else
        put_text(json, "null");
}

void json_number(struct json *json, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    put_key(json, key);
    put_text(json, text);
}

void json_signed(struct json *json, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_key(json, key);
    put_text(json, text);
}

void json_bool(struct json *json, const char *key, bool value)
{
    put_key(json, key);
    put_text(json, value ? "true" : "false");
}

size_t json_end(struct json *json)
{
    if (json->size)
        json->text[json->length < json->size ? json->length : json->size - 1] = '\0';
    return json->length;
}
