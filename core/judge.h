/* SPDX-License-Identifier: MIT */
/* judge.h - the contract between the library and hw_shadow.so, which judges results for
 * HW_SHADOW: it has the tolerances of conformance. It is of the library's build and is installed
 * beside hw-probe. load/proxy.c loads it, route/shadow.c calls it, verify/shadow.c implements
 * it. */
#ifndef HW_JUDGE_H
#define HW_JUDGE_H

#include <hw/plugin.h>

struct hw_queue;

/* A call of an application, with functions of the library. Each function waits for the queue, and
 * may be called only during a step of struct shadow_judge. */
struct shadow_call {
    uint32_t op;
    uint32_t precision; /* enum hw_precision */
    const void *args;   /* the op's struct */
    struct hw_queue *queue;
    /* Copies an operand to a tensor in host memory with the same extents and dtype, or back. */
    enum hw_status (*move)(struct hw_queue *queue, const struct hw_tensor *dst,
                           const struct hw_tensor *src);
    /* Computes an op on the CPU plugin. */
    enum hw_status (*compute)(struct hw_queue *queue, uint32_t op, const void *args);
};

enum shadow_verdict {
    SHADOW_RIGHT,
    SHADOW_WRONG,
    SHADOW_UNKNOWN /* memory ran out, or the CPU plugin does not compute the op */
};

struct shadow_copies;

/* The steps of a comparison. Any thread may call them. */
struct shadow_judge {
    /* Copies the operands before the device computes the op. NULL: the call cannot be compared,
     * because memory is short or an operand is packed. */
    struct shadow_copies *(*begin)(const struct shadow_call *call);
    /* The device has computed the op: computes it on the CPU plugin and compares the results.
     * With SHADOW_WRONG, `why` has the shapes and an element: "with x f32 [1, 4], y f32 [1, 4],
     * y[0,3] is 2, should be 11 (HW_SHADOW)". */
    enum shadow_verdict (*judge)(struct shadow_copies *copies, char *why, size_t size);
    /* Copies the CPU plugin's results to the operands of the call. */
    enum hw_status (*correct)(struct shadow_copies *copies);
    void (*end)(struct shadow_copies *copies); /* does nothing for NULL */
};

/* Fills `judge`. HW_ABI if the library is of another build. */
typedef int32_t shadow_entry(const char *stamp, struct shadow_judge *judge);
HW_EXPORT shadow_entry hw_shadow_entry;

#endif
