/* SPDX-License-Identifier: MIT */
/* measured.h - the profile of a device, which `hw tune` measures. open/profile.c reads it,
 * run/cost.c predicts with it. docs/routing.md describes the figures. */
#ifndef HW_MEASURED_H
#define HW_MEASURED_H

#include "core.h"

enum {
    PROFILE_POINTS = 16, /* per row */
    PROFILE_ROWS = 1024,
    PROFILE_WHY = 384
};

/* The time of an op depends on the type of one operand: the weights of a product, the first input
 * of most other ops. */
enum cost_class { CLASS_F32, CLASS_F16, CLASS_BF16, CLASS_BLOCKS, CLASS_COUNT };

/* A product has two rows. FORM_MANY: many rows of input, limited by arithmetic. FORM_ONE: one row
 * of input, limited by reading the weights. Other ops have FORM_MANY only. */
enum cost_form { FORM_MANY, FORM_ONE, FORM_COUNT };

/* The time that an amount (bytes, or multiplications) takes beyond `base`. From point to point,
 * amounts rise and times do not fall. */
struct cost_point {
    uint64_t amount, ns;
};
struct cost_row {
    uint64_t base; /* ns of a call on tiny operands */
    uint32_t count;
    struct cost_point at[PROFILE_POINTS];
};

/* A row that was not measured has no points. */
struct profile {
    int64_t written;          /* seconds since 1970; 0: there is no valid profile */
    char why[PROFILE_WHY];    /* without a valid profile: why there is none */
    bool ignored;             /* without a valid profile: a file exists, but is invalid */
    struct cost_row up, down; /* transfers to the device and back, by bytes */
    struct cost_row wait;     /* base: waiting for an idle queue */
    struct cost_row op[HW_OP_COUNT][CLASS_COUNT][FORM_COUNT];
};

extern const char *const cost_class_names[CLASS_COUNT];
extern const char *const cost_form_names[FORM_COUNT];

/* The profile of a device. The first call reads it (open/profile_file.c); it does not change after
 * that. NULL if out of memory. Any thread may call this. */
const struct profile *device_profile(struct hw_device *device);

#endif
