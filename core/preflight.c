/* SPDX-License-Identifier: MIT */
/* preflight.c - stage 3, preflight: what reading the file shows. */
#include "ladder.h"

#include <stdio.h>
#include <stdlib.h>

bool preflight(struct hw_context *context, struct candidate *candidate)
{
    (void)context;
    char text[128], why[128];
    int n = snprintf(text, sizeof text, "abi=1-1\nname=%s\n", candidate->name);
    candidate->manifest = calloc(1, sizeof *candidate->manifest);
    return candidate->manifest &&
           manifest_parse(candidate->manifest, text, (size_t)n, why, sizeof why);
}
