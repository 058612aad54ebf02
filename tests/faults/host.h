/* SPDX-License-Identifier: MIT */
/* host.h - the state of this process that belongs to the application, as text. Nothing in a plugin
 * directory may change it. */
#ifndef HOST_H
#define HOST_H

/* One line per item: descriptors and their targets, threads, signals and their handlers, blocked
 * signals, umask, working directory, locale, floating-point modes, environment, limits, children.
 * The caller frees it; NULL if the state cannot be read. */
char *host_text(void);

/* Returns the first line of `now` that differs from `before`, in a static buffer; NULL: no
 * difference. */
const char *host_difference(const char *before, const char *now);

/* Returns the first mapped file below this directory, in a static buffer, ignoring the file whose
 * path ends with `but`; NULL: there is none. */
const char *host_mapping(const char *directory, const char *but);

#endif
