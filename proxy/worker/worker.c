/* SPDX-License-Identifier: MIT */
/* worker.c - the worker process of a plugin: its log lines, its deadlines, and its end. */
#define _GNU_SOURCE
#include "worker/worker.h"

#include "base/platform.h"
#include "proxy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Microseconds that the process which watches over the plugin's has: it does without the time in
 * which that waits for a processor, and this cannot. */
enum { GRACE = 60000000 };
enum {
    PACKETS = 64,      /* read at a time: a chatty worker must not starve callers */
    FAREWELL = 2000000 /* microseconds from closing the connection to killing the process */
};

/* ---- messages ---- */

static _Thread_local char message[2048];

int32_t worker_fail(const struct worker *worker, int32_t status, const char *format, ...)
{
    char text[sizeof message]; /* an argument may be the message itself */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(message, text, sizeof message);
    return worker->host->fail(worker->host->instance, status, message);
}

const char *worker_message(void)
{
    return message;
}

static void worker_warn(const struct worker *worker, const char *text)
{
    worker->host->log(worker->host->instance, HW_LOG_WARN, text);
}

/* ---- the end ---- */

/* The caller holds the lock. */
static void set_ended(struct worker *worker, const char *why)
{
    if (atomic_load(&worker->ended))
        return;
    snprintf(worker->why, sizeof worker->why,
             "the worker process %lld of plugin %s (HW_WORKER) has ended: %s",
             (long long)worker->id, worker->name, why);
    atomic_store(&worker->ended, true);
    atomic_store(&worker->wire->ended, 1); /* for calls that do not wait */
}

/* Makes the watcher end the plugin's process; resumes a watcher that somebody has stopped. */
static void hang_up(struct worker *worker)
{
    link_hang_up(&worker->process);
    link_resume(&worker->process);
}

uint64_t worker_closing_deadline(const struct worker *worker)
{
    return microseconds_now() + GRACE + worker->limits.closing * UINT64_C(1000000);
}

int32_t worker_lost(struct worker *worker)
{
    /* `why` does not change any more once `ended` is set. */
    return worker_fail(worker, HW_LOST, "%s", worker->why);
}

/* The watcher, which should have done so, hangs itself. */
static void stop_late(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    set_ended(worker, "it was stopped, because it did not close within the time that "
                      "HW_PROBE_TIMEOUT gives it");
    pthread_mutex_unlock(&worker->lock);
    hang_up(worker);
}

void worker_closed(struct worker *worker, bool had_ended)
{
    if (!had_ended && atomic_load(&worker->ended))
        worker_warn(worker, worker->why);
}

int32_t worker_fault(struct worker *worker, enum channel_fault fault)
{
    if (!fault)
        return HW_OK;
    if (fault == CHANNEL_WILD) {
        pthread_mutex_lock(&worker->lock);
        set_ended(worker, "it was stopped, because it wrote an invalid position into the "
                          "memory that it shares with the library");
        pthread_mutex_unlock(&worker->lock);
        hang_up(worker);
    } else if (fault == CHANNEL_LATE) {
        stop_late(worker);
    }
    return worker_lost(worker);
}

/* ---- packets ---- */

/* The log of the library adds the name of the plugin, and so did the log of the process. */
static const char *without_name(const struct worker *worker, const char *text)
{
    const size_t length = strlen(worker->name);
    return !strncmp(text, worker->name, length) && !strncmp(text + length, ": ", 2)
               ? text + length + 2
               : text;
}

/* False if there is no packet to read. */
static bool take_packet(struct worker *worker)
{
    struct wire_packet packet;
    const ptrdiff_t got = process_read(&worker->process, &packet, sizeof packet);
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0) {
        set_ended(worker, "the process that watches over it was killed");
        return false;
    }
    packet.text[sizeof packet.text - 1] = '\0';
    worker->heard++;
    if ((size_t)got < sizeof packet)
        return true; /* ignores an incomplete packet */
    if (!packet.level)
        set_ended(worker, packet.text);
    else if (packet.level <= HW_LOG_DEBUG)
        worker->host->log(worker->host->instance, (int32_t)packet.level,
                          without_name(worker, packet.text));
    return true;
}

/* ---- deadlines ---- */

/* Stops the worker because a call takes too long and the watcher itself is stopped. */
static void stop_unwatched(struct worker *worker, const char *late)
{
    char why[512];
    snprintf(why, sizeof why,
             "it was stopped, because %s, while the process that watches over it was "
             "stopped itself (SIGSTOP, or a debugger)",
             late);
    set_ended(worker, why);
    hang_up(worker);
}

/* Keeps the deadlines while the watcher is stopped. */
static void keep_its_time(struct worker *worker)
{
    const char state = process_state(worker->id);
    const char *why = NULL;
    if (process_is_stopped(state))
        worker->late.looked = microseconds_now(); /* a stopped plugin is not late */
    else if (state == 'Z')
        link_resume(&worker->process); /* the watcher will say why the plugin ended */
    else
        why = late_look(&worker->late, UINT64_MAX);
    if (why)
        stop_unwatched(worker, why);
}

/* The watcher keeps the deadlines. If somebody has stopped it, the library does, counting from the
 * time at which it noticed. A watcher that only gets no processor, or that is suspended with all
 * other processes, does not count as stopped. */
static void keep_time(struct worker *worker)
{
    if (!late_is_due(&worker->late))
        return;
    if (process_is_stopped(process_state(worker->process.id)))
        keep_its_time(worker);
    else
        late_begin(&worker->late, worker->wire, &worker->limits);
}

bool worker_look(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    for (int i = 0; i < PACKETS && !atomic_load(&worker->ended) && take_packet(worker); i++)
        ;
    if (!atomic_load(&worker->ended))
        keep_time(worker);
    pthread_mutex_unlock(&worker->lock);
    return atomic_load(&worker->ended);
}

void worker_hear(struct worker *worker)
{
    /* Compared without the lock: the next call reads a packet that this one misses. */
    if (atomic_load_explicit(&worker->wire->said, memory_order_relaxed) !=
        __atomic_load_n(&worker->heard, __ATOMIC_RELAXED))
        worker_look(worker);
}

/* ---- asking ---- */

/* The error of a file that could not be sent. The system may just lack memory for a moment. */
static int32_t no_file(struct worker *worker)
{
    const int error = errno;
    return worker_look(worker)
               ? worker_lost(worker)
               : worker_fail(worker, HW_NO_MEMORY,
                             "the worker process (HW_WORKER) cannot be given shared "
                             "memory: %s; try again, or free memory",
                             strerror(error));
}

static int32_t put(struct channel *channel, const struct question *question, bool answered)
{
    enum channel_fault fault;
    void *arguments = channel_begin(channel, question->call, question->bytes,
                                    question->deadline, worker_look, &fault);
    if (!arguments)
        return worker_fault(channel->worker, fault);
    if (question->bytes)
        memcpy(arguments, question->arguments, question->bytes);
    if (question->file && !link_send_file(&channel->worker->process, question->file))
        return no_file(channel->worker); /* the worker never sees the call */
    channel_push(channel, answered);
    return HW_OK;
}

static int32_t ask_locked(struct worker *worker, const struct question *question,
                          struct wire_reply *reply)
{
    struct channel *channel = &worker->channel[question->channel];
    const int32_t status = put(channel, question, true);
    if (status)
        return status;
    const enum channel_fault fault = channel_wait(channel, question->deadline, worker_look);
    if (fault)
        return worker_fault(worker, fault);
    channel_reply(channel, question->data_bytes, reply);
    return reply->status ? worker_fail(worker, reply->status, "%s", reply->text) : HW_OK;
}

/* False if another thread holds the lock until the deadline, because its call does not return. */
static bool lock_until(pthread_mutex_t *mutex, uint64_t deadline)
{
    const uint64_t now = microseconds_now(), left = deadline > now ? deadline - now : 0;
    struct timespec end;
    if (!deadline)
        return !pthread_mutex_lock(mutex);
    clock_gettime(CLOCK_REALTIME, &end); /* the clock of pthread_mutex_timedlock() */
    const uint64_t fraction = (uint64_t)end.tv_nsec / 1000 + left % 1000000;
    end.tv_sec += (time_t)(left / 1000000 + fraction / 1000000);
    end.tv_nsec = (long)(fraction % 1000000) * 1000;
    return !pthread_mutex_timedlock(mutex, &end);
}

int32_t worker_ask(struct worker *worker, const struct question *question)
{
    struct wire_reply reply;
    if (atomic_load(&worker->ended))
        return worker_lost(worker);
    if (!lock_until(&worker->asking[question->channel], question->deadline))
        return worker_fault(worker, CHANNEL_LATE);
    const int32_t status = ask_locked(worker, question, &reply);
    pthread_mutex_unlock(&worker->asking[question->channel]);
    worker_hear(worker);
    if (!status && question->data_bytes)
        memcpy(question->data, reply.data, question->data_bytes);
    return status;
}

void worker_tell(struct worker *worker, const struct question *question)
{
    if (atomic_load(&worker->ended))
        return;
    pthread_mutex_lock(&worker->asking[question->channel]);
    (void)put(&worker->channel[question->channel], question, false);
    pthread_mutex_unlock(&worker->asking[question->channel]);
}

/* ---- channels ---- */

struct channel *worker_take_channel(struct worker *worker)
{
    uint32_t i = WIRE_QUEUES;
    pthread_mutex_lock(&worker->lock);
    while (i < WIRE_CHANNELS && worker->used[i / 32] >> i % 32 & 1)
        i++;
    if (i < WIRE_CHANNELS)
        worker->used[i / 32] |= UINT32_C(1) << i % 32;
    pthread_mutex_unlock(&worker->lock);
    return i < WIRE_CHANNELS ? &worker->channel[i] : NULL;
}

void worker_give_channel(struct worker *worker, struct channel *channel)
{
    const uint32_t i = (uint32_t)(channel - worker->channel);
    pthread_mutex_lock(&worker->lock);
    worker->used[i / 32] &= ~(UINT32_C(1) << i % 32);
    pthread_mutex_unlock(&worker->lock);
}

/* ---- all of it ---- */

struct worker *worker_create(const struct hw_host *host, const struct proxy *proxy,
                             int *file)
{
    struct worker *worker = calloc(1, sizeof *worker);
    void *wire = worker ? link_share(sizeof *worker->wire, file) : NULL;
    if (!wire) {
        const int error = errno;
        free(worker);
        errno = error;
        return NULL;
    }
    worker->host = host;
    snprintf(worker->name, sizeof worker->name, "%s", proxy->name);
    worker->limits = (struct late_limits){ proxy->call_seconds, proxy->close_seconds };
    worker->wire = wire;
    late_begin(&worker->late, wire, &worker->limits);
    pthread_mutex_init(&worker->lock, NULL);
    for (int i = 0; i < WIRE_QUEUES; i++)
        pthread_mutex_init(&worker->asking[i], NULL);
    for (int i = 0; i < WIRE_CHANNELS; i++) {
        worker->channel[i].wire = &worker->wire->channel[i];
        worker->channel[i].worker = worker;
        worker->channel[i].ended = &worker->wire->ended;
    }
    return worker;
}

void worker_end(struct worker *worker)
{
    if (!worker->process.id)
        return;
    hang_up(worker);
    if (!process_end(&worker->process, FAREWELL))
        worker_warn(worker, "its worker process was killed, but does not end");
}

void worker_destroy(struct worker *worker)
{
    if (!worker)
        return;
    worker_end(worker);
    for (int i = 0; i < WIRE_QUEUES; i++)
        pthread_mutex_destroy(&worker->asking[i]);
    pthread_mutex_destroy(&worker->lock);
    munmap(worker->wire, sizeof *worker->wire);
    free(worker);
}
