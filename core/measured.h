/* SPDX-License-Identifier: MIT */
/* measured.h - what `hw tune` has measured of a device. open/profile.c reads it, run/cost.c
 * predicts with it. docs/routing.md describes the figures. */
#ifndef HW_MEASURED_H
#define HW_MEASURED_H

#include "core.h"

enum {
    PROFILE_POINTS = 16, /* of a row */
    PROFILE_ROWS = 1024,
    PROFILE_WHY = 384
};

/* Ops take different times with different types of the operand that decides: the weights of a
 * product, the first input of most others. */
enum cost_class { CLASS_F32, CLASS_F16, CLASS_BF16, CLASS_BLOCKS, CLASS_COUNT };

/* Of a product, how long much arithmetic takes, and how long one row takes, for which the weights
 * have to be read. Other ops have MANY alone. */
enum cost_form { FORM_MANY, FORM_ONE, FORM_COUNT };

/* What an amount takes beyond `base`: bytes, or multiplications. Amounts rise, times do not fall.
 */
struct cost_point {
    uint64_t amount, ns;
};
struct cost_row {
    uint64_t base; /* ns of a call on hardly anything */
    uint32_t count;
    struct cost_point at[PROFILE_POINTS];
};

/* A row that was not measured has no points. */
struct profile {
    int64_t written;          /* seconds since 1970; 0: nothing was measured that counts */
    char why[PROFILE_WHY];    /* then: why not */
    bool ignored;             /* and whether there is a file, which does not count */
    struct cost_row up, down; /* transfers to the device and back, of so many bytes */
    struct cost_row wait;     /* base: waiting for a queue that has nothing to do */
    struct cost_row op[HW_OP_COUNT][CLASS_COUNT][FORM_COUNT];
};

extern const char *const cost_class_names[CLASS_COUNT];
extern const char *const cost_form_names[FORM_COUNT];

/* The profile of a device, read when it is first asked for (open/profile.c), and unchanged from
 * then on; NULL if out of memory. Any thread may call. */
const struct profile *device_profile(struct hw_device *device);

#endif
