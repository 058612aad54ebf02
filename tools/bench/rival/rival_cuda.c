/* SPDX-License-Identifier: MIT */
/* rival_cuda.c - see rival_cuda.h. */
#include "rival_cuda.h"

#include <dlfcn.h>

bool rival_find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    *(void **)function = symbol;
    return symbol != NULL;
}

void *rival_address(const struct hw_import *memory)
{
    return (char *)memory->handle + memory->offset;
}

const char *rival_cuda_enter(struct rival_cuda *cuda, void *stream)
{
    int (*stream_context)(void *stream, void **context);
    int (*push)(void *context);
    void *context;
    cuda->driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cuda->driver || !rival_find(cuda->driver, "cuStreamGetCtx", &stream_context) ||
        !rival_find(cuda->driver, "cuCtxPushCurrent_v2", &push) ||
        !rival_find(cuda->driver, "cuCtxPopCurrent_v2", &cuda->pop))
        return "libcuda.so.1 lacks cuStreamGetCtx() or another function";
    if (stream_context(stream, &context) || push(context))
        return "the context of the queue's stream cannot be made current";
    cuda->pushed = true;
    return NULL;
}

void rival_cuda_leave(struct rival_cuda *cuda)
{
    void *context;
    if (cuda->pushed)
        cuda->pop(&context);
    if (cuda->driver)
        dlclose(cuda->driver);
}
