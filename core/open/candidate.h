/* SPDX-License-Identifier: MIT */
/* candidate.h - a file that may be a plugin: how far it came, and why it stopped. */
#ifndef HW_OPEN_CANDIDATE_H
#define HW_OPEN_CANDIDATE_H

#include "core.h"
#include "object/manifest.h"

#include <sys/types.h>
#include <time.h>

#define STAGES(X)                                                                          \
    X(LIST, "list")                                                                        \
    X(FILTER, "filter")                                                                    \
    X(TRUST, "trust")                                                                      \
    X(PREFLIGHT, "preflight")                                                              \
    X(MATCH, "match")                                                                      \
    X(PROBE, "probe")                                                                      \
    X(BIND, "bind")

enum stage {
#define X(NAME, name) STAGE_##NAME,
    STAGES(X)
#undef X
        STAGE_COUNT
};

enum reason {
    REASON_NONE,
#define X(NAME, code, STAGE, sentence, remedy) REASON_##NAME,
#include "open/reasons.def"
#undef X
    REASON_COUNT
};

struct reason_row {
    const char *code;
    enum stage stage;
    const char *sentence;
    const char *remedy;
};
extern const struct reason_row reason_rows[REASON_COUNT];
const char *stage_name(enum stage stage);
/* Finds a reason by its code; "" is REASON_NONE. False if there is none. */
bool reason_named(const char *code, enum reason *reason);

/* What hw_rescan() found of the file of a plugin that is in use, which is not looked into again. */
enum carried { NOT_CARRIED, CARRIED_SAME, CARRIED_CHANGED, CARRIED_GONE };

#define LOADED_MAX 16 /* more than a plugin needs */

/* A device that a plugin found and does not show, and why. */
struct left_out {
    char *name, *why;
};
enum { LEFT_OUT_MAX = 64 }; /* of a plugin; the log has more */

/* Adds to a list. Without memory, or if it is full, there is none. */
void left_out_add(struct left_out **list, uint32_t *count, const char *name,
                  const char *why);
void left_out_free(struct left_out *list, uint32_t count);

/* A file that may be a plugin. */
struct candidate {
    struct candidate *next;
    struct catalog *found; /* what it is a part of */
    char *path;            /* as it was found */
    char *real;            /* absolute and without links; set by the stage trust */
    char *file;            /* the last part of path */
    char name[NAME_SIZE];  /* of the backend, by the file's name or the manifest */
    bool explicit_file;    /* named by the settings, not found in a directory */
    int fd;                /* open from trust to bind; -1 otherwise */
    dev_t device;          /* these as it was found, or looked at again */
    ino_t inode;
    off_t size;
    struct timespec written;
    struct object *object;     /* what the file contains; set from preflight to bind */
    struct manifest *manifest; /* NULL until preflight has read it */
    char *key; /* open/key.h: what a verdict on it depends on; NULL: it cannot be kept */
    char *loaded[LOADED_MAX]; /* paths of libraries that it needs and the process has */
    uint32_t loaded_count;
    bool locked;      /* plugins.lock of its directory lists it with this content */
    bool later;       /* memory or descriptors ran out: what failed may go well next time */
    bool passed;      /* it got through the stages up to preflight */
    enum stage stage; /* the last stage that it reached */
    enum reason reason; /* why it stopped; REASON_NONE if it did not */
    char *message;      /* NULL: that of the reason; see message_of() */
    char *remedy;       /* NULL: that of the reason; see remedy_of() */
    uint64_t microseconds[STAGE_COUNT];
    struct verdict
        *verdict;  /* verdict.h: what the probe in another process found; or NULL */
    bool recalled; /* the verdict is one that was kept: see recall.h */
    struct left_out *left_out; /* by the plugin, when it was started here */
    uint32_t left_out_count;
    int64_t tried;         /* when the probe was, in seconds since 1970; 0: not yet */
    int64_t retry;         /* when the next one is due; 0: when something changes */
    int turn;              /* the lock of the process that tries it: turn.h; or -1 */
    int hold;              /* that of the thread that binds it; or -1 */
    struct plugin *plugin; /* once it has devices, or is being loaded */
    enum carried carried;  /* its plugin was found before, and is in use */
};

/* Stops the candidate. `format` says what is wrong; NULL uses the sentence of the reason.
 * Returns false, for: return stop(candidate, REASON_EMPTY, NULL). */
bool stop(struct candidate *candidate, enum reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Undoes stop(). */
void forgive(struct candidate *candidate);
/* Replaces the remedy of the reason by a better one. */
void set_remedy(struct candidate *candidate, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Why the candidate stopped, and what to do about it. */
const char *message_of(const struct candidate *candidate);
const char *remedy_of(const struct candidate *candidate);

/* Whether a defect of the plugin's code ended the process that it was tried in; and whether the
 * process did not come to an end in time. */
bool is_crash(enum reason reason);
bool is_hang(enum reason reason);

/* Whether the reason is worth a warning: something is wrong with the file itself. It is not
 * if the settings exclude the plugin, or if its vendor's library or device is missing. */
bool is_broken(const struct candidate *candidate);

/* Notes which file it is at this moment; and whether it is the same one as another is. */
void candidate_look(struct candidate *candidate);
bool candidate_same(const struct candidate *a, const struct candidate *b);

/* The same file, to be looked at again: what was found out about it before stays as it is, because
 * other threads read that. NULL if memory runs out. */
struct candidate *candidate_again(const struct candidate *listed);

/* The candidate must be in no list. */
void candidate_free(struct candidate *candidate);

#endif
