/* SPDX-License-Identifier: MIT */
/* demotion.h - ops that a device does not compute, because they failed there or are wrong. */
#ifndef HW_RUN_DEMOTION_H
#define HW_RUN_DEMOTION_H

#include "base/json.h"
#include "base/likely.h"
#include "core.h"
#include "run/ops.h"

#define DTYPES_SIZE 64

/* "f32 q8_0 - f32": the dtypes of the operands in order. */
void write_dtypes(uint32_t op, const void *args, char text[DTYPES_SIZE]);

/* Whether an op is demoted if submitting it fails with this status, which says that the driver or
 * plugin cannot handle this op. Other statuses have causes that may pass or are unknown. */
static inline bool demotes(enum hw_status status)
{
    return status == HW_DRIVER || status == HW_INTERNAL || status == HW_IO;
}

/* An op on operands of some dtypes that failed on a device. */
struct failure {
    struct hw_device *device;
    uint32_t op;
    const void *args;
    const char *why;
    bool wrong; /* it was submitted, but its result was wrong */
};

/* From now on, other devices compute this op on operands of these dtypes. Logged, and listed by
 * hw_explain(). Does nothing if the op is demoted already, or if out of memory. */
void demote(const struct failure *failure);

/* A result of the admission test (tools/probe): an op that the device must not compute. */
struct withdrawal {
    uint32_t op;
    const int32_t *dtypes; /* MAX_OPERANDS of them; HW_NONE: any, or absent */
    const char *why;
};

/* Demotes an op before its first use, because it failed the admission test on operands of these
 * dtypes. Not logged. False if out of memory. The caller holds the context's lock. */
bool withdraw(struct hw_device *device, const struct withdrawal *withdrawal);

/* The remedy for an op that was withdrawn, as the end of a sentence. */
#define WITHDRAWAL_REMEDY "update the driver or the plugin"

/* "f32 * * f32", where * is HW_NONE. */
void write_withdrawn(uint32_t op, const int32_t dtypes[MAX_OPERANDS],
                     char text[DTYPES_SIZE]);

/* A bit of hw_device.demoted: some ops are still untested (untested.h). The other bits count
 * demotions, so one load tells whether a call needs a closer look. hw_device_reset() clears all. */
#define UNTESTED (UINT32_C(1) << 31)

static inline bool has_demotions(const struct hw_device *device)
{
    return (atomic_load_explicit(&device->demoted, memory_order_acquire) & ~UNTESTED) != 0;
}

/* HW_UNSUPPORTED, with the reason, if other devices compute the op. */
enum hw_status find_demotion(struct hw_device *device, uint32_t op, const void *args);

static inline enum hw_status check_demotion(struct hw_device *device, uint32_t op,
                                            const void *args)
{
    return unlikely(has_demotions(device)) ? find_demotion(device, op, args) : HW_OK;
}

/* Forgets the calls that the queue has seen if its device has demoted an op since then. */
void queue_refresh(struct hw_queue *queue);

/* Forgets the demotions of a device that is about to be freed. */
void demotions_drop(const struct hw_device *device);
void demotions_free(struct hw_context *context);
/* The caller holds the context's lock. */
void explain_demotions(struct json *json, const struct hw_context *context);

#endif
