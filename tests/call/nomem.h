/* SPDX-License-Identifier: MIT */
/* nomem.h - the functions of the library that test_nomem.c calls while memory runs out. Each trial
 * is for one function; its name is what the test compares with the public headers. */
#ifndef NOMEM_H
#define NOMEM_H

#include <hw/hw.h>
#include <hw/interop.h>
#include <hw/report.h>

#include <stddef.h>

/* Ends the test unless the status is HW_OK. */
void ok(enum hw_status status);

struct trial {
    const char *function;
    /* Prepares the call while memory is available; may be NULL. */
    void (*prepare)(void);
    /* Makes the call and checks its result. Returns HW_OK, or HW_NO_MEMORY with a message; a failed
     * call is repeated and must then work. */
    enum hw_status (*call)(void);
    /* Fails only one in `stride` allocations, unless HW_TEST_NOMEM is set. 0: every one. */
    unsigned stride;
};
/* Each array ends with a row of zeros. The trials in `opening` open their own contexts. */
extern const struct trial opening[], objects[], answers[];

/* Opens the context below, and two queues. */
void scene_open(void);
void scene_close(void);

/* A context of two devices with memory of their own and few ops, and the CPU with two threads. Its
 * queues are on discrete:0 and foreign:0. */
extern struct scene {
    struct hw_context *context;
    struct hw_device *near, *one, *cpu;
    struct hw_queue *on_near, *on_one, *on_cpu;
} scene;

#endif
