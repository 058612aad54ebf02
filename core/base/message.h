/* SPDX-License-Identifier: MIT */
/* message.h - the thread's message: the reason of the last call that failed. */
#ifndef HW_BASE_MESSAGE_H
#define HW_BASE_MESSAGE_H

#include <hw/hw.h>

/* Sets the thread's message and returns `status`, for: return fail(HW_INVALID, "...", ...). */
enum hw_status fail(enum hw_status status, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));
/* Puts text in front of the current message, such as "open device cpu:0: ". */
enum hw_status fail_in(enum hw_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A copy of the current message, for code that must not change it. */
struct saved_message {
    char text[2048];
};
struct saved_message message_save(void);
void message_restore(const struct saved_message *saved);

/* A plugin may set a message and then succeed. So its message is stored separately until the
 * library knows that the call failed. This clears it: call it before each call into a plugin. */
void plugin_message_clear(void);
/* hw_host.fail(). Returns `status`. */
int32_t plugin_message_set(int32_t status, const char *text);
/* The plugin's message; "no reason given" if it has set none. */
const char *plugin_message(void);
/* The call failed: the plugin's message becomes the thread's. Returns `status`. */
enum hw_status plugin_failed(int32_t status);

#endif
