/* SPDX-License-Identifier: MIT */
/* watch.h - names the plugin and its work if the command crashes, hangs or exits inside a plugin.
 * Plugins run in this process, so their crash is a crash of the command. */
#ifndef HW_TOOL_WATCH_H
#define HW_TOOL_WATCH_H

#include <hw/hw.h>

#include <stdbool.h>

/* main calls watch_begin() first. It calls watch_end() when the command has ended by itself; an
 * exit before that was a plugin's. */
void watch_begin(void);
void watch_end(void);

/* The start_fn of struct hw_options. `user` is not NULL if the user named the file; then messages
 * do not advise how to exclude it. If a start takes longer than HW_PROBE_TIMEOUT, prints a line to
 * standard error. Ctrl-C during a start prints what it interrupted. */
void watch_start(void *user, const char *path);

/* Sets the work that a plugin is about to do, "computing silu(...) on mine:0"; NULL: none. */
void watch_work(const char *work);

/* Likewise while a device (may be NULL) uses a model file. The file is mapped: reading it raises a
 * bus error after another process truncates it. */
void watch_file(const char *path, struct hw_device *device);

/* Whether Ctrl-C prints what it interrupted. `hw run` handles Ctrl-C itself. */
void watch_interrupt(bool on);

#endif
