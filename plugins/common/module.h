/* SPDX-License-Identifier: MIT */
/* module.h - from the text of a program to code that the device has loaded, through the
 * cache.
 *
 * A plugin supplies two functions: one compiles text into an image (machine code, or
 * whatever the driver accepts the next time), the other loads an image. module_load()
 * looks for an image of the same program in the cache (cache.h), compiles the text if
 * there is none, and stores the image. A third function, which may be missing, does without
 * an image what both do: it is used where there is no cache to keep one.
 *
 * The key of an image is the SHA-256 of everything that it depends on: the text, the
 * options, the device, the driver's version and the build of the plugin. An image that
 * the driver refuses is compiled anew, so a key that says too little costs time and
 * nothing else. */
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

/* Makes the text one kernel: the headers of an embedded list, in its order, and <kernel>.c or
 * <kernel>.cl. False if the list has no such kernel. */
bool module_parts(struct module_program *program, const struct embedded *list,
                  const char *kernel);

/* What compile() returns. */
struct module_image {
    void *data; /* from malloc(); module_load() frees it */
    size_t bytes;
    char log[MODULE_LOG_MOST]; /* the compiler's output, cut off if too long; "" at first */
};

/* How programs are built for one device. device_open() fills it in; all strings stay
 * valid as long as the builder. Any thread may call module_load() with it, so any thread
 * may call the functions. */
struct module_builder {
    const struct hw_host *host;
    const char *device; /* name and architecture: "NVIDIA H200 sm_90" */
    const char *driver; /* its version: "580.159.04" */
    const char *build;  /* HW_BUILD_STAMP */
    void *user;         /* for the functions */

    /* Compiles `text`, the parts joined, NUL-terminated. On failure the log says why. */
    int32_t (*compile)(void *user, const struct module_program *program, const char *text,
                       struct module_image *image);
    /* Loads an image. The bytes come from compile(), now or in an earlier process. */
    int32_t (*load)(void *user, const void *image, size_t bytes, void **module);
    /* Compiles and loads at once; `image` is for the log alone. NULL: an image costs nothing. */
    int32_t (*make)(void *user, const struct module_program *program, const char *text,
                    struct module_image *image, void **module);

    atomic_bool
        silent; /* set by module_load() when it has logged that the cache is unusable */
};

/* Loads the program. A cache that cannot be used costs one line of the debug log and the
 * time to compile, and is not an error. If compile() fails, the message names the program and
 * the device and quotes the log; if load() fails, the message is load()'s. */
int32_t module_load(struct module_builder *builder, const struct module_program *program,
                    void **module);

#endif
