/* SPDX-License-Identifier: MIT */
/* module.h - from the text of a program to code loaded on the device, through the cache.
 *
 * A plugin supplies two functions: one compiles text into an image (machine code, or another form
 * that the driver can load later), the other loads an image. module_load() looks for an image of
 * the program in the cache (cache.h). If there is none, it compiles the text and stores the image.
 * An optional third function compiles and loads without an image; it is used where there is no
 * cache.
 *
 * The key of an image is the SHA-256 of everything that it depends on: the text, the options, the
 * device, the driver's version and the build of the plugin. An image that the driver refuses is
 * compiled again, so an incomplete key costs only time. */
#ifndef COMMON_MODULE_H
#define COMMON_MODULE_H

#include "embed.h"

#include <hw/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>

enum { MODULE_PARTS = 16, MODULE_LOG_MOST = 768 };

struct module_program {
    const char *name;                           /* for messages: "rmsnorm f16" */
    const char *options;                        /* for the compiler: "-DACT=f16" */
    const struct embedded *parts[MODULE_PARTS]; /* the text, in order; NULL ends it */
};

/* Makes the text one kernel: the headers of an embedded list, in order, and <kernel>.c or
 * <kernel>.cl. False if the list has no such kernel. */
bool module_parts(struct module_program *program, const struct embedded *list,
                  const char *kernel);

/* The result of compile(). */
struct module_image {
    void *data; /* from malloc(); module_load() frees it */
    size_t bytes;
    char log[MODULE_LOG_MOST]; /* the compiler's output, cut off if too long; "" at first */
};

/* How to build programs for one device. device_open() fills it in; all strings stay valid as long
 * as the builder. Any thread may call module_load() with it, so any thread may call the
 * functions. */
struct module_builder {
    const struct hw_host *host;
    const char *device; /* name and architecture: "NVIDIA H200 sm_90" */
    const char *driver; /* its version: "580.159.04" */
    const char *build;  /* HW_BUILD_STAMP */
    void *user;         /* for the functions */

    /* Compiles `text`: the parts joined, NUL-terminated. On failure the log has the reason. */
    int32_t (*compile)(void *user, const struct module_program *program, const char *text,
                       struct module_image *image);
    /* Loads an image that compile() made, now or in an earlier process. */
    int32_t (*load)(void *user, const void *image, size_t bytes, void **module);
    /* Compiles and loads at once; `image` is only for the log. NULL: images cost nothing extra. */
    int32_t (*make)(void *user, const struct module_program *program, const char *text,
                    struct module_image *image, void **module);

    atomic_bool
        silent; /* set by module_load() when it has logged that the cache is unusable */
};

/* Loads the program. If the cache cannot be used, module_load() compiles and writes one line to the
 * debug log; that is not an error. If compile() fails, the message names the program and the device
 * and quotes the log; if load() fails, load() has set the message. */
int32_t module_load(struct module_builder *builder, const struct module_program *program,
                    void **module);

#endif
