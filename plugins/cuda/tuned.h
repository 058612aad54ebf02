/* SPDX-License-Identifier: MIT */
/* tuned.h - the tuned kernels and their images, by number, from tuned.def. */
#ifndef CUDA_TUNED_H
#define CUDA_TUNED_H

#include <hw/plugin.h>

#include "common/lower.h"

/* The images: one per form of the portable kernels, by number, then the tuned images. */
enum {
    IMAGE_LAST_FORM = FORM_COUNT - 1,
#define IMAGE(image) IMAGE_##image,
#include "tuned.def"
    IMAGE_COUNT
};

enum family {
#define FAMILY(image, family) FAMILY_##family,
#include "tuned.def"
    FAMILY_COUNT
};

enum tuned {
    TUNED_NONE,
#define TUNED(family, kernel, type) TUNED_##kernel,
#include "tuned.def"
    TUNED_COUNT
};

extern const struct tuned_kernel {
    const char *name;
    enum family family;
} tuned_kernels[TUNED_COUNT];

int tuned_image(enum tuned kernel);

/* The kernel of a family for a type; TUNED_NONE if the family has none. */
enum tuned tuned_of(enum family family, int32_t type);

#endif
