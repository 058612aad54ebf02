/* SPDX-License-Identifier: MIT */
/* answers.h - checks of a call's status and message, for tests, which include it after cmocka.h. */
#ifndef STANDIN_ANSWERS_H
#define STANDIN_ANSWERS_H

#include <hw/hw.h>
#include <hw/report.h>

#include <string.h>

/* Fails the test, with the message, unless the call succeeded. */
static inline void ok(enum hw_status status)
{
    if (status)
        fail_msg("%s: %s", hw_status_name((int32_t)status), hw_message());
}

/* Fails the test unless the call failed with this status and a message that contains these
 * words. */
static inline void fails(enum hw_status wanted, const char *words, enum hw_status status)
{
    if (status != wanted || !strstr(hw_message(), words))
        fail_msg("%s, not \"%s\": %s", hw_status_name((int32_t)status), words,
                 hw_message());
}

#endif
