/* SPDX-License-Identifier: MIT */
/* stream.h - streams of work for a stand-in: each stream has a thread that executes its jobs in
 * order, as asynchronously as a device. */
#ifndef STANDIN_STREAM_H
#define STANDIN_STREAM_H

#include <stdbool.h>
#include <stddef.h>

/* ---- moments: when a job was done ---- */

/* Complete once it has been reached; counts its references. */
struct moment;
struct moment *moment_new(void);
void moment_hold(struct moment *moment);
void moment_drop(struct moment *moment); /* accepts NULL */
bool moment_passed(const struct moment *moment);
void moment_wait(struct moment *moment);
/* When a passed moment was reached, in nanoseconds of a monotonic clock. */
unsigned long long moment_time(const struct moment *moment);
/* Calls fn once the moment has passed: on the thread that reaches it, or immediately. */
void moment_call(struct moment *moment, void (*fn)(void *data), void *data);

/* ---- streams ---- */

struct stream;
typedef void job_fn(void *data);

/* NULL: out of memory, or of threads. */
struct stream *stream_open(void);
/* After its jobs are done. */
void stream_close(struct stream *stream);
void stream_wait(struct stream *stream);
/* Runs run() on a copy of `bytes` bytes at `data`, after the earlier jobs. */
void stream_submit(struct stream *stream, job_fn *run, const void *data, size_t bytes);
/* Submits a job, such as a callback, that runs even if the stream's work is discarded. */
void stream_submit_lasting(struct stream *stream, job_fn *run, const void *data,
                           size_t bytes);
/* Drops the jobs that have not started, and waits for the rest. */
void stream_discard(struct stream *stream);
/* The moment passes when the jobs before are done; the stream takes a reference. */
void stream_mark(struct stream *stream, struct moment *moment);
/* Later jobs start after the moment; the stream takes a reference. */
void stream_await(struct stream *stream, struct moment *moment);

/* ---- work that every driver does ---- */

struct stream_copy {
    void *to;
    const void *from;
    size_t to_pitch, from_pitch; /* bytes from row to row */
    size_t bytes, rows;          /* bytes of a row */
};
void stream_submit_copy(struct stream *stream, const struct stream_copy *copy);
void stream_submit_fill(struct stream *stream, void *to, unsigned char value, size_t bytes);

/* ---- recording ---- */

/* Between these two calls, jobs are recorded instead of run. */
struct jobs;
void stream_record(struct stream *stream);
bool stream_records(const struct stream *stream);
struct jobs *stream_recorded(struct stream *stream);
/* Submits all of them in order; they can be submitted again. */
void stream_submit_jobs(struct stream *stream, const struct jobs *jobs);
struct jobs *jobs_copy(const struct jobs *jobs);
void jobs_free(struct jobs *jobs); /* accepts NULL */

#endif
