/* SPDX-License-Identifier: MIT */
/* soak.h - shared by the modes of soak.c. A mode is a file with a function, soak_<mode>(), which
 * ends the program through die() after an error, and prints a line with figures. */
#ifndef SOAK_H
#define SOAK_H

#include <hw/hw.h>
#include <hw/interop.h>
#include <hw/report.h>

#include <stdbool.h>
#include <sys/types.h>

#define MODES(X) X(cycles) X(fork) X(hours) X(junk) X(swap) X(syscalls) X(threads) X(zoo)
#define X(mode)  void soak_##mode(long count);
MODES(X)
#undef X

/* Prints why, and ends the program with status 1. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
double seconds(void);
/* xorshift64*: reproducible numbers for a given seed. */
extern uint64_t state_of_random;
uint64_t random_below(uint64_t limit);

/* ---- the state of the process ---- */

struct host {
    int descriptors, threads, rounding;
    long resident; /* KiB */
    char directory[4096], locale[128];
    uint64_t environment, handlers;
};

struct host host_now(void);
/* Dies if descriptors, threads or the state of the process changed. */
void check_same(const struct host *before, const struct host *after);
/* Like check_same(); also dies if memory grew. */
void check_host(const struct host *before, const struct host *after);

/* ---- files ---- */

extern char root[64]; /* the directory of all that is written */
/* A path in it, in one of this thread's four buffers, used in rotation. */
const char *below(const char *format, ...) __attribute__((format(printf, 1, 2)));
void make_directory(const char *path);
void write_file(const char *path, const void *bytes, size_t size, mode_t mode);
/* Reads a whole file; the caller frees it. */
unsigned char *read_file(const char *path, size_t *size);
void copy_file(const char *from, const char *to, mode_t mode);
void remove_tree(const char *path);
/* Makes a directory below the root, with the good plugin. */
void put_good(const char *directory);

/* ---- contexts ---- */

enum hw_status open_on(const char *path, struct hw_context **context);
bool has_good(struct hw_context *context);
/* Opens a context on this directory, which must use the good plugin, and closes it. */
void open_once(const char *path);

#endif
