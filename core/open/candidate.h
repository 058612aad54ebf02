/* SPDX-License-Identifier: MIT */
/* candidate.h - a file that may be a plugin: the stage that it has reached, and why it stopped. */
#ifndef HW_OPEN_CANDIDATE_H
#define HW_OPEN_CANDIDATE_H

#include "core.h"
#include "object/manifest.h"

#include <sys/stat.h>

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
    char code[20];
    enum stage stage;
    const char *sentence; /* the remedy follows its NUL: see reason_remedy() */
};
extern const struct reason_row reason_rows[REASON_COUNT];
const char *reason_remedy(enum reason reason);
const char *stage_name(enum stage stage);

/* A device that a plugin found but hides, and why. */
struct left_out {
    char *name, *why;
};
enum { LEFT_OUT_MAX = 64 }; /* per plugin; only the log has more */

/* Adds to a list. Does nothing if the list is full or memory runs out. */
void left_out_add(struct left_out **list, uint32_t *count, const char *name,
                  const char *why);
void left_out_free(struct left_out *list, uint32_t count);

/* A file that may be a plugin. */
struct candidate {
    struct candidate *next;
    struct catalog *found;     /* the catalog that it belongs to */
    char *path;                /* as it was found */
    char *real;                /* absolute and without links; set by the stage trust */
    const char *file;          /* the last part of path */
    char name[NAME_SIZE];      /* of the backend, by the file's name or the manifest */
    bool explicit_file;        /* named by the settings, not found in a directory */
    int fd;                    /* open from trust to bind; -1 otherwise */
    struct stat look;          /* of the file, when candidate_look() was called; or zeros */
    struct manifest *manifest; /* NULL until preflight has read it */
    char *key;                 /* cache/key.h; NULL: its verdict cannot be kept */
    bool beside;               /* it may search for libraries beside itself */
    bool locked;        /* plugins.lock of its directory lists it with this content */
    bool retryable;     /* memory or descriptors ran out, so a retry may succeed */
    bool passed;        /* it passed the stages up to match */
    enum stage stage;   /* the last stage that it reached */
    enum reason reason; /* why it stopped; REASON_NONE if it did not */
    char *message;      /* NULL: the sentence of the reason; see message_of() */
    char *remedy;       /* NULL: the remedy of the reason; see remedy_of() */
    uint64_t microseconds[STAGE_COUNT];
    struct verdict *verdict;   /* verdict.h: the result of the probe process; or NULL */
    bool recalled;             /* the verdict is from the cache */
    struct left_out *left_out; /* devices that the plugin hid when it was started here */
    uint32_t left_out_count;
    int64_t tried;         /* time of the probe, in seconds since 1970; 0: not yet */
    int64_t retry;         /* when the next probe is due; 0: when something changes */
    int probe_lock;        /* the lock of the process that tries it: locks.h; or -1 */
    int bind_lock;         /* the lock of the thread that binds it; or -1 */
    uint32_t bind_row;     /* its place in the file of locks */
    struct plugin *plugin; /* set if it has devices or is being loaded */
};

/* Whether hw_rescan() lists the candidate for a plugin that it leaves as it is (rescan.c). */
static inline bool is_in_use(const struct candidate *candidate)
{
    return candidate->plugin && candidate->plugin->candidate != candidate &&
           !candidate->verdict;
}

/* Whether a plugin whose bind had failed has been tried again with success, with the same
 * devices. */
static inline bool is_revived(const struct candidate *candidate)
{
    return candidate->plugin && candidate->plugin->candidate != candidate &&
           candidate->verdict && !plugin_is_alive(candidate->plugin);
}

/* Stops the candidate. `format` describes the fault; NULL uses the sentence of the reason.
 * Returns false, for: return stop(candidate, REASON_EMPTY, NULL). */
bool stop(struct candidate *candidate, enum reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Undoes stop(). */
void candidate_clear(struct candidate *candidate);
/* Replaces the remedy of the reason by a better one. */
void set_remedy(struct candidate *candidate, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Why the candidate stopped, and the remedy. */
const char *message_of(const struct candidate *candidate);
const char *remedy_of(const struct candidate *candidate);

/* Whether a defect of the plugin's code ended the process in which it was tried; and whether that
 * process did not end in time. */
bool is_crash(enum reason reason);
bool is_hang(enum reason reason);

/* Whether the reason is worth a warning because the file itself is at fault. That is not so if the
 * settings exclude the plugin, or if its vendor's library or device is missing. */
bool is_broken(const struct candidate *candidate);

/* Closes the file. */
void candidate_close(struct candidate *candidate);

/* Looks at the file; candidate->look.st_ino is 0 if there is none. */
void candidate_look(struct candidate *candidate);
/* Whether it is the same file; and, for same_file(), with the same contents. */
bool same_inode(const struct stat *a, const struct stat *b);
bool same_file(const struct stat *a, const struct stat *b);

/* Takes the path, which is NULL if memory has run out. NULL if memory runs out. */
struct candidate *candidate_new(char *path, bool explicit_file);
/* Makes a new candidate for the same file. The old one does not change, because other threads read
 * it. NULL if memory runs out. */
struct candidate *candidate_again(const struct candidate *listed);

/* Forgets what the stages from trust on have found out. The file must be closed. */
void candidate_forget(struct candidate *candidate);

/* The candidate must be in no list. */
void candidate_free(struct candidate *candidate);

#endif
