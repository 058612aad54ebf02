/* SPDX-License-Identifier: MIT */
/* selector.h - the grammar of HW_BACKENDS and its relatives: see docs/settings.md. */
#ifndef HW_OPEN_SELECTOR_H
#define HW_OPEN_SELECTOR_H

#include "core.h"

/* An entry of a list: [!]backend[:device][?], in HW_WORKER backend[=seconds]. */
struct selector {
    char *text;         /* as written, without !, ? and =seconds */
    char *backend;      /* a glob */
    const char *device; /* an index, a PCI address, a UUID or a glob; NULL: all */
    bool removes;
    bool optional;
    uint32_t seconds; /* that one call may take; 0: no limit */
};

#define MAX_SELECTORS 64
#define CALL_SECONDS  300 /* of an entry of HW_WORKER without seconds */

struct selector_list {
    struct selector *items;
    size_t count;
};

/* The parts of the grammar that some lists do not accept. A list that accepts ! and has only
 * entries with ! gets an entry * at its end. */
enum { ACCEPT_DEVICE = 1, ACCEPT_MARKS = 2 /* ! and ? */, ACCEPT_SECONDS = 4 };

/* The message of HW_INVALID has the source, the entry and the grammar; the list is then empty.
 * `accepted`: the bits above. */
enum hw_status selectors_parse(struct selector_list *list, const char *text,
                               const char *source, unsigned accepted);
void selectors_free(struct selector_list *list);
/* The first entry whose glob matches the name of a backend; or NULL. */
const struct selector *selectors_find(const struct selector_list *list,
                                      const char *backend);
/* Whether `*` (any text) and `?` (any character) match, ignoring the case of ASCII letters. */
bool glob(const char *pattern, const char *text);
bool is_glob(const char *pattern);
bool selector_matches(const struct selector *selector, const struct hw_device *device);

#endif
