/* SPDX-License-Identifier: MIT */
/* upload.h - copies the weights of a file to a device as fast as the link takes them. */
#ifndef HW_MODEL_UPLOAD_H
#define HW_MODEL_UPLOAD_H

#include "util/fault.h"

#include <hw/hw.h>

#include <stddef.h>

struct upload_item {
    const void *from; /* the elements of `to`, contiguous; of a file, where it is mapped */
    int32_t dtype;    /* of `from`; converted on the way if that of `to` is another */
    struct hw_tensor to; /* contiguous */
};

struct upload {
    struct hw_queue *queue; /* of the device; is waited for */
    const struct upload_item *items;
    size_t count;
    const char *name;  /* of the file, for messages */
    int file;          /* the file to read instead of its mapping; -1: none */
    const void *bytes; /* where its first byte is mapped */
    /* In bytes of `from`; may be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};

/* Waits until everything has arrived. Threads with queues of their own read the items into pinned
 * memory and submit their copies, piece by piece. */
bool upload_run(const struct upload *upload, struct fault *why);

#endif
