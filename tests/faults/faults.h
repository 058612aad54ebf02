/* SPDX-License-Identifier: MIT */
/* faults.h - faulty files, made while the tests run: see files.c. */
#ifndef FAULTS_H
#define FAULTS_H

#include "fixture.h"

/* The reason of a file that nobody but the system's loader can judge, which may crash on it: it is
 * loaded in a process of its own, and whatever comes of that, the test's process lives on. */
#define BY_PROBE "by-probe"

/* `make` puts the file at `path`, or elsewhere and says so in `path`. */
struct made {
    const char *name;
    const char *reason;
    void (*make)(const char *directory, char path[4096]);
    bool root; /* needs root's rights to make */
};
extern const struct made made_faults[]; /* ends with a NULL name */
/* What files made from now on are named instead of "plain", in as many letters. */
void made_name(const char *name);

#endif
