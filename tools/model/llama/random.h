/* SPDX-License-Identifier: MIT */
/* random.h - models of known shapes with random weights: for measuring without a file. */
#ifndef HW_MODEL_RANDOM_H
#define HW_MODEL_RANDOM_H

#include "model/gguf/quantize.h"
#include "model/gguf/shape.h"

#include <hw/hw.h>

/* The names of the known shapes, terminated by NULL, and the shape of a name; NULL if there is
 * none. */
const char *const *random_names(void);
const struct shape *random_shape(const char *name);

/* Describes a file that `hw quantize` would write for a model of this shape: its tensors have
 * names, types and extents, but no data, and there is no metadata. `name` takes the place of the
 * path. Free with gguf_close(). */
struct gguf *random_model(const char *name, const struct shape *shape,
                          const struct recipe *recipe, struct fault *why);

/* Random numbers in each type that was asked for so far, on the device of a queue. */
struct random_pool {
    struct hw_queue *queue;
    float *values; /* on the host */
    struct hw_tensor of_type[HW_DTYPE_END];
};

/* Fills a contiguous tensor on the device: a vector with ones, as the weights of norms are, a
 * matrix with numbers of mean 0 and standard deviation 0.02, as the weights of real models have.
 * Returns before the work is done. */
bool random_fill(struct random_pool *pool, const struct hw_tensor *tensor,
                 struct fault *why);

/* The queue must have been waited for. */
void random_close(struct random_pool *pool);

#endif
