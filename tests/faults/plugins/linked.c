/* SPDX-License-Identifier: MIT */
/* Linked with a library in its own directory: it has the rpath $ORIGIN. */
#define NAME "linked"
#define CHANGES
#include "minimal.h"

int of_friend(void);

static void change(struct hw_plugin *table)
{
    if (!of_friend())
        table->open = NULL;
}
