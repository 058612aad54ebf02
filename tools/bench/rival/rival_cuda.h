/* SPDX-License-Identifier: MIT */
/* rival_cuda.h - what rivals on NVIDIA's devices have in common: such a library works on the device
 * whose context is current, so that of the queue's stream is made current as long as it is open. */
#ifndef HW_TOOL_RIVAL_CUDA_H
#define HW_TOOL_RIVAL_CUDA_H

#include <hw/hw.h>

#include <stdbool.h>

struct rival_cuda {
    void *driver;
    int (*pop)(void **context);
    bool pushed;
};

/* Returns NULL, or what went wrong. rival_cuda_leave() has to follow in any case. */
const char *rival_cuda_enter(struct rival_cuda *cuda, void *stream);
void rival_cuda_leave(struct rival_cuda *cuda);

/* Sets a pointer to a function, which C has no conversion for; false: the library has none. */
bool rival_find(void *library, const char *name, void *function);

void *rival_address(const struct hw_import *memory);

#endif
