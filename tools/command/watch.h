/* SPDX-License-Identifier: MIT */
/* watch.h - reports what the command was doing when it dies, hangs or exits inside a
 * plugin. Plugins run in this process, so their crash is the crash of the command. */
#ifndef HW_TOOL_WATCH_H
#define HW_TOOL_WATCH_H

#include <hw/hw.h>

#include <stdbool.h>

/* main calls the first when it starts, and the second when the command has ended by itself,
 * so that the exit is not that of a plugin. */
void watch_begin(void);
void watch_end(void);

/* The start_fn of struct hw_options. `user` is not NULL if the user named the file, and so
 * needs no advice on how to exclude it. While a plugin starts, a line is printed to
 * standard error if that takes longer than HW_PROBE_TIMEOUT, and Ctrl-C prints what it
 * interrupted. */
void watch_start(void *user, const char *path);

/* Sets what a plugin is about to do, "computing silu(...) on mine:0"; NULL: nothing. */
void watch_work(const char *work);

/* The same while a model file is used, by the device unless that is NULL. The file is mapped: if
 * another process truncates it, reading it raises a bus error. */
void watch_file(const char *path, struct hw_device *device);

/* Whether Ctrl-C prints what it interrupts. `hw run` handles Ctrl-C itself. */
void watch_interrupt(bool on);

#endif
