/* SPDX-License-Identifier: MIT */
/* selector.c - lists of backends and devices: docs/settings.md has the grammar. */
#define _POSIX_C_SOURCE 200809L
#include "open/selector.h"

#include "base/message.h"
#include "open/candidate.h"
#include "open/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAMMAR                                                                            \
    "an entry is [!]backend[:device][?], where device is an index, a PCI address, a UUID " \
    "or a pattern of names or vendors with *; commas separate entries"

static enum hw_status bad_selector(const char *source, const char *text, size_t length,
                                   const char *what)
{
    return fail(HW_INVALID, "%s: \"%.*s\": %s; %s", source,
                (int)(length < 200 ? length : 200), text, what, GRAMMAR);
}

static bool backend_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-' || c == '*' || c == '?';
}

/* Reads "=60" at the end of an entry, and cuts it off. False if it is not a number of seconds. */
static bool cut_seconds(struct selector *selector, const char *text, size_t *length)
{
    const char *equals = memchr(text, '=', *length), *end = text + *length;
    uint32_t seconds = 0;
    selector->seconds = CALL_SECONDS;
    if (!equals)
        return true;
    for (const char *digit = equals + 1; digit < end && seconds <= 86400; digit++) {
        if (*digit < '0' || *digit > '9')
            return false;
        seconds = 10 * seconds + (uint32_t)(*digit - '0');
    }
    selector->seconds = seconds;
    *length = (size_t)(equals - text);
    return equals + 1 < end && seconds <= 86400;
}

static enum hw_status parse_selector(struct selector *selector, const char *text,
                                     size_t length, const char *source, unsigned accepted)
{
    const char *whole = text;
    size_t whole_length = length;
    if (length && *text == '!') {
        selector->removes = true;
        text++;
        length--;
    }
    if (length && text[length - 1] == '?') {
        selector->optional = true;
        length--;
    }
    if (!(accepted & ACCEPT_MARKS) && length < whole_length)
        return bad_selector(source, whole, whole_length,
                            "! and ? are allowed in HW_BACKENDS only");
    if (accepted & ACCEPT_SECONDS && !cut_seconds(selector, text, &length))
        return bad_selector(source, whole, whole_length,
                            "the seconds of a call must be 0 to 86400");
    if (length == 0)
        return bad_selector(source, whole, whole_length, "an entry is empty");
    const char *colon = memchr(text, ':', length);
    size_t backend = colon ? (size_t)(colon - text) : length;
    if (backend == 0)
        return bad_selector(source, whole, whole_length, "the backend is missing");
    for (size_t i = 0; i < backend; i++)
        if (!backend_character(text[i]))
            return bad_selector(
                source, whole, whole_length,
                "the name of a backend consists of letters, digits, _ and -");
    if (colon && !(accepted & ACCEPT_DEVICE))
        return fail(HW_INVALID,
                    "%s: \"%.*s\": must be a backend; to exclude a device, write !%.*s in "
                    "HW_BACKENDS",
                    source, (int)length, text, (int)length, text);
    if (colon && backend + 1 == length)
        return bad_selector(source, whole, whole_length,
                            "the device is missing after the colon");
    selector->text = strndup(text, length);
    selector->backend = strndup(text, backend);
    selector->device = colon ? strndup(colon + 1, length - backend - 1) : NULL;
    if (!selector->text || !selector->backend || (colon && !selector->device))
        return fail(HW_NO_MEMORY, "out of memory for %s", source);
    return HW_OK;
}

static enum hw_status add_selector(struct selector_list *list, const char *text,
                                   size_t length, const char *source, unsigned accepted)
{
    if (list->count == MAX_SELECTORS)
        return fail(HW_INVALID, "%s: more than %d entries", source, MAX_SELECTORS);
    while (length && *text == ' ') {
        text++;
        length--;
    }
    while (length && text[length - 1] == ' ')
        length--;
    return parse_selector(&list->items[list->count++], text, length, source, accepted);
}

enum hw_status selectors_parse(struct selector_list *list, const char *text,
                               const char *source, unsigned accepted)
{
    *list = (struct selector_list){ .items = calloc(MAX_SELECTORS, sizeof *list->items) };
    if (!list->items)
        return fail(HW_NO_MEMORY, "out of memory for %s", source);
    enum hw_status status = HW_OK;
    while (!status && *text) {
        size_t length = strcspn(text, ",");
        status = add_selector(list, text, length, source, accepted);
        text += length;
        if (*text == ',' && !*++text && !status)
            status = fail(HW_INVALID, "%s: no entry follows the last comma; %s", source,
                          GRAMMAR);
    }
    if (status)
        selectors_free(list);
    return status;
}

void selectors_free(struct selector_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].text);
        free(list->items[i].backend);
        free(list->items[i].device);
    }
    free(list->items);
    *list = (struct selector_list){ 0 };
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool glob(const char *pattern, const char *text)
{
    /* On a mismatch, only the last * needs to take one more character. */
    const char *star = NULL, *taken = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            taken = text;
        } else if (*pattern && (*pattern == '?' || lower(*pattern) == lower(*text))) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++taken;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool is_glob(const char *pattern)
{
    return strpbrk(pattern, "*?") != NULL;
}

/* Whether the pattern matches: an index, a PCI address with or without the domain 0000, a UUID with
 * or without the prefix "GPU-", or a glob for names or vendors. */
static bool device_matches(const char *pattern, const struct hw_device *device)
{
    if (strspn(pattern, "0123456789") == strlen(pattern)) {
        char index[16];
        snprintf(index, sizeof index, "%d", device->index);
        return strcmp(pattern, index) == 0;
    }
    char pci[PCI_SIZE], uuid[UUID_SIZE];
    device_pci(&device->info, pci);
    device_uuid(&device->info, uuid);
    const char *bare = strncmp(pattern, "GPU-", 4) == 0 ? pattern + 4 : pattern;
    return (*pci && glob(pattern, pci)) ||
           (strncmp(pci, "0000:", 5) == 0 && glob(pattern, pci + 5)) ||
           (*uuid && glob(bare, uuid)) || glob(pattern, device->info.name) ||
           glob(pattern, device->info.vendor);
}

bool selector_matches(const struct selector *selector, const struct hw_device *device)
{
    return glob(selector->backend, device->plugin->candidate->name) &&
           (!selector->device || device_matches(selector->device, device));
}
