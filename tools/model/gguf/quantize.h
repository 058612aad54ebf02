/* SPDX-License-Identifier: MIT */
/* quantize.h - converts the matrices of a model file to another type, through hw_copy. */
#ifndef HW_MODEL_QUANTIZE_H
#define HW_MODEL_QUANTIZE_H

#include "gguf.h"

#include <hw/hw.h>

/* The types of the tensors in a file, by a name such as Q4_K_M. */
struct recipe;

/* The recipes' names, terminated by NULL, and the recipe of a name, in capitals or not;
 * NULL if there is none. */
const char *const *recipe_names(void);
const struct recipe *recipe_find(const char *name);

/* The conversion of a tensor. */
struct quantize_step {
    const struct gguf_tensor *from;
    uint32_t to; /* the type; if it is copied, the type of `from` */
    uint64_t bytes;
    /* the type that the recipe asked for, if rows are not whole blocks of it; otherwise
     * `to` */
    uint32_t wanted;
};

struct quantize_plan {
    struct quantize_step *steps; /* in the order of the file */
    size_t count;
    uint64_t before, after; /* bytes of the tensors' data */
};

/* Decides for each tensor. `pure`: all matrices get the recipe's first type. Refuses a part of a
 * model, because it does not show how many layers there are. Free with quantize_free(), also after
 * a failure. */
bool quantize_decide(const struct gguf *file, const struct recipe *recipe, bool pure,
                     struct quantize_plan *plan, struct fault *why);
void quantize_free(struct quantize_plan *plan);

struct quantize_output {
    const char *path;
    bool replace;             /* the file of that name, if there is one */
    struct hw_device *device; /* that converts */
    /* called with the bytes read so far, of `plan->before`; false ends the work */
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};

/* Writes the file. It appears only when it is complete.
 * Memory is bounded, whatever the size of the tensors. */
bool quantize_write(const struct gguf *file, const struct recipe *recipe,
                    const struct quantize_plan *plan, const struct quantize_output *output,
                    struct fault *why);

#endif
