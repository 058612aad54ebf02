/* SPDX-License-Identifier: MIT */
/* cache.h - the verdicts that probes of earlier processes have kept (probe/store.h), so that a
 * second start runs only plugins that it uses.
 *
 * An entry is one file in the directory CACHE_PLACE below the setting cache_dir, named after the
 * plugin and its key: everything that the verdict depends on, as text (cache/key.h). Nothing in the
 * directory is trusted: an entry counts only if it is a regular file that belongs to this user,
 * nobody else may write to it or to the directory, and its lengths, checksum and key are right.
 * Anything else counts as missing, and the next verdict replaces it.
 *
 * The file is a line, the key, and the verdict:
 *
 *   hw-verdict 1 <checksum> <plugin> <outcome> <kind> <timeouts> <written> <expires> <key bytes>
 *       <verdict bytes>
 *
 * The checksum is FNV-1a (64 bits) of everything after it. struct cached has the other fields.
 * Another version of the format has another number after hw-verdict. */
#ifndef HW_CACHE_CACHE_H
#define HW_CACHE_CACHE_H

#include "open/candidate.h"

#define CACHE_MAGIC      "hw-verdict 1 "
#define CACHE_HASH_CHARS 16
#define CACHE_PLACE      "verdicts.d" /* no plugin has this name, because of the dot */
#define CACHE_ENTRY_MAX  (2 << 20)    /* bytes of one file */
#define CACHE_FILES_MAX  256          /* with more files, the oldest are removed */
#define CACHE_BYTES_MAX  (16 << 20)   /* of all files; with more, the oldest are removed */
#define CACHE_RETRY      60           /* seconds after which a failure is tried again */
/* Seconds after which a timeout is tried again: the first time, and at most. */
#define CACHE_RETRY_FIRST 10
#define CACHE_RETRY_MAX   3600

/* How long a verdict counts while its key is right. */
enum cache_kind {
    CACHE_SUCCESS, /* forever */
    CACHE_FAILURE, /* CACHE_RETRY seconds */
    CACHE_BACKOFF  /* CACHE_RETRY_FIRST seconds, doubled for each timeout in a row */
};

struct cached {
    unsigned char *bytes; /* the verdict, whose format the cache does not know */
    size_t size;
    enum cache_kind kind;
    char outcome[32];  /* for people to read: "ok", or the code of a reason */
    int64_t written;   /* when the probe began, in seconds since 1970 */
    uint32_t took;     /* for cache_store(): seconds that the probe took */
    int64_t expires;   /* when the plugin is tried again; 0: when the key changes */
    uint32_t timeouts; /* how many CACHE_BACKOFF in a row, including this one */
    bool open_end;     /* more ops will be tested: even a success keeps `timeouts` */
};

/* Gives the candidate its verdict from the cache, or stops it as the verdict says. False if there
 * is none: the candidate must be tried. */
bool cache_load(struct hw_context *context, struct candidate *candidate);
/* After a probe has ended: when the plugin was tried, and when it will be tried again. */
void cache_load_dates(struct hw_context *context, struct candidate *candidate);
/* Whether a verdict with this reason is kept: it is about the plugin, not about this process. */
bool reason_is_kept(enum reason reason);

/* Finds the verdict on the candidate, whose key is complete. False if there is none that counts
 * now. The caller frees `bytes`. */
bool cache_find(const struct hw_context *context, const struct candidate *candidate,
                struct cached *found);

/* Like cache_find(), but also finds a verdict that has expired or is hidden (locks.h). */
bool cache_find_any(const struct hw_context *context, const struct candidate *candidate,
                    struct cached *found);

/* Logs, once per context, why the verdict on the candidate is not kept: a warning if the user can
 * correct it. */
void cache_tell(struct hw_context *context, const struct candidate *candidate);

/* For locks.c and probe/store.c. cache_place() opens the directory of the candidate's entry, and
 * creates it if `make` is set; -1 if there is none. cache_number() is a hash of the key, and
 * cache_name() writes the entry's name: "<plugin>-<number in hexadecimal digits>". */
int cache_place(const struct hw_context *context, const struct candidate *candidate,
                bool make);
#define CACHE_NAME_CHARS (NAME_SIZE + 48)
uint64_t cache_number(const struct candidate *candidate);
void cache_name(const struct candidate *candidate, char name[CACHE_NAME_CHARS]);

/* Writes the checksum as CACHE_HASH_CHARS digits. */
void cache_hash(char text[CACHE_HASH_CHARS + 1], const void *data, size_t size);

/* Parses the `size` bytes of an entry. False if they are not a valid entry for this key. Otherwise
 * `bytes` points into `data`. The entry may have expired: see cache_counts(). */
bool cache_parse(char *data, size_t size, const char *key, struct cached *found);

/* Whether a verdict counts at the time `now`. A failure from the future does not count: the clock
 * has been set back, and the failure must not be kept forever. */
bool cache_counts(const struct cached *found, int64_t now);

#endif
