/* SPDX-License-Identifier: MIT */
/* op_state.h - the states of a device's ops: untested ones, and rejected ones, which other devices
 * compute because they failed on this device or are wrong there. */
#ifndef HW_ROUTE_OP_STATE_H
#define HW_ROUTE_OP_STATE_H

#include "base/json.h"
#include "base/likely.h"
#include "call/ops.h"
#include "core.h"

#define DTYPES_SIZE 64

/* "f32 q8_0 - f32": the dtypes of the operands in order. */
void write_dtypes(uint32_t op, const void *args, char text[DTYPES_SIZE]);
/* "f32 * * f32", where * is HW_NONE: any, or absent. */
void write_form(uint32_t op, const int32_t dtypes[MAX_OPERANDS], char text[DTYPES_SIZE]);

/* Bits of hw_device.op_flags, so that one load tells whether a call needs a closer look. */
enum {
    OPS_UNTESTED = 1,      /* some forms are untested, or are being tested */
    OPS_REJECTED = 2,      /* other devices compute some ops */
    OPS_TESTING_TOLD = 4,  /* the log has said that ops are being tested */
    OPS_UNTESTED_TOLD = 8, /* the log has said why some cannot be tested */
};

/* ---- filling the list ---- */

/* The remedies for ops that failed or are wrong, and for slow ops, as the end of a sentence. */
#define OP_REMEDY   "update the driver or the plugin"
#define SLOW_REMEDY "test it with HW_PROBE=full hw status, or raise HW_PROBE_TIMEOUT"

/* Lists a form that the admission test has tested, or else skipped because time ran out. The device
 * is not in use yet. False if out of memory. */
bool op_list_form(struct hw_device *device, const struct op_form *form, bool tested);

/* A result of the admission test (tools/probe): an op that the device must not compute. */
struct withdrawal {
    uint32_t op;
    const int32_t *dtypes; /* MAX_OPERANDS of them; HW_NONE: any, or absent */
    const char *why;
    bool slow; /* it took too long, and may be right */
};
/* From now on, other devices compute the op. Not logged. False if out of memory. The caller holds
 * the context's lock. */
bool op_withdraw(struct hw_device *device, const struct withdrawal *withdrawal);

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
 * hw_explain(). Does nothing if the op is rejected already, or if out of memory. */
void demote(const struct failure *failure);

/* Empties the list of a device that is not in use. */
void op_states_free(struct hw_device *device);

/* ---- asking ---- */

static inline bool has_rejected(const struct hw_device *device)
{
    return atomic_load_explicit(&device->op_flags, memory_order_acquire) & OPS_REJECTED;
}

/* HW_UNSUPPORTED, with the reason, if other devices must compute the op. With `test`, an untested
 * form is tested first. Called with no lock held. */
enum hw_status op_look_up(struct hw_device *device, uint32_t op, const void *args,
                          bool test);

/* For questions, which test nothing. */
static inline enum hw_status check_rejected(struct hw_device *device, uint32_t op,
                                            const void *args)
{
    return unlikely(has_rejected(device)) ? op_look_up(device, op, args, false) : HW_OK;
}

/* Called before the device gets an op. */
static inline enum hw_status admit(struct hw_device *device, uint32_t op, const void *args)
{
    const uint32_t flags = atomic_load_explicit(&device->op_flags, memory_order_acquire);
    return unlikely(flags & (OPS_UNTESTED | OPS_REJECTED))
               ? op_look_up(device, op, args, true)
               : HW_OK;
}

/* Forgets the calls that the queue has seen if its device has rejected an op since then. */
void queue_refresh(struct hw_queue *queue);

/* Reports the ops that are rejected. The caller holds the context's lock. */
void explain_rejected(struct json *json, const struct hw_context *context);

#endif
