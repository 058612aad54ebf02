/* SPDX-License-Identifier: MIT */
/* rival_cuda.h - shared by rivals on NVIDIA's devices. Such a library works on the device whose
 * context is current, so the context of the queue's stream is current while the library is open. */
#ifndef HW_TOOL_RIVAL_CUDA_H
#define HW_TOOL_RIVAL_CUDA_H

#include <hw/hw.h>

#include <stdbool.h>

struct rival_cuda {
    void *driver;
    int (*pop)(void **context);
    bool pushed;
};

/* Returns NULL, or the reason of a failure. Call rival_cuda_leave() in either case. */
const char *rival_cuda_enter(struct rival_cuda *cuda, void *stream);
void rival_cuda_leave(struct rival_cuda *cuda);

/* Sets a function pointer from a symbol, a conversion that C lacks; false if there is no symbol. */
bool rival_find(void *library, const char *name, void *function);

void *rival_address(const struct hw_import *memory);

#endif
