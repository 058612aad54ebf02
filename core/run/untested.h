/* SPDX-License-Identifier: MIT */
/* untested.h - ops that the admission test skipped because time ran out. Each is tested before its
 * device gets it for the first time. */
#ifndef HW_RUN_UNTESTED_H
#define HW_RUN_UNTESTED_H

#include "base/likely.h"
#include "run/demotion.h"
#include "run/ops.h"

/* The results for such ops of a device since the device was listed. */
struct tested {
    _Atomic uint32_t tested, settled; /* cases: computed; no longer untested */
    _Atomic uint32_t withdrawn;       /* ops that were withdrawn */
    _Atomic uint64_t microseconds;
    uint32_t forms;    /* how many forms were skipped */
    atomic_bool begun; /* the log has said that ops are being tested */
    atomic_bool told;  /* the log has said why some cannot be tested */
};
/* The results for the device; NULL: no op was skipped. */
const struct tested *tested_since(const struct hw_device *device);

/* Replaces the list of skipped forms on a device that is not in use yet: left[i] cases of forms[i]
 * were skipped. False if out of memory. */
bool untested_list(struct hw_device *device, const struct op_form *forms,
                   const uint8_t *left, uint32_t count);
void untested_free(struct hw_device *device);

/* HW_UNSUPPORTED, with the reason, if other devices must compute the op. If the op is untested, it
 * is tested first. Call this before the device gets an op; queries use check_demotion() instead.
 * Called with no lock held. */
enum hw_status admit_slowly(struct hw_device *device, uint32_t op, const void *args);

static inline enum hw_status admit(struct hw_device *device, uint32_t op, const void *args)
{
    return unlikely(atomic_load_explicit(&device->demoted, memory_order_acquire) != 0)
               ? admit_slowly(device, op, args)
               : HW_OK;
}

#endif
