/* SPDX-License-Identifier: MIT */
/* tune.h - the parts of `hw tune`: what is measured, the file that keeps it, and the table of what
 * it means. docs/routing.md describes the figures and the file. */
#ifndef HW_TOOL_TUNE_H
#define HW_TOOL_TUNE_H

#include "command/report.h"

#include <hw/hw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { TUNE_SIZES = 8, TUNE_NAME = 64, TUNE_SHAPE = 64, TUNE_ROW = 1024, TUNE_PATH = 4400 };

/* ---- what is measured (tune_plan.c) ---- */

/* A row of a profile: an op with one type, in some sizes. */
struct tune_row {
    const char *op;    /* as hw_op_name() has it */
    const char *class; /* "f32" */
    const char *form;  /* "many", "one" */
    const char *types; /* as shape_case() takes them */
    int count;
    char shape[TUNE_SIZES][TUNE_SHAPE]; /* likewise, from small to large */
};

/* The name of the row in a profile: "matmul/f32/many". */
void tune_name(const struct tune_row *row, char name[TUNE_NAME]);
/* Row `index`; false past the last. With `quick`, fewer rows and sizes. */
bool tune_plan(int index, bool quick, struct tune_row *row);

/* ---- the file (tune_file.c) ---- */

struct tune_profile {
    char device[64];
    char path[TUNE_PATH];
    char *key;  /* owned */
    char *rows; /* owned; "" at first */
    int resumed;
};

/* Finds where the profile of a device is, and its key, in the report. False, with a complaint, if
 * there is no cache directory. Close it in either case. */
bool tune_open(struct tune_profile *profile, const struct report *report,
               struct hw_device *device);
void tune_close(struct tune_profile *profile);

/* Reads the rows of an interrupted run with the same key, if there was one. */
void tune_resume(struct tune_profile *profile);
/* Reads the rows of the finished profile with the same key, without those of the ops in the
 * NULL-terminated list: also those of copies, which count in the rows of other ops. */
void tune_keep(struct tune_profile *profile, const char *const *ops);
bool tune_has(const struct tune_profile *profile, const char *name);

/* Adds a row, and writes the file of an interrupted run. False, with a complaint, if that fails. */
bool tune_add(struct tune_profile *profile, const char *line);
/* Makes it the profile of the device. */
bool tune_finish(struct tune_profile *profile);

/* Removes profiles of a backend, or of all for NULL. Returns the exit status. */
int tune_clear(const char *cache, const char *backend);

/* Only one process at a time may measure: returns a descriptor to close, or -1 with a complaint. */
int tune_lock(const struct tune_profile *profile);

/* ---- measuring (tune_measure.c) ---- */

struct wishes {
    const char *device;
    const char **ops;     /* NULL-terminated; empty: all */
    bool quick, unsteady; /* unsteady: figures are kept whatever their spread */
};

struct tuning {
    struct hw_queue *queue;
    struct tune_profile profile;
    const struct wishes *wishes;
    bool moves; /* operands in host memory are copied to the device */
    double seconds;
    uint64_t done, total;
    int unsteady; /* rows that are not kept, because their times vary too much */
};

/* Set by Ctrl-C: the functions below return HW_END soon after. */
extern volatile sig_atomic_t tune_stopped;

/* Measure rows that the profile does not have, and add them. HW_IO and HW_INTERNAL come after a
 * complaint, other errors have a message of the library. Transfers and waits come first. */
enum hw_status tune_measure_basics(struct tuning *t);
enum hw_status tune_measure_row(struct tuning *t, const struct tune_row *row);

/* ---- what else runs (tune_busy.c) ---- */

/* Seconds of all processors together: that this process has used, that all have. */
struct tune_load {
    double own, all, time;
};
struct tune_load tune_load_now(void);
/* The share of the processors that others have used since; 0 where that is not known. */
double tune_others_since(const struct tune_load *since);

/* ---- what it means (tune_table.c) ---- */

/* Shows where the device and the CPU take turns, as the library predicts it from the profiles that
 * it has now. Returns the exit status. */
int tune_show(const char *name, bool quick);

#endif
