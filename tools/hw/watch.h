/* SPDX-License-Identifier: MIT */
/* watch.h - says what the command was doing when the process dies, hangs or exits inside a
 * plugin. Plugins run in this process, so their crash is the command's. */
#ifndef HW_TOOL_WATCH_H
#define HW_TOOL_WATCH_H

/* main calls the first at its start; and the second when the command has ended by itself, so that
 * the exit is not a plugin's. */
void watch_begin(void);
void watch_end(void);

/* For struct hw_options: start_fn. `user` is not NULL if the file was named by the user, who needs
 * no advice on how to leave it out. While a file starts, standard error gets a line when that
 * takes longer than HW_PROBE_TIMEOUT, and Ctrl-C says what it interrupted. */
void watch_start(void *user, const char *path);

/* What a plugin is about to do, "computing silu(...) on mine:0"; NULL: nothing. */
void watch_work(const char *work);

#endif
