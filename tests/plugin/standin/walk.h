/* SPDX-License-Identifier: MIT */
/* walk.h - uses all features of a device through the library, and checks the behaviour when one of
 * the vendor's functions fails on the way. */
#ifndef STANDIN_WALK_H
#define STANDIN_WALK_H

#include <hw/hw.h>
#include <hw/interop.h>
#include <hw/report.h>

#include <stdbool.h>

/* A vendor's error, and the words that its message contains. */
struct vendor_error {
    int result;
    const char *words;
};

struct walk;

struct vendor {
    const char *backend;
    struct vendor_error error;     /* one call fails, and that is all */
    struct vendor_error fatal;     /* the device is lost */
    const char *first_on_a_device; /* functions from here on can return the fatal error */
    const char *const *quiet;      /* functions whose failure need not be heard of */
    const char *leaky;             /* after its failure, nothing can be freed; or NULL */
    bool visible_memory, graphs;   /* the plugin has them */
    void (*import)(struct walk *w);
    int (*living)(void); /* objects that the plugin has not given back */
};

struct walk {
    const struct vendor *vendor;
    struct hw_context *context;
    struct hw_device *device;
    int index; /* its */
    struct hw_queue *queue, *second;
    enum hw_status status; /* the first error, and its message */
    char message[2048];
    bool brief;
    const char *step; /* the call that returned it */
    char log[1 << 16];
};

/* For the steps of a walk: keeps the first error. Steps after an error do nothing. */
#define TRY(call) ((void)(w->status || walk_keep(w, call, #call)))
bool walk_keep(struct walk *w, enum hw_status status, const char *step);

/* Opens a context with this backend alone. */
void walk_open(struct walk *w, const struct vendor *vendor);
/* Uses the index-th device, with `brief` only some of its features. Wrong results fail the test.
 * Waits, and frees its objects. */
void walk_device(struct walk *w, int index);
void walk_close(struct walk *w);
/* Whether y is silu of x. */
bool walk_is_silu(const float *y, const float *x, int n);

/* Fails each call of each function once, in a walk of its own. */
void every_call_fails_once(const struct vendor *vendor);

#endif
