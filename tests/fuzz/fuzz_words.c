/* SPDX-License-Identifier: MIT */
/* fuzz_words.c - lists of backends and devices of any text, and globs of it matched against
 * it. */
#include "base/text.h"
#include "open/selector.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct word_list list;
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    enum hw_status status = words_parse(&list, text, "fuzz");
    if (status && (list.words || list.count || !hw_message()[0]))
        abort();
    for (size_t i = 0; i < list.count; i++) {
        struct word *word = &list.words[i];
        if (!word->backend[0] || (word->device && !word->device[0]))
            abort();
        if (!is_glob(word->backend) && !glob(word->backend, word->backend))
            abort();
        if (word->device)
            (void)glob(word->device, text);
        (void)nearest(word->backend, (const char *const[]){ word->text, text, "cpu" }, 3);
    }
    words_free(&list);
    free(text);
    return 0;
}
