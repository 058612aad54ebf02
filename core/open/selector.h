/* SPDX-License-Identifier: MIT */
/* selector.h - the grammar of HW_BACKENDS: see docs/settings.md. */
#ifndef HW_OPEN_SELECTOR_H
#define HW_OPEN_SELECTOR_H

#include "core.h"

/* An entry of a list: [!]backend[:device][?]. */
struct selector {
    char *text;    /* as written, without ! and ? */
    char *backend; /* a glob */
    char *device;  /* an index, a PCI address, a UUID or a glob; NULL: all */
    bool removes;
    bool optional;
};

#define MAX_SELECTORS 64

struct selector_list {
    struct selector *items;
    size_t count;
};

/* The message of HW_INVALID has the source, the entry and the grammar; the list is then
 * empty. */
enum hw_status selectors_parse(struct selector_list *list, const char *text,
                               const char *source);
void selectors_free(struct selector_list *list);
/* Whether `*` (any text) and `?` (any character) match, ignoring the case of ASCII letters.
 */
bool glob(const char *pattern, const char *text);
bool is_glob(const char *pattern);
bool selector_matches(const struct selector *selector, const struct hw_device *device);

#endif
