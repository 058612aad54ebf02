/* SPDX-License-Identifier: MIT */
/* hw/report.h - what the library found and did: the report, names, counts, routes, kernels, and the
 * figures of pools and graphs; and the fields of ops, for bindings. */
#ifndef HW_REPORT_H
#define HW_REPORT_H

#include "hw.h"

#ifdef __cplusplus
extern "C" {
#endif

/* GCC warns when a C++ struct and a function share a name, which is valid. */
#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* ---- The report ---- */

/* Writes a report as JSON ("schema": 1): the settings and their sources, every file that
 * was examined with the stage it reached, the reason and the remedy, the devices, the
 * selection, and calls and fallbacks per op. Like snprintf(), it writes at most `size`
 * bytes including the terminator and returns the full length without it, so that a call
 * with a size of 0 measures. */
HW_EXPORT size_t hw_explain(struct hw_context *context, char *text, size_t size);

/* ---- Names, and the fields of ops ---- */

/* Names such as "HW_INVALID", "f16" and "rmsnorm". For an unknown value they return "?". */
HW_EXPORT const char *hw_status_name(int32_t status);
HW_EXPORT const char *hw_dtype_name(int32_t dtype);
HW_EXPORT const char *hw_op_name(uint32_t op);
/* Sets `op` to the number of the op with this name, for hw_submit(). Returns HW_UNSUPPORTED if
 * this library has no such op; the message lists the names. */
HW_EXPORT enum hw_status hw_op_find(const char *name, uint32_t *op);

/* A field of an op's struct. With these, a binding for another language can fill in the struct
 * of any op without a declaration of its own. `hw abi` prints all of them, and the layout of
 * every other struct. */
struct hw_field_info {
    uint32_t size; /* set by the caller */
    int32_t type;  /* enum hw_field_type */
    int32_t role;  /* enum hw_role, if it is a tensor */
    uint32_t offset;
    uint32_t bytes;
    uint32_t reserved;
    const char *name;
    /* The meaning of the value zero: "1", "10000", "1/sqrt(D)", "unlimited". For a tensor,
     * "absent". "0" if it is just the number, "" if the field must be set. */
    const char *zero;
};
/* Describes field `index` of the struct of `op`, in the order of the struct. Set info->size
 * first. Returns HW_END past the last field, without setting the message. */
HW_EXPORT enum hw_status hw_op_field(uint32_t op, uint32_t index,
                                     struct hw_field_info *info);
/* The size in bytes of the struct of `op`, as this library knows it; 0 for an unknown op. */
HW_EXPORT size_t hw_op_size(uint32_t op);

/* ---- Calls ---- */

/* How the calls of one op on a queue were executed. */
struct hw_call_stats {
    uint32_t size;
    uint32_t reserved;
    uint64_t calls;          /* submitted and accepted */
    uint64_t fallbacks;      /* calls that another device computed */
    uint64_t fallback_bytes; /* bytes copied there and back */
    uint64_t staged_bytes;   /* bytes of host tensors copied to the device and back */
    uint64_t copied_views;   /* operands that were made contiguous first */
    /* calls that could not be submitted on the device, even if another device then computed them:
     * see hw_device_reset() */
    uint64_t failed;
    uint64_t compared; /* with HW_SHADOW: calls that the CPU plugin computed as well */
    uint64_t wrong;    /* compared calls whose result was wrong */
    /* calls that the CPU plugin computed because it is expected to be faster: see
     * hw_queue_route() */
    uint64_t routed;
};
HW_EXPORT enum hw_status hw_queue_calls(struct hw_queue *queue, uint32_t op,
                                        struct hw_call_stats *stats);

/* Which device would compute a call, and why. */
struct hw_route_info {
    uint32_t size; /* set by the caller */
    uint32_t reserved;
    struct hw_device *device; /* the device that computes the call; NULL: none does */
    const char *why;          /* a sentence; never NULL; constant */
    /* The estimates, in seconds, for operands in host memory: if they are copied to a device and
     * back, and if the CPU plugin computes the call. They depend only on the call. */
    double own, cpu;
    double moved; /* the bytes that would be copied to a device and back */
};

/* Reports which device would compute this call, with the estimates that decide. Nothing is
 * computed, and the memory of the operands is not read.
 *
 * The CPU plugin computes a call whose operands are all in host memory that the queue's device
 * cannot read, if that is expected to be at least twice as fast as copying them to the device and
 * back. This applies only if the library itself chose the device: hw_device_default() returned it,
 * neither HW_BACKENDS nor HW_REQUIRE names its backend without a glob, and the application did not
 * ask for it with hw_device_find(), hw_device_import() or hw_queue_import(). Only choices made
 * before the queue was opened count: hw_device_find() before hw_queue_open() keeps all calls of the
 * queue on its device. Calls with tensors in buffers are never routed, nor are graphs, nor calls on
 * a queue with outstanding work; HW_FALLBACK=error never routes. hw_queue_calls() counts such calls
 * as `routed`. docs/routing.md has the rules.
 *
 * Returns HW_INVALID where submitting the op would. */
HW_EXPORT enum hw_status hw_queue_route(struct hw_queue *queue, uint32_t op,
                                        const void *args, size_t size,
                                        struct hw_route_info *info);
/* Describes row `index` of the device's kernels for `op`; the best row is first. Set
 * info->size first. Returns HW_END past the last row, without setting the message, and
 * HW_UNSUPPORTED if the plugin does not list its kernels. */
HW_EXPORT enum hw_status hw_device_kernel(struct hw_device *device, uint32_t op,
                                          uint32_t index, struct hw_kernel_info *info);

/* ---- Pools and graphs ---- */

/* The state of a device's memory pool. It includes the library's own scratch memory. `held` and
 * `used` also include the memory that a plugin allocates for itself and reports. */
struct hw_pool_stats {
    uint32_t size;
    uint32_t reserved;
    uint64_t held;     /* bytes allocated from the device */
    uint64_t used;     /* bytes in current buffers, with the pool's rounding */
    uint64_t peak;     /* maximum of `used` so far */
    uint64_t limit;    /* HW_MEMORY_LIMIT; 0: none */
    uint64_t requests; /* buffers allocated so far */
    uint64_t hits;     /* requests that needed no call to the driver */
    uint64_t buffers;  /* current buffers */
};
HW_EXPORT enum hw_status hw_pool_stats(struct hw_device *device,
                                       struct hw_pool_stats *stats);

struct hw_graph_info {
    uint32_t size;
    uint32_t nodes;
    uint32_t segments; /* runs of consecutive nodes that are submitted together */
    uint32_t built;    /* segments that the plugin built; others are replayed op by op */
};
HW_EXPORT enum hw_status hw_graph_info(struct hw_graph *graph, struct hw_graph_info *info);

#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif
#endif
