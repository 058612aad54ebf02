/* SPDX-License-Identifier: MIT */
/* cache.h - the verdicts of probes, kept from one process to the next, so that a second start
 * runs no plugin that it does not use.
 *
 * An entry is one file in the directory CACHE_PLACE below the setting cache_dir, named after
 * the plugin and its key: all that the verdict depends on, as text (open/key.h). Nothing in the
 * directory is trusted: an entry counts only if it is a regular file that belongs to this user,
 * nobody else may write to it or to the directory, and its lengths, checksum and key are right.
 * Anything else counts as missing, and the next verdict replaces it.
 *
 * The file is a line, the key, and the verdict:
 *
 *   hw-verdict 1 <checksum> <plugin> <outcome> <kind> <timeouts> <written> <expires> <key bytes>
 *       <verdict bytes>
 *
 * The checksum is FNV-1a (64 bits) of all that follows it. The other fields are those of struct
 * cached. Another version of the format has another number behind hw-verdict. */
#ifndef HW_OPEN_CACHE_H
#define HW_OPEN_CACHE_H

#include "open/candidate.h"

#define CACHE_PLACE       "verdicts.d" /* no plugin has this name, because of the dot */
#define CACHE_ENTRY_MAX   (2 << 20)    /* bytes of one file */
#define CACHE_FILES_MAX   256          /* beyond this, what was written first is removed */
#define CACHE_BYTES_MAX   (16 << 20)   /* of all files together; likewise */
#define CACHE_RETRY       60           /* seconds after which a failure is tried again */
#define CACHE_RETRY_FIRST 10   /* of CACHE_BACKOFF, the first time; then doubled ... */
#define CACHE_RETRY_MAX   3600 /* ... up to this */

/* How long a verdict counts, as long as its key is right. */
enum cache_kind {
    CACHE_SUCCESS, /* for ever */
    CACHE_FAILURE, /* CACHE_RETRY seconds */
    CACHE_BACKOFF /* CACHE_RETRY_FIRST seconds, twice as long each time in a row: timeouts */
};

struct cached {
    unsigned char *bytes; /* the verdict, which only its writer understands */
    size_t size;
    enum cache_kind kind;
    char outcome[32];  /* for people: "ok", or the code of a reason */
    int64_t written;   /* seconds since 1970 */
    int64_t expires;   /* when it will be tried again; 0: when the key changes */
    uint32_t timeouts; /* CACHE_BACKOFF in a row, this one included */
    bool
        open_end; /* more of the plugin will be tested: a success, too, keeps their count */
};

/* The verdict on the candidate, whose key is complete. False if there is none that counts
 * today. The caller frees `bytes`. */
bool cache_find(const struct hw_context *context, const struct candidate *candidate,
                struct cached *found);

/* The same, even if it has expired or is out of sight (turn.h). */
bool cache_find_any(const struct hw_context *context, const struct candidate *candidate,
                    struct cached *found);

/* Keeps a verdict: bytes, size, kind and outcome; fills in the rest, even if it cannot be
 * kept, of which the log tells once; returns whether it was. It is not kept if the file has
 * changed since the key was made. */
bool cache_store(struct hw_context *context, const struct candidate *candidate,
                 struct cached *verdict);

/* The same, with the dates and the count that are given: more of the verdict that is there, which
 * stays out of sight if it is. */
bool cache_replace(struct hw_context *context, const struct candidate *candidate,
                   const struct cached *verdict);

/* For turn.c: opens the directory of the candidate's entry, which is made if `make` says so; -1 if
 * there is none. The name of the entry in it: "<plugin>-<hash of the key>". */
int cache_place(const struct hw_context *context, const struct candidate *candidate,
                bool make);
#define CACHE_NAME_CHARS (NAME_SIZE + 48)
void cache_name(const struct candidate *candidate, char name[CACHE_NAME_CHARS]);

/* Reads the `size` bytes of an entry. False if they are not what a writer left for this key.
 * `bytes` then points into `data`. It may have expired: see cache_counts(). */
bool cache_parse(char *data, size_t size, const char *key, struct cached *found);

/* Whether a verdict counts at the time `now`. A failure from the future does not: the clock
 * has been set back, and it must not be kept for ever. */
bool cache_counts(const struct cached *found, int64_t now);

#endif
