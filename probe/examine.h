/* SPDX-License-Identifier: MIT */
/* examine.h - what hw-probe checks in a plugin's file before it loads it: is the file sound, are
 * the libraries there that it needs, may others write to them, does plugins.lock list it? */
#ifndef HW_PROBE_EXAMINE_H
#define HW_PROBE_EXAMINE_H

#include "open/candidate.h"
#include "probe/object/object.h"

/* The application for which the plugin is tried. */
struct application {
    bool trust;                   /* HW_TRUST */
    bool elevated;                /* the process has elevated rights */
    const char *path;             /* of the plugin, as the application found it */
    const char *const *libraries; /* loaded there: see loaded_list() */
    uint32_t count;               /* of the libraries */
};

struct examined {
    struct object object;
    char *depends; /* cache/depends.h; NULL: the verdict cannot be kept */
    bool locked;   /* plugins.lock lists it with this content */
};

/* Examines the candidate, whose file is open and whose manifest has been read. Loads libraries that
 * the plugin needs and the application has loaded. Returns false if the candidate stopped. Either
 * way, the caller calls examined_free(). */
bool examine(const struct application *application, struct candidate *candidate,
             struct examined *examined);
void examined_free(struct examined *examined);

/* Whether every function that the plugin uses comes from a library that it is linked with. The
 * plugin is loaded. Stops the candidate if not. */
bool examine_linked(const struct examined *examined, struct candidate *candidate);

#endif
