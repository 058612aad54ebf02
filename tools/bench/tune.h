/* SPDX-License-Identifier: MIT */
/* tune.h - the parts of `hw tune`: the plan, the file of figures, measuring, and the table that is
 * printed. docs/routing.md describes the figures and the file. */
#ifndef HW_TOOL_TUNE_H
#define HW_TOOL_TUNE_H

#include "command/report.h"

#include <hw/hw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { TUNE_SIZES = 8, TUNE_NAME = 64, TUNE_SHAPE = 64, TUNE_ROW = 1024, TUNE_PATH = 4400 };

/* ---- the plan (tune_plan.c) ---- */

/* A row of a profile: an op with one type, in several sizes. */
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

/* Finds the path and the key of a device's profile in the report. Returns false, with a complaint,
 * if there is no cache directory. Close it in either case. */
bool tune_open(struct tune_profile *profile, const struct report *report,
               struct hw_device *device);
void tune_close(struct tune_profile *profile);

/* Reads the rows of an interrupted run with the same key, if there was one. */
void tune_resume(struct tune_profile *profile);
/* Reads the rows of the finished profile with the same key, except rows of the ops in the
 * NULL-terminated list. Rows of copies are kept, because rows of other ops depend on them. */
void tune_keep(struct tune_profile *profile, const char *const *ops);
bool tune_has(const struct tune_profile *profile, const char *name);

/* Adds a row, and saves all rows in case the run is interrupted. Returns false, with a complaint,
 * if that fails. */
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
    bool quick, unsteady; /* unsteady: keep figures whatever their spread */
};

struct tuning {
    struct hw_queue *queue;
    struct tune_profile profile;
    const struct wishes *wishes;
    bool moves; /* operands in host memory are copied to the device */
    double seconds;
    uint64_t done, total;
    int unsteady; /* rows not kept, because their times vary too much */
};

/* Set by Ctrl-C: the functions below return HW_END soon after. */
extern volatile sig_atomic_t tune_stopped;

/* Measure rows that the profile lacks, and add them; transfers and waits first. With HW_IO and
 * HW_INTERNAL, a complaint was printed; for other errors, hw_message() has the reason. */
enum hw_status tune_measure_basics(struct tuning *t);
enum hw_status tune_measure_row(struct tuning *t, const struct tune_row *row);

/* ---- load of other programs (tune_busy.c) ---- */

/* Seconds of processor time: used by this process, and by all. */
struct tune_load {
    double own, all, time;
};
struct tune_load tune_load_now(void);
/* The share of the processors that other processes used since then; 0 if unknown. */
double tune_others_since(const struct tune_load *since);

/* ---- the table (tune_table.c) ---- */

/* Shows up to which size the library would use the CPU rather than the device, by its present
 * profiles. Returns the exit status. */
int tune_show(const char *name, bool quick);

#endif
