/* SPDX-License-Identifier: MIT */
/* upload.c - see upload.h. Pieces are numbered in order. Each reader takes the next number, reads
 * the piece into one of its two slots and submits the copy to a queue of its own, while its piece
 * before is on its way. So no reader waits for another thread, which may not be running. */
#define _POSIX_C_SOURCE 200809L
#include "upload.h"
#include "slot.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One thread reads at a fraction of the speed of a link. Pinning 1 MB takes 0.25 ms in huge pages,
 * 0.6 ms otherwise. */
enum { READERS = 12, SLOTS = 2, PIECE_BYTES = 2 << 20 };

struct piece {
    const void *from;
    size_t bytes;
    int32_t dtype;
    struct hw_tensor to;
};

struct work {
    const struct upload *upload;
    struct piece *pieces;
    size_t count, most; /* pieces; bytes of the largest */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t taken;         /* pieces */
    int reading;          /* readers that have not ended */
    uint64_t total, done; /* bytes of all pieces; of those that are submitted */
    bool failed;
    struct fault why; /* the first failure */
};

static bool failed(struct fault *why)
{
    return fault(why, "upload the weights: %s", hw_message());
}

/* ---- Pieces ---- */

static int64_t elements_of(const struct hw_tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->extent[i];
    return count;
}

/* Elements of a piece: as many whole blocks of either type as fit. */
static int64_t piece_elements(const struct upload_item *item)
{
    enum { BLOCK = 256 }; /* of which all are parts; far smaller than a piece */
    const int64_t bytes = hw_dtype_bytes(item->dtype) *
                          (BLOCK / hw_dtype_block(item->dtype));
    return PIECE_BYTES / bytes * BLOCK;
}

static bool cut_item(struct work *work, const struct upload_item *item, struct fault *why)
{
    const int64_t total = elements_of(&item->to), most = piece_elements(item);
    const int64_t block = hw_dtype_block(item->dtype), bytes = hw_dtype_bytes(item->dtype);
    struct hw_tensor flat;
    if (hw_tensor_reshape(&flat, &item->to, 1, &total))
        return failed(why);
    for (int64_t at = 0, part; at < total; at += part) {
        struct piece *piece = &work->pieces[work->count++];
        part = total - at < most ? total - at : most;
        piece->from = (const char *)item->from + at / block * bytes;
        piece->bytes = (size_t)(part / block * bytes);
        piece->dtype = item->dtype;
        if (hw_tensor_slice(&piece->to, &flat, 0, at, at + part))
            return failed(why);
    }
    return true;
}

static bool cut(struct work *work, struct fault *why)
{
    const struct upload *upload = work->upload;
    size_t count = 0;
    for (size_t i = 0; i < upload->count; i++) {
        const int64_t most = piece_elements(&upload->items[i]);
        count += (size_t)((elements_of(&upload->items[i].to) + most - 1) / most);
    }
    work->pieces = calloc(count + 1, sizeof *work->pieces);
    if (!work->pieces)
        return fault(why, "out of memory");
    for (size_t i = 0; i < upload->count; i++)
        if (!cut_item(work, &upload->items[i], why))
            return false;
    for (size_t i = 0; i < work->count; i++) {
        const size_t bytes = work->pieces[i].bytes;
        work->total += bytes;
        work->most = bytes > work->most ? bytes : work->most;
    }
    return true;
}

/* ---- Reading ---- */

enum { SHORT = -1 }; /* the file ends before the piece */

/* Returns 0, errno or SHORT. */
static int read_file(int file, off_t at, char *to, size_t bytes)
{
    while (bytes) {
        const ssize_t count = pread(file, to, bytes, at);
        if (!count)
            return SHORT;
        if (count < 0 && errno != EINTR)
            return errno;
        if (count < 0)
            continue;
        to += count;
        at += count;
        bytes -= (size_t)count;
    }
    return 0;
}

static bool read_piece(const struct upload *upload, const struct piece *piece, void *to,
                       struct fault *why)
{
    int error = 0;
    if (upload->file >= 0)
        error = read_file(upload->file,
                          (const char *)piece->from - (const char *)upload->bytes, to,
                          piece->bytes);
    else
        memcpy(to, piece->from, piece->bytes);
    if (error == SHORT)
        return fault(why,
                     "%s: has become shorter while it was read: run this again when it is "
                     "complete",
                     upload->name);
    return !error || fault(why, "%s: cannot be read: %s", upload->name, strerror(error));
}

/* ---- Readers ---- */

struct reader {
    struct work *work;
    struct hw_queue *queue;
    struct slot slots[SLOTS];
    pthread_t thread;
};

static bool take_piece(struct work *work, size_t *number)
{
    pthread_mutex_lock(&work->lock);
    const bool good = !work->failed && work->taken < work->count;
    *number = good ? work->taken++ : 0;
    pthread_mutex_unlock(&work->lock);
    return good;
}

/* Tells the caller's thread of submitted bytes or, if `why` is not NULL, of a failure. */
static void tell(struct work *work, size_t bytes, const struct fault *why)
{
    pthread_mutex_lock(&work->lock);
    work->done += bytes;
    if (why && !work->failed) {
        work->failed = true;
        work->why = *why;
    }
    pthread_cond_signal(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

static bool send_piece(struct reader *reader, const struct piece *piece, struct slot *slot,
                       struct fault *why)
{
    const struct work *work = reader->work;
    if (!slot->host && slot_open(slot, reader->queue, work->most))
        return failed(why);
    if (slot_wait(slot))
        return failed(why);
    if (!read_piece(work->upload, piece, slot->host, why))
        return false;
    const struct hw_copy op = {
        .src = hw_host_1d(slot->host, piece->dtype, piece->to.extent[0]), .dst = piece->to
    };
    return (!hw_copy(reader->queue, &op) && !slot_mark(slot, reader->queue)) || failed(why);
}

static bool send_pieces(struct reader *reader, struct fault *why)
{
    struct work *work = reader->work;
    if (hw_queue_open(hw_queue_device(work->upload->queue), NULL, &reader->queue))
        return failed(why);
    bool good = true;
    for (size_t turn = 0, number; good && take_piece(work, &number); turn++) {
        const struct piece *piece = &work->pieces[number];
        good = send_piece(reader, piece, &reader->slots[turn % SLOTS], why);
        if (good)
            tell(work, piece->bytes, NULL);
    }
    if (hw_queue_wait(reader->queue) && good)
        good = failed(why);
    for (int i = 0; i < SLOTS; i++)
        slot_close(&reader->slots[i]);
    hw_queue_close(reader->queue);
    return good;
}

static void *read_pieces(void *argument)
{
    struct reader *reader = argument;
    struct work *work = reader->work;
    struct fault why;
    if (!send_pieces(reader, &why))
        tell(work, 0, &why);
    pthread_mutex_lock(&work->lock);
    work->reading--;
    pthread_cond_signal(&work->changed);
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

/* ---- The upload ---- */

/* Returns how many readers were started; sets `error` if one could not be. */
static int start_readers(struct work *work, struct reader *readers, int *error)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int count = 0;
    *error = 0;
    while (count < READERS && (size_t)count < work->count &&
           (count == 0 || count < cores)) {
        readers[count] = (struct reader){ .work = work };
        *error = pthread_create(&readers[count].thread, NULL, read_pieces, &readers[count]);
        if (*error)
            break;
        count++;
    }
    return count;
}

static void tell_caller(const struct work *work, uint64_t done)
{
    if (work->upload->progress)
        work->upload->progress(work->upload->user, done, work->total);
}

/* Waits until the readers have ended, and reports progress in the caller's thread. */
static void watch(struct work *work)
{
    uint64_t done = 0;
    pthread_mutex_lock(&work->lock);
    while (work->reading > 0) {
        if (work->done == done) {
            pthread_cond_wait(&work->changed, &work->lock);
            continue;
        }
        done = work->done;
        pthread_mutex_unlock(&work->lock);
        tell_caller(work, done);
        pthread_mutex_lock(&work->lock);
    }
    pthread_mutex_unlock(&work->lock);
}

static bool move_pieces(struct work *work, struct fault *why)
{
    struct reader readers[READERS];
    int error;
    tell_caller(work, 0);
    const int count = start_readers(work, readers, &error);
    pthread_mutex_lock(&work->lock);
    work->reading += count;
    pthread_mutex_unlock(&work->lock);
    watch(work);
    for (int i = 0; i < count; i++)
        pthread_join(readers[i].thread, NULL);
    if (work->count && !count)
        return fault(why, "cannot start a thread to read the weights: %s", strerror(error));
    if (work->failed)
        return fault(why, "%s", work->why.text);
    tell_caller(work, work->total);
    return true;
}

bool upload_run(const struct upload *upload, struct fault *why)
{
    struct work work = { .upload = upload,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER };
    bool good = cut(&work, why);
    if (hw_queue_wait(upload->queue) && good)
        good = failed(why); /* its earlier work is not ordered with other queues */
    good = good && move_pieces(&work, why);
    free(work.pieces);
    return good;
}
