/* SPDX-License-Identifier: MIT */
/* The tuned kernels: their names, images, families and types. */
#include "tuned.h"

static const int images[FAMILY_COUNT] = {
#define FAMILY(image, family) [FAMILY_##family] = IMAGE_##image,
#include "tuned.def"
};

static const uint8_t kernels[FAMILY_COUNT][HW_DTYPE_END] = {
#define TUNED(family, kernel, type) [FAMILY_##family][HW_##type] = TUNED_##kernel,
#include "tuned.def"
};
_Static_assert(TUNED_COUNT <= UINT8_MAX, "numbers of kernels");

const struct tuned_kernel tuned_kernels[TUNED_COUNT] = {
#define TUNED(family, kernel, type) [TUNED_##kernel] = { #kernel, FAMILY_##family },
#include "tuned.def"
};

int tuned_image(enum tuned kernel)
{
    return images[tuned_kernels[kernel].family];
}

enum tuned tuned_of(enum family family, int32_t type)
{
    return (enum tuned)kernels[family][type];
}
