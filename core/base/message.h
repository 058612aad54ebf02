/* SPDX-License-Identifier: MIT */
/* message.h - the thread's message: what the last call that failed has to say. */
#ifndef HW_BASE_MESSAGE_H
#define HW_BASE_MESSAGE_H

#include <hw/hw.h>

/* Sets the thread's message and returns `status`, for: return fail(HW_INVALID, "...", ...). */
enum hw_status fail(enum hw_status status, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));
/* Puts text in front of the current message: "open device cpu:0: " and so on. */
enum hw_status fail_in(enum hw_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The current message, for code that must not change it. */
struct saved_message {
    char text[2048];
};
struct saved_message message_save(void);
void message_restore(const struct saved_message *saved);

/* A plugin's text is kept aside until the library knows that the call failed, because a plugin
 * may set one and then succeed. Before each call into a plugin: forgets older text. */
void plugin_message_clear(void);
/* hw_host.fail(). Returns `status`. */
int32_t plugin_message_set(int32_t status, const char *text);
/* What the plugin said; "no reason given" if it said nothing. */
const char *plugin_message(void);
/* The call failed: the plugin's text becomes the message. Returns `status`. */
enum hw_status plugin_failed(int32_t status);

#endif
