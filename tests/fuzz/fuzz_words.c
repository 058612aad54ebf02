/* SPDX-License-Identifier: MIT */
/* fuzz_words.c - backend and device lists of arbitrary text, and their globs matched
 * against the same text. */
#include "base/text.h"
#include "open/selector.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct selector_list list;
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    enum hw_status status = selectors_parse(&list, text, "fuzz", size & 7);
    if (status && (list.items || list.count || !hw_message()[0]))
        abort();
    for (size_t i = 0; i < list.count; i++) {
        struct selector *selector = &list.items[i];
        if (!selector->backend[0] || (selector->device && !selector->device[0]))
            abort();
        if (!is_glob(selector->backend) && !glob(selector->backend, selector->backend))
            abort();
        if (selector->device)
            (void)glob(selector->device, text);
        (void)nearest(selector->backend,
                      (const char *const[]){ selector->text, text, "cpu" }, 3);
    }
    selectors_free(&list);
    free(text);
    return 0;
}
