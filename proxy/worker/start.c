/* SPDX-License-Identifier: MIT */
/* start.c - starts hw-worker for a plugin, and makes a table from its description of the plugin in
 * shared memory. The reply of hw-worker goes to the library, which knows the reasons why a plugin
 * does not start, and checks the table. */
#define _POSIX_C_SOURCE 200809L
#include "worker/remote.h"

#include "base/platform.h"
#include "operands.h"
#include "proxy.h"

#include <build_stamp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REPLY_BYTES = 1 << 20, /* the most of a reply */
    PACKET = 4096,
    LOOK = 100000, /* microseconds between two looks whether hw-worker is stopped */
    FAREWELL =
        100000 /* microseconds for the end of hw-worker, if it has no memory to share */
};

/* ---- the process ---- */

/* hw-worker immediately gets the memory that it shares with the library. */
static int worker_start(struct worker *worker, char *const arguments[], int file)
{
    int error = link_start(&worker->process, arguments);
    if (error || link_send_file(&worker->process, file))
        return error;
    error = errno;
    if (error == EPIPE || error == ECONNRESET)
        return 0; /* if it has ended already, its answer, or no answer, says why */
    link_hang_up(&worker->process); /* otherwise it would wait for the file */
    (void)process_end(&worker->process, FAREWELL);
    return error;
}

/* ---- its reply ---- */

struct reply {
    unsigned char *bytes;
    size_t size;
    bool stopped;
};

static bool reply_is_whole(const struct reply *reply, const struct worker *worker)
{
    const uint32_t stated = atomic_load(&worker->wire->reply);
    return stated && reply->size >= stated;
}

/* Reads packets up to the end of the reply, and none beyond it: those are for worker_look(). False:
 * there are no more now. */
static bool reply_take(struct reply *reply, const struct worker *worker)
{
    ptrdiff_t got = 1;
    while (reply->size <= REPLY_BYTES && !reply_is_whole(reply, worker) &&
           (got = process_read(&worker->process, reply->bytes + reply->size, PACKET)) > 0)
        reply->size += (size_t)got;
    return got >= 0 || errno != EAGAIN;
}

/* Waits for the whole reply, or for the end of hw-worker, which keeps the plugin's time. Counts
 * looks instead of time, which may pass while the application is stopped itself. */
static void reply_await(struct reply *reply, const struct worker *worker)
{
    const struct process *process = &worker->process;
    uint32_t stopped = 0;
    uint64_t looked = microseconds_now();
    while (!reply_take(reply, worker) && !reply->stopped) {
        process_wait(&process, 1, LOOK);
        if (microseconds_now() - looked < LOOK)
            continue;
        looked = microseconds_now();
        stopped = process_is_stopped(process_state(process->id)) ? stopped + 1 : 0;
        reply->stopped = stopped > worker->limits.closing * (1000000 / LOOK);
    }
}

/* ---- the table ---- */

/* The library's size of each op's struct, or the plugin's if that is larger. */
static void sizes_take(struct worker *worker, const struct wire_table *said)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        const uint32_t own = op_operands[op].size, its = said->op_sizes[op];
        worker->op_sizes[op] = its; /* the library checks it */
        worker->op_bytes[op] = op < said->op_count && its > own ? its : own;
    }
}

/* Takes copies, which the worker cannot change any more. */
static void table_take(struct worker *worker, struct hw_plugin *table)
{
    const struct wire_table said = worker->wire->table;
    worker->id = worker->wire->process;
    snprintf(worker->vendor, sizeof worker->vendor, "%.255s", said.vendor);
    snprintf(worker->version, sizeof worker->version, "%.255s", said.version);
    worker->device_count = said.device_count < WIRE_DEVICES ? said.device_count
                                                            : WIRE_DEVICES;
    sizes_take(worker, &said);
    table->name = worker->name;
    table->vendor = worker->vendor;
    table->version = worker->version;
    table->abi = said.abi;
    table->op_count = said.op_count < HW_OP_COUNT ? said.op_count : HW_OP_COUNT;
    remote_fill(worker, table, said.ops);
}

/* ---- the entry ---- */

static const char *ended(void *self, int64_t *process)
{
    struct worker *worker = self;
    *process = worker->id;
    return worker_look(worker) ? worker->why : NULL;
}

static void release(void *self)
{
    worker_destroy(self);
}

static int32_t no_start(const struct worker *worker, const char *program, int error)
{
    /* After a shortage, nothing is wrong with the program. */
    return worker_fail(worker, is_shortage(error) ? HW_NO_MEMORY : HW_NO_DEVICE,
                       "%s cannot be started: %s", program, strerror(error));
}

static int32_t start(struct worker *worker, const struct proxy *proxy, int file)
{
    struct reply reply = { .bytes = malloc(REPLY_BYTES + PACKET) };
    const int error = reply.bytes ? worker_start(worker, proxy->arguments, file) : ENOMEM;
    if (error) {
        free(reply.bytes);
        return no_start(worker, proxy->arguments[0], error);
    }
    reply_await(&reply, worker);
    const int32_t status = proxy->replied(worker->host->instance, reply.bytes, reply.size,
                                          reply.stopped);
    free(reply.bytes);
    return status;
}

int32_t hw_proxy_entry(const struct hw_host *host, struct proxy *proxy,
                       struct hw_plugin *table)
{
    int file;
    if (strcmp(proxy->stamp, HW_BUILD_STAMP) != 0)
        return HW_ABI;
    struct worker *worker = worker_create(host, proxy, &file);
    if (!worker)
        return hw_fail(host, HW_NO_MEMORY,
                       "memory cannot be shared with its process (HW_WORKER): %s",
                       strerror(errno));
    const int32_t status = start(worker, proxy, file);
    close(file);
    if (status) {
        worker_destroy(worker);
        return status;
    }
    table_take(worker, table);
    proxy->self = worker;
    proxy->ended = ended;
    proxy->release = release;
    return HW_OK;
}
