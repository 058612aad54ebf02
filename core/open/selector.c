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

#define GRAMMAR                                                                                 \
    "an entry is [!]backend[:device][?], where device is an index, a PCI address, a UUID "      \
    "or a pattern of names or vendors with *, in HW_WORKER backend[=seconds]; commas separate " \
    "entries"

/* An entry as it is parsed, and the list around it. */
struct entry {
    const char *text;
    size_t length;
    const char *source;
    unsigned accepted;
};

static enum hw_status entry_fault(const struct entry *entry, const char *why)
{
    return fail(HW_INVALID, "%s: \"%.*s\": %s; %s", entry->source,
                (int)(entry->length < 200 ? entry->length : 200), entry->text, why,
                GRAMMAR);
}

static bool is_backend_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-' || c == '*' || c == '?';
}

static bool is_backend(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_backend_character(text[i]))
            return false;
    return true;
}

/* Reads "=60" at the end of an entry, and cuts it off. False if it is not a number of seconds. */
static bool seconds_cut(struct selector *selector, const char *text, size_t *length)
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

static enum hw_status selector_parse(struct selector *selector, const struct entry *entry)
{
    const char *text = entry->text;
    size_t length = entry->length;
    selector->removes = length && *text == '!';
    text += selector->removes;
    length -= selector->removes;
    selector->optional = length && text[length - 1] == '?';
    length -= selector->optional;
    if (!(entry->accepted & ACCEPT_MARKS) && length < entry->length)
        return entry_fault(entry, "! and ? are allowed in HW_BACKENDS only");
    if (entry->accepted & ACCEPT_SECONDS && !seconds_cut(selector, text, &length))
        return entry_fault(entry, "the seconds of a call must be 0 to 86400");
    if (length == 0)
        return entry_fault(entry, "an entry is empty");
    const char *colon = memchr(text, ':', length);
    const size_t backend = colon ? (size_t)(colon - text) : length;
    if (backend == 0)
        return entry_fault(entry, "the backend is missing");
    if (!is_backend(text, backend))
        return entry_fault(entry,
                           "the name of a backend consists of letters, digits, _ and -");
    if (colon && !(entry->accepted & ACCEPT_DEVICE))
        return fail(HW_INVALID,
                    "%s: \"%.*s\": must be a backend; to exclude a device, write !%.*s in "
                    "HW_BACKENDS",
                    entry->source, (int)length, text, (int)length, text);
    if (backend + 1 == length && colon)
        return entry_fault(entry, "the device is missing after the colon");
    selector->text = strndup(text, length);
    selector->backend = strndup(text, backend);
    if (!selector->text || !selector->backend)
        return fail(HW_NO_MEMORY, "out of memory for %s", entry->source);
    selector->device = colon ? selector->text + backend + 1 : NULL;
    return HW_OK;
}

static enum hw_status selectors_add(struct selector_list *list, struct entry entry)
{
    if (list->count == MAX_SELECTORS)
        return fail(HW_INVALID, "%s: more than %d entries", entry.source, MAX_SELECTORS);
    for (; entry.length && *entry.text == ' '; entry.length--)
        entry.text++;
    while (entry.length && entry.text[entry.length - 1] == ' ')
        entry.length--;
    return selector_parse(&list->items[list->count++], &entry);
}

static bool only_removes(const struct selector_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].removes)
            return false;
    return true;
}

enum hw_status selectors_parse(struct selector_list *list, const char *text,
                               const char *source, unsigned accepted)
{
    *list = (struct selector_list){ .items = calloc(MAX_SELECTORS, sizeof *list->items) };
    if (!list->items)
        return fail(HW_NO_MEMORY, "out of memory for %s", source);
    enum hw_status status = HW_OK;
    while (!status && *text) {
        const size_t length = strcspn(text, ",");
        status = selectors_add(list, (struct entry){ text, length, source, accepted });
        text += length;
        if (*text == ',' && !*++text && !status)
            status = fail(HW_INVALID, "%s: no entry follows the last comma; %s", source,
                          GRAMMAR);
    }
    if (!status && accepted & ACCEPT_MARKS && only_removes(list))
        status = selectors_add(list, (struct entry){ "*", 1, source, accepted });
    if (status)
        selectors_free(list);
    return status;
}

void selectors_free(struct selector_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].text);
        free(list->items[i].backend);
    }
    free(list->items);
    *list = (struct selector_list){ 0 };
}

static char lower_case(char c)
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
        } else if (*pattern &&
                   (*pattern == '?' || lower_case(*pattern) == lower_case(*text))) {
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

const struct selector *selectors_find(const struct selector_list *list, const char *backend)
{
    for (size_t i = 0; i < list->count; i++)
        if (glob(list->items[i].backend, backend))
            return &list->items[i];
    return NULL;
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
