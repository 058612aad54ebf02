/* SPDX-License-Identifier: MIT */
/* One lock and one condition for all streams: a stand-in need not be fast. */
#define _POSIX_C_SOURCE 200809L
#include "stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *checked(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* ---- moments ---- */

struct callback {
    void (*fn)(void *data);
    void *data;
    struct callback *next;
};

struct moment {
    int references;
    bool passed;
    unsigned long long time;
    struct callback *callbacks;
};

struct moment *moment_new(void)
{
    struct moment *moment = checked(calloc(1, sizeof *moment));
    moment->references = 1;
    return moment;
}

void moment_hold(struct moment *moment)
{
    pthread_mutex_lock(&lock);
    moment->references++;
    pthread_mutex_unlock(&lock);
}

void moment_drop(struct moment *moment)
{
    if (!moment)
        return;
    pthread_mutex_lock(&lock);
    const bool last = --moment->references == 0;
    pthread_mutex_unlock(&lock);
    if (last)
        free(moment);
}

bool moment_passed(const struct moment *moment)
{
    pthread_mutex_lock(&lock);
    const bool passed = moment->passed;
    pthread_mutex_unlock(&lock);
    return passed;
}

void moment_wait(struct moment *moment)
{
    pthread_mutex_lock(&lock);
    while (!moment->passed)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

unsigned long long moment_time(const struct moment *moment)
{
    pthread_mutex_lock(&lock);
    const unsigned long long time = moment->time;
    pthread_mutex_unlock(&lock);
    return time;
}

static void reach(void *data)
{
    struct moment *moment = *(struct moment **)data;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&lock);
    moment->passed = true;
    moment->time = (unsigned long long)now.tv_sec * 1000000000u +
                   (unsigned long long)now.tv_nsec;
    struct callback *callback = moment->callbacks;
    moment->callbacks = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    while (callback) {
        struct callback *next = callback->next;
        callback->fn(callback->data);
        free(callback);
        callback = next;
    }
    moment_drop(moment);
}

static void await(void *data)
{
    struct moment *moment = *(struct moment **)data;
    moment_wait(moment);
    moment_drop(moment);
}

void moment_call(struct moment *moment, void (*fn)(void *data), void *data)
{
    struct callback *callback = checked(malloc(sizeof *callback));
    pthread_mutex_lock(&lock);
    const bool passed = moment->passed;
    if (!passed) {
        *callback = (struct callback){ fn, data, moment->callbacks };
        moment->callbacks = callback;
    }
    pthread_mutex_unlock(&lock);
    if (passed) {
        free(callback);
        fn(data);
    }
}

/* ---- streams ---- */

struct job {
    struct job *next;
    bool lasts; /* beyond stream_discard() */
    job_fn *run;
    size_t bytes;
    _Alignas(max_align_t) unsigned char data[];
};

struct jobs {
    struct job *first, **last;
};

struct stream {
    pthread_t thread;
    struct jobs waiting;
    struct jobs *recorded; /* NULL: does not record */
    bool busy, closing;
};

static void append(struct jobs *jobs, struct job *job)
{
    job->next = NULL;
    *jobs->last = job;
    jobs->last = &job->next;
}

static struct job *new_job(job_fn *run, const void *data, size_t bytes)
{
    struct job *job = checked(malloc(sizeof *job + bytes));
    job->lasts = false;
    job->run = run;
    job->bytes = bytes;
    if (bytes)
        memcpy(job->data, data, bytes);
    return job;
}

static void *work(void *self)
{
    struct stream *stream = self;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct job *job = stream->waiting.first;
        if (job) {
            stream->waiting.first = job->next;
            if (!job->next)
                stream->waiting.last = &stream->waiting.first;
            stream->busy = true;
            pthread_mutex_unlock(&lock);
            job->run(job->data);
            free(job);
            pthread_mutex_lock(&lock);
            stream->busy = false;
            pthread_cond_broadcast(&changed);
        } else if (stream->closing) {
            break;
        } else {
            pthread_cond_wait(&changed, &lock);
        }
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

struct stream *stream_open(void)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->waiting.last = &stream->waiting.first;
    if (pthread_create(&stream->thread, NULL, work, stream)) {
        free(stream);
        return NULL;
    }
    return stream;
}

void stream_close(struct stream *stream)
{
    pthread_mutex_lock(&lock);
    stream->closing = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    jobs_free(stream->recorded);
    free(stream);
}

void stream_wait(struct stream *stream)
{
    pthread_mutex_lock(&lock);
    while (stream->waiting.first || stream->busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void submit(struct stream *stream, struct job *job)
{
    pthread_mutex_lock(&lock);
    append(stream->recorded ? stream->recorded : &stream->waiting, job);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void stream_submit(struct stream *stream, job_fn *run, const void *data, size_t bytes)
{
    submit(stream, new_job(run, data, bytes));
}

void stream_submit_lasting(struct stream *stream, job_fn *run, const void *data,
                           size_t bytes)
{
    struct job *job = new_job(run, data, bytes);
    job->lasts = true;
    submit(stream, job);
}

void stream_mark(struct stream *stream, struct moment *moment)
{
    moment_hold(moment);
    stream_submit_lasting(stream, reach, &moment, sizeof moment);
}

void stream_await(struct stream *stream, struct moment *moment)
{
    moment_hold(moment);
    stream_submit_lasting(stream, await, &moment, sizeof moment);
}

void stream_discard(struct stream *stream)
{
    struct jobs kept = { NULL, &kept.first };
    pthread_mutex_lock(&lock);
    for (struct job *next, *job = stream->waiting.first; job; job = next) {
        next = job->next;
        if (job->lasts)
            append(&kept, job);
        else
            free(job);
    }
    stream->waiting.first = kept.first;
    stream->waiting.last = kept.first ? kept.last : &stream->waiting.first;
    while (stream->waiting.first || stream->busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- work that every driver does ---- */

static void run_copy(void *data)
{
    const struct stream_copy *copy = data;
    for (size_t i = 0; i < copy->rows; i++)
        memmove((char *)copy->to + i * copy->to_pitch,
                (const char *)copy->from + i * copy->from_pitch, copy->bytes);
}

void stream_submit_copy(struct stream *stream, const struct stream_copy *copy)
{
    stream_submit(stream, run_copy, copy, sizeof *copy);
}

struct fill {
    void *to;
    size_t bytes;
    unsigned char value;
};

static void run_fill(void *data)
{
    const struct fill *fill = data;
    memset(fill->to, fill->value, fill->bytes);
}

void stream_submit_fill(struct stream *stream, void *to, unsigned char value, size_t bytes)
{
    const struct fill fill = { to, bytes, value };
    stream_submit(stream, run_fill, &fill, sizeof fill);
}

/* ---- recording ---- */

static struct jobs *new_jobs(void)
{
    struct jobs *jobs = checked(calloc(1, sizeof *jobs));
    jobs->last = &jobs->first;
    return jobs;
}

void stream_record(struct stream *stream)
{
    stream->recorded = new_jobs();
}

bool stream_records(const struct stream *stream)
{
    return stream->recorded;
}

struct jobs *stream_recorded(struct stream *stream)
{
    struct jobs *jobs = stream->recorded;
    stream->recorded = NULL;
    return jobs;
}

void stream_submit_jobs(struct stream *stream, const struct jobs *jobs)
{
    for (const struct job *job = jobs->first; job; job = job->next)
        stream_submit(stream, job->run, job->data, job->bytes);
}

struct jobs *jobs_copy(const struct jobs *jobs)
{
    struct jobs *copy = new_jobs();
    for (const struct job *job = jobs->first; job; job = job->next)
        append(copy, new_job(job->run, job->data, job->bytes));
    return copy;
}

void jobs_free(struct jobs *jobs)
{
    while (jobs && jobs->first) {
        struct job *next = jobs->first->next;
        free(jobs->first);
        jobs->first = next;
    }
    free(jobs);
}
