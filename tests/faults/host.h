/* SPDX-License-Identifier: MIT */
/* host.h - the state of this process that belongs to the application, as text: what nothing in a
 * plugin directory may change. */
#ifndef HOST_H
#define HOST_H

/* A line for each thing: descriptors and what they lead to, threads, signals and their handlers,
 * blocked signals, umask, working directory, locale, floating-point modes, environment, limits,
 * children. The caller frees it; NULL if it cannot be told. */
char *host_text(void);

/* The first line of `now` that differs from that of `before`, in a buffer; NULL: none does. */
const char *host_difference(const char *before, const char *now);

/* The first file below this directory that is mapped, except for that whose path ends with `but`,
 * in a buffer; NULL: there is none. */
const char *host_mapping(const char *directory, const char *but);

#endif
