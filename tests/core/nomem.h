/* SPDX-License-Identifier: MIT */
/* nomem.h - the functions of the library that test_nomem.c calls while memory runs out. Each trial
 * is for one function; its name is what the test compares with the public headers. */
#ifndef NOMEM_H
#define NOMEM_H

#include <hw/hw.h>

#include <stddef.h>

/* HW_OK, or the test ends. */
void ok(enum hw_status status);

struct trial {
    const char *function;
    /* Makes what the call needs, while there is memory; may be NULL. */
    void (*prepare)(void);
    /* The call, and what shows that it worked. HW_OK, or HW_NO_MEMORY with a message. If it fails,
     * it is made again, and must work then. */
    enum hw_status (*call)(void);
    /* Only one allocation of so many fails, unless HW_TEST_NOMEM is set; 0: each. */
    unsigned stride;
};
/* Each ends with a row of zeros. Those of `opening` open a context themselves. */
extern const struct trial opening[], objects[], answers[];

/* Opens the context below, and two queues. */
void scene_open(void);
void scene_close(void);

/* Two devices with memory of their own, which compute few ops, and the CPU with two threads;
 * discrete:0, foreign:0, and a queue on each. */
extern struct scene {
    struct hw_context *context;
    struct hw_device *near, *one, *cpu;
    struct hw_queue *on_near, *on_one, *on_cpu;
} scene;

#endif
