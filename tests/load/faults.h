/* SPDX-License-Identifier: MIT */
/* faults.h - faulty files, made while the tests run: see files.c. */
#ifndef FAULTS_H
#define FAULTS_H

#include "fixture.h"

/* The reason of a file that only the dynamic loader can judge, and may crash on. It is loaded in
 * hw-probe, and the test's process survives. */
#define BY_PROBE "by-probe"

/* `make` writes the file to `path`, or to another place that it stores in `path`. */
struct made {
    const char *name;
    const char *reason;
    void (*make)(const char *directory, char path[4096]);
    bool root; /* needs root's rights to make */
};
extern const struct made made_faults[]; /* ends with a NULL name */
/* From now on, files are made with this name instead of "plain". Both have the same length. */
void made_name(const char *name);

#endif
