/* SPDX-License-Identifier: MIT */
/* untested.h - ops that the admission test left out because time ran out. Each is tested before
 * its device is first given it. */
#ifndef HW_RUN_UNTESTED_H
#define HW_RUN_UNTESTED_H

#include "base/likely.h"
#include "run/demotion.h"
#include "run/ops.h"

/* What has been found out about such ops of a device since it was listed. */
struct tested {
    _Atomic uint32_t tested, settled; /* cases: computed; not left out any more */
    _Atomic uint32_t withdrawn;       /* ops */
    _Atomic uint64_t microseconds;
    uint32_t forms;    /* that were left out */
    atomic_bool begun; /* the log has said that they are being tested, */
    atomic_bool told;  /* or why some cannot be */
};
/* Of the device; NULL: none was left out. */
const struct tested *tested_since(const struct hw_device *device);

/* Lists what the admission test left out on a device that nobody uses yet, in place of what is
 * listed: of each of its forms, so many cases. False if out of memory. */
bool untested_list(struct hw_device *device, const struct op_form *forms,
                   const uint8_t *left, uint32_t count);
void untested_free(struct hw_device *device);

/* HW_UNSUPPORTED, with the reason, if other devices compute the op; before that, it is tested if
 * the admission test left it out. For those who are about to give it to the device: questions use
 * check_demotion(). Called with no lock held. */
enum hw_status admit_slowly(struct hw_device *device, uint32_t op, const void *args);

static inline enum hw_status admit(struct hw_device *device, uint32_t op, const void *args)
{
    return unlikely(atomic_load_explicit(&device->demoted, memory_order_acquire) != 0)
               ? admit_slowly(device, op, args)
               : HW_OK;
}

#endif
