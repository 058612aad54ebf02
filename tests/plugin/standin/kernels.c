/* SPDX-License-Identifier: MIT */
/* kernels.c - see kernels.h. */
#include "kernels.h"

#include <stdatomic.h>
#include <string.h>

/* The forms, as plugins/cpu compiles them for its baseline processors. */
extern const struct portable_kernels portable_mixed_base;
#define VARIANT(act, wgt)                                                                  \
    extern const struct portable_kernels portable_##act##_##wgt##_base;
#include "kernels.def"

static const struct {
    const char *suffix;
    const struct portable_kernels *kernels;
} forms[FORM_COUNT] = {
    { "", &portable_mixed_base },
#define VARIANT(act, wgt) { "_" #act "_" #wgt, &portable_##act##_##wgt##_base },
#include "kernels.def"
};

static const struct {
    const char *name;
    unsigned pointers;
    size_t bytes;
} kernels[PORTABLE_COUNT] = {
#define K(name, args, pointers) { #name, pointers, sizeof(struct args) },
#define MIXED                   K
#define PLAIN                   K
#define WEIGHTED                K
#include "kernels.def"
#undef K
};

bool kernel_find(const char *name, struct kernel *kernel)
{
    for (int k = 0; k < PORTABLE_COUNT; k++) {
        const size_t length = strlen(kernels[k].name);
        if (strncmp(name, kernels[k].name, length) != 0)
            continue;
        for (int f = 0; f < FORM_COUNT; f++) {
            portable_fn *run = forms[f].kernels->kernel[k];
            if (!run || strcmp(name + length, forms[f].suffix) != 0)
                continue;
            *kernel = (struct kernel){ run, kernels[k].pointers, kernels[k].bytes };
            return true;
        }
    }
    return false;
}

static atomic_bool idle;

void kernels_compute(bool on)
{
    atomic_store(&idle, !on);
}

static void run(void *data)
{
    const struct kernel_launch *launch = data;
    if (atomic_load(&idle))
        return;
    launch->run(launch->pointers, &launch->args, 0, launch->groups);
}

void stream_submit_launch(struct stream *stream, const struct kernel_launch *launch)
{
    stream_submit(stream, run, launch, sizeof *launch);
}
