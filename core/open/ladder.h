/* SPDX-License-Identifier: MIT */
/* ladder.h - the ladder that a file climbs until its devices can be used, one stage a file:
 *
 *   0 list       scan.c       the files there are
 *   1 filter     select.c     what the settings exclude, by name, before any open
 *   2 trust      trust.c      who could have written the file
 *   3 preflight  preflight.c  what reading it shows: elf.c, manifest.c, libraries.c
 *   4 match      (not yet)    the manifest's hardware rules
 *   5 probe      probe.c      what running it shows; in this process until there is a child
 * for it 6 cache      (not yet)    the last verdict 7 bind       load.c       into the
 * process
 *
 * Where it stops it gets a reason (reasons.def), a sentence and a remedy: see stop(). */
#ifndef HW_LADDER_H
#define HW_LADDER_H

#include "core.h"

#include <sys/types.h>

#define STAGES(X)                                                                          \
    X(LIST, "list")                                                                        \
    X(FILTER, "filter")                                                                    \
    X(TRUST, "trust")                                                                      \
    X(PREFLIGHT, "preflight")                                                              \
    X(MATCH, "match")                                                                      \
    X(PROBE, "probe")                                                                      \
    X(CACHE, "cache")                                                                      \
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
struct reason_row reason_row(enum reason reason);
const char *stage_name(enum stage stage);

/* ---- manifest.c ---- */

#define NAME_SIZE      32 /* a backend's name or title, and its terminator */
#define MATCHES        16
#define NEEDS          16
#define MANIFEST_BYTES 4096

struct manifest {
    char text[MANIFEST_BYTES]; /* what the strings below point into */
    char name[NAME_SIZE];
    uint32_t abi_min, abi_max;
    int32_t rank;
    const char *title; /* "" where not given, as the next ones */
    const char *vendor;
    const char *remedy;
    const char *build;
    const char *match[MATCHES];
    uint32_t match_count;
    const char *needs[NEEDS];
    uint32_t need_count;
};

/* Reads `bytes` of manifest text. False: `why` (of `size` bytes) says what is wrong. */
bool manifest_parse(struct manifest *manifest, const char *text, size_t bytes, char *why,
                    size_t size);
/* Whether `length` bytes are a name that a backend may have. */
bool name_valid(const char *name, size_t length);

/* ---- scan.c ---- */

/* A place that was searched, in the order of searching. */
struct directory {
    struct directory *next;
    char *path;
    char *source; /* "built-in", or the setting that named it */
    char *state;  /* "read", or why not */
    dev_t device;
    ino_t inode;
};

/* A file that was looked at. */
struct candidate {
    struct candidate *next;
    char *path;           /* as found */
    char *real;           /* absolute, without links; once trusted */
    char *file;           /* the last part of path */
    char name[NAME_SIZE]; /* of the backend: from the file's name, then from the manifest */
    bool explicit_file;   /* named itself by the settings, not found in a directory */
    int fd;               /* open from trust to bind; -1 otherwise */
    dev_t device;
    ino_t inode;
    struct manifest *manifest; /* NULL before preflight has read it */
    enum stage stage;          /* the last one reached */
    enum reason reason;        /* why it stopped; REASON_NONE: it did not */
    char *message;
    char *remedy;
    uint64_t microseconds[STAGE_COUNT];
    struct plugin *plugin; /* once loaded */
};

/* Lists the candidates of all search directories into the context. */
enum hw_status scan(struct hw_context *context);
void scan_free(struct hw_context *context);

/* Whether no earlier candidate has its name, or is the same file, or none that could be
 * tried. */
bool first_of_name(struct hw_context *context, struct candidate *candidate);

/* Stops the candidate: `format` says what is wrong, NULL: the reason's own sentence.
 * Answers false, for: return stop(candidate, REASON_EMPTY, NULL). */
bool stop(struct candidate *candidate, enum reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with a remedy that is known better than the reason's own. */
void set_remedy(struct candidate *candidate, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether something is wrong with the file itself, not merely that it was not asked for or
 * that its vendor is not there: worth a warning. */
bool is_broken(const struct candidate *candidate);

/* ---- the stages: true to go on ---- */

bool trust_check(struct hw_context *context, struct candidate *candidate);
bool preflight(struct hw_context *context, struct candidate *candidate);
bool load(struct hw_context *context, struct candidate *candidate);
bool probe(struct hw_context *context, struct candidate *candidate);
/* Closes the plugin; its library stays in the process. */
void plugin_close(struct plugin *plugin);

/* ---- witness.c ---- */

/* How the process is before a plugin runs. NULL: there is no witness, as where other
 * threads run. */
struct witness *witness_begin(void);
/* What the plugin has changed since, or NULL; what can be put back is. With `handlers`,
 * signal handlers count: not once a vendor's libraries are in, some of which install
 * theirs. */
const char *witness_end(struct witness *witness, bool handlers);

/* ---- registry.c ---- */

#define MAX_DEVICES 256 /* of one plugin */

/* Asks the plugin and checks the answer; false: `why` says what is wrong with it. */
bool device_facts(struct plugin *plugin, int32_t index, struct hw_device_info *info,
                  char *why, size_t size);
/* Adds a device to the list of the unselected. */
enum hw_status registry_add(struct plugin *plugin, int32_t index,
                            const struct hw_device_info *info);
/* Forgets the devices of a plugin that failed half-way. */
void registry_drop(struct plugin *plugin);
void registry_free(struct hw_context *context);
/* "0000:3b:00.0" and "xxxxxxxx-xxxx-..."; "" where the device has none. */
#define PCI_SIZE  48
#define UUID_SIZE 37
void device_pci(const struct hw_device_info *info, char text[PCI_SIZE]);
void device_uuid(const struct hw_device_info *info, char text[UUID_SIZE]);
const char *device_kind_name(int32_t kind);

/* ---- selector.c: the grammar of HW_BACKENDS ---- */

/* One word of a list: [!]backend[:device][?]. */
struct word {
    char *text;    /* as written, without ! and ? */
    char *backend; /* a glob */
    char *device;  /* an index, a PCI address, a UUID or a glob of names; NULL: all */
    bool removes;
    bool optional;
};

#define MAX_WORDS 64

struct word_list {
    struct word *words;
    size_t count;
};

/* HW_INVALID names `source`, the word and the grammar; the list is empty then. */
enum hw_status words_parse(struct word_list *list, const char *text, const char *source);
void words_free(struct word_list *list);
/* Whether `*` (any text) and `?` (any character) match, ignoring the case of ASCII letters.
 */
bool glob(const char *pattern, const char *text);
bool is_glob(const char *pattern);
bool word_matches(const struct word *word, const struct hw_device *device);

/* ---- select.c ---- */

/* The lists of the settings. */
struct selection {
    struct word_list backends, disable, require;
};

/* Reads the lists, which filter() and select_devices() go by. With `anyway` a list in error
 * gives way to its default; the error is answered all the same. */
enum hw_status selection_read(struct hw_context *context, bool anyway);
void selection_free(struct hw_context *context);
/* Stage 1. */
bool filter(struct hw_context *context, struct candidate *candidate);
/* Orders the devices that were found, and moves those that the settings ask for from the
 * list of the unselected to the context's. */
enum hw_status select_devices(struct hw_context *context);

/* ---- small things ---- */

/* platform_posix.c */
bool process_elevated(void);
uint64_t microseconds_now(void);
/* The plugin directory beside the library that is running; see docs/build.md. Owned by
 * caller. */
char *plugin_directory(bool elevated);
/* The directory that the C library was loaded from, which is one of the system's. May be
 * NULL. */
char *libc_directory(void);
/* "2.36"; NULL where the C library is another one. */
const char *libc_version(void);

/* config.c: a warning for the report; takes `text`, which may be NULL. */
void settings_warn(struct settings *settings, char *text);

char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The name of `list` nearest to `name`, or NULL if none is near. */
const char *nearest(const char *name, const char *const *list, size_t count);

#endif
