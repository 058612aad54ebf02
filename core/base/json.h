/* SPDX-License-Identifier: MIT */
/* json.h - JSON text in a caller's buffer, with the length rules of snprintf(); see hw_explain().
 * Bytes that are not UTF-8 become U+FFFD. */
#ifndef HW_BASE_JSON_H
#define HW_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
    char *text;
    size_t size, length;
    bool comma;
};

/* `bracket` is '{' or '['. In all of these functions `key` may be NULL. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
/* Escapes the value; NULL becomes null. */
void json_string(struct json *json, const char *key, const char *value);
void json_number(struct json *json, const char *key, uint64_t value);
void json_signed(struct json *json, const char *key, int64_t value);
void json_bool(struct json *json, const char *key, bool value);
/* Terminates the text. Returns its length without the terminator. */
size_t json_end(struct json *json);

#endif
