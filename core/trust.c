/* SPDX-License-Identifier: MIT */
/* trust.c - stage 2, trust: who could have written the file. */
#define _DEFAULT_SOURCE
#include "ladder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

bool trust_check(struct hw_context *context, struct candidate *candidate)
{
    (void)context;
    candidate->real = realpath(candidate->path, NULL);
    candidate->fd = open(candidate->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (!candidate->real || candidate->fd < 0)
        return stop(candidate, REASON_UNREADABLE, "can not be read: %s", strerror(errno));
    return true;
}
