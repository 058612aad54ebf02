/* SPDX-License-Identifier: MIT */
/* variables.c - the environment variables of the application while a plugin starts. The plugin is
 * not blamed for changes: run-time libraries add variables of their own, and one library cuts the
 * list in a variable into parts in place. */
#define _POSIX_C_SOURCE 200809L
#include "settings/variables.h"

#include "base/alone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* "NAME=value" texts, one after the other. */
struct variables {
    size_t count;
    char texts[];
};

extern char **environ;

struct variables *variables_keep(void)
{
    size_t bytes = 1;
    for (char **entry = environ; entry && *entry; entry++)
        bytes += strlen(*entry) + 1;
    struct variables *variables = ALONE ? malloc(sizeof *variables + bytes) : NULL;
    if (!variables)
        return NULL;
    char *at = variables->texts;
    variables->count = 0;
    for (char **entry = environ; entry && *entry; entry++) {
        strcpy(at, *entry);
        at += strlen(at) + 1;
        variables->count++;
    }
    return variables;
}

/* Whether the environment has this variable with this value. */
static bool has_variable(const char *text)
{
    for (char **entry = environ; entry && *entry; entry++)
        if (strcmp(*entry, text) == 0)
            return true;
    return false;
}

void variables_restore(struct variables *variables)
{
    char *text = variables ? variables->texts : NULL;
    for (size_t i = 0; text && i < variables->count; i++) {
        const size_t length = strlen(text) + 1;
        char *equals = strchr(text, '=');
        if (!has_variable(text) && equals && equals != text) {
            *equals = '\0';
            setenv(text, equals + 1, 1);
        }
        text += length;
    }
    free(variables);
}
