/* SPDX-License-Identifier: MIT */
/* hw/interop.h - work together with a vendor's own API: handles of devices, memory and queues in
 * both directions, kernels of the application, and ops that only one plugin has.
 *
 * `kind` says what a handle is: "<plugin>.<what>", such as "cuda.stream". The plugin's
 * documentation lists its kinds. */
#ifndef HW_INTEROP_H
#define HW_INTEROP_H

#include "hw.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hw_kernel;

/* ---- Devices ---- */

/* Finds the device to which a vendor's handle refers. `kind` says what the handle is:
 * "<plugin>.<what>" ("cuda.device", "opencl.device"), as listed in the plugin's documentation. The
 * plugin is loaded, but no device is opened. The device belongs to the context, like every other.
 *
 * Returns HW_UNSUPPORTED if no plugin knows handles of this kind, and HW_NO_DEVICE if the device
 * is not one of the context's. */
HW_EXPORT enum hw_status hw_device_import(struct hw_context *context, const char *kind,
                                          void *handle, struct hw_device **device);

/* ---- Memory ---- */

/* Wraps memory that the application allocated by other means, or part of it, in a buffer.
 * Nothing is copied. The memory still belongs to the application and must outlive the
 * buffer. Before host memory is imported, wait for every queue that uses it in a host tensor:
 * the wait itself writes small results. Memory that must not be written, such as a file mapped
 * for reading, needs HW_BUFFER_READ_ONLY; it cannot be the destination of a copy.
 *
 * Returns HW_UNSUPPORTED if the backend cannot wrap memory of this kind or at this offset,
 * and HW_INVALID if the handle is not valid or the memory is too small. */
HW_EXPORT enum hw_status hw_buffer_import(struct hw_device *device,
                                          const struct hw_import *desc,
                                          struct hw_buffer **buffer);
/* The reverse: describes a buffer's memory in the vendor's terms, for calls of the vendor's
 * own API. `kind` is one that hw_buffer_import() accepts, "cuda.memory" for example. Sets all
 * fields of `desc` except size, which the caller sets: the buffer's first byte is desc->offset
 * bytes into desc->handle. The memory still belongs to the buffer. The library does not see other
 * uses of it: order them with the same queue (see hw_queue_export()) or by waiting.
 *
 * Returns HW_UNSUPPORTED if the backend has no handle of this kind. */
HW_EXPORT enum hw_status hw_buffer_export(struct hw_buffer *buffer, const char *kind,
                                          struct hw_import *desc);

/* ---- Queues ---- */

/* Wraps a queue or stream that the application created without the library. `kind` says what the
 * handle is: "<plugin>.<what>" ("cuda.stream", "opencl.queue"), as listed in the plugin's
 * documentation. The original still belongs to the application and must outlive this queue:
 * hw_queue_close() waits for it but does not close it. Work that the application submitted
 * to it earlier runs before work submitted here, and hw_queue_wait() waits for both.
 * `options` may be NULL. A NULL handle is passed to the plugin, since it names the default
 * stream of some vendors.
 *
 * Returns HW_UNSUPPORTED if the backend cannot wrap a queue of this kind, or if the options
 * ask for a property that the original does not have. */
HW_EXPORT enum hw_status hw_queue_import(struct hw_device *device,
                                         const struct hw_queue_options *options,
                                         const char *kind, void *handle,
                                         struct hw_queue **queue);
/* The reverse: the vendor's handle of a queue, for example a CUstream for "cuda.stream". Work
 * submitted to the queue and to the handle runs in the order of submission; hw_queue_wait() waits
 * for both. The handle belongs to the queue and is valid as long as the queue. HW_UNSUPPORTED if
 * the backend has no handle of this kind, and while the queue is recording: see hw_queue_call(). */
HW_EXPORT enum hw_status hw_queue_export(struct hw_queue *queue, const char *kind,
                                         void **handle);
/* Calls fn(user, handle), which submits work of its own to the vendor's handle of the queue, such
 * as calls of a communication library. `kind` is as for hw_queue_export().
 *
 * On a queue that is recording, the call becomes a node of the graph. A backend that builds
 * graphs calls fn once, in hw_queue_end(), with a handle that records what is submitted to it
 * (a stream under capture), and each launch repeats that work. A backend that replays graphs
 * calls fn at each launch. So fn must submit the same work each time, to this handle and to no
 * other, and must not wait for it, nor call this library.
 *
 * fn returns HW_OK or an error, which becomes the result of the function that called fn:
 * hw_queue_call(), hw_queue_end() or hw_graph_launch(). */
HW_EXPORT enum hw_status hw_queue_call(struct hw_queue *queue, const char *kind,
                                       int32_t (*fn)(void *user, void *handle), void *user);

/* ---- Ops of one plugin ---- */

/* Submits an op that only one plugin has, "<plugin>.<op>". The plugin's documentation lists
 * its ops and their signatures; the arguments follow the rules of hw_kernel_launch(). */
HW_EXPORT enum hw_status hw_extension_call(struct hw_queue *queue, const char *name,
                                           const struct hw_arg *args, uint32_t count);

/* ---- Kernels of the application ---- */

/* Compiles a kernel written by the application, for this device. Returns HW_INVALID if the
 * description is invalid, HW_UNSUPPORTED if the backend does not take kernels, and
 * HW_DRIVER with the compiler's output if it does not compile. */
HW_EXPORT enum hw_status hw_kernel_create(struct hw_device *device,
                                          const struct hw_user_kernel *desc,
                                          struct hw_kernel **kernel);
/* Queues `groups` groups of work-items; none if it is 0. `args` has one argument for each letter
 * of the kernel's signature. Tensors must lie on the queue's device and have contiguous
 * innermost extents; outputs must be neither read-only nor packed. The
 * library cannot check whether operands overlap, or whether the kernel stays inside them.
 *
 * Returns HW_UNSUPPORTED for a host tensor that the device cannot read, for an innermost
 * extent that is not contiguous, and if the queue is recording a graph. No other device is
 * tried. */
HW_EXPORT enum hw_status hw_kernel_launch(struct hw_queue *queue, struct hw_kernel *kernel,
                                          uint64_t groups, const struct hw_arg *args,
                                          uint32_t count);
/* Like hw_kernel_launch(), in three dimensions: groups[0] * groups[1] * groups[2] groups. Also
 * returns HW_UNSUPPORTED if groups[1] or groups[2] is not 1 and the backend launches kernels in one
 * dimension only. */
HW_EXPORT enum hw_status hw_kernel_launch_3d(struct hw_queue *queue,
                                             struct hw_kernel *kernel,
                                             const uint64_t groups[3],
                                             const struct hw_arg *args, uint32_t count);
/* Frees the kernel. The caller must have waited for all its launches. It may outlive the
 * queues that used it. */
HW_EXPORT void hw_kernel_free(struct hw_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
