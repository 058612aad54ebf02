/* SPDX-License-Identifier: MIT */
/* upload.c - see upload.h. Pieces are numbered in order. Readers take the next number and fill the
 * slot of that number, once its earlier piece has left it; the caller's thread, the only one that
 * calls the library, submits pieces in order and waits for those that it submitted long ago. */
#define _POSIX_C_SOURCE 200809L
#include "upload.h"
#include "slot.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One thread reads at a fraction of what a link takes. A piece is long enough that the link takes
 * longer than its submission. While readers fill slots, some pieces wait for the link, so that it
 * always has one, and some are on their way. There are no more slots than that, because to pin
 * memory takes 0.25 ms for 1 MB in huge pages, and 0.6 without. */
enum {
    READERS = 12,
    WAITING = 4,
    ON_THE_WAY = 4,
    SLOTS = READERS + WAITING + ON_THE_WAY,
    PIECE_BYTES = 2 << 20
};

struct piece {
    const void *from;
    size_t bytes;
    int32_t dtype;
    struct hw_tensor to;
};

struct work {
    const struct upload *upload;
    struct piece *pieces;
    size_t count;
    struct slot slots[SLOTS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* pieces that a reader has taken, and that have left their slot */
    size_t taken, gone;
    bool filled[SLOTS];
    bool stop;
    int error; /* of a reader: errno, or SHORT */
};

enum { SHORT = -1 }; /* the file ends before the piece */

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
    return true;
}

/* ---- Reading ---- */

/* The number of a piece whose slot is empty, once there is one; false if there is nothing left. */
static bool take_piece(struct work *work, size_t *number)
{
    pthread_mutex_lock(&work->lock);
    *number = work->taken++;
    while (!work->stop && *number < work->count && *number >= work->gone + SLOTS)
        pthread_cond_wait(&work->changed, &work->lock);
    const bool good = !work->stop && *number < work->count;
    pthread_mutex_unlock(&work->lock);
    return good;
}

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

static int read_piece(const struct upload *upload, const struct piece *piece, void *to)
{
    if (upload->file >= 0)
        return read_file(upload->file,
                         (const char *)piece->from - (const char *)upload->bytes, to,
                         piece->bytes);
    memcpy(to, piece->from, piece->bytes);
    return 0;
}

static void *read_pieces(void *argument)
{
    struct work *work = argument;
    for (size_t number; take_piece(work, &number);) {
        const int error = read_piece(work->upload, &work->pieces[number],
                                     work->slots[number % SLOTS].host);
        pthread_mutex_lock(&work->lock);
        work->filled[number % SLOTS] = !error;
        if (error)
            work->error = error;
        pthread_cond_broadcast(&work->changed);
        pthread_mutex_unlock(&work->lock);
    }
    return NULL;
}

/* ---- Sending ---- */

static bool await_filled(struct work *work, size_t number, struct fault *why)
{
    pthread_mutex_lock(&work->lock);
    while (!work->filled[number % SLOTS] && !work->error)
        pthread_cond_wait(&work->changed, &work->lock);
    const int error = work->error;
    work->filled[number % SLOTS] = false;
    pthread_mutex_unlock(&work->lock);
    if (error == SHORT)
        return fault(why,
                     "%s: has become shorter while it was read: run this again when it is "
                     "complete",
                     work->upload->name);
    return !error ||
           fault(why, "%s: cannot be read: %s", work->upload->name, strerror(error));
}

static void piece_is_gone(struct work *work)
{
    pthread_mutex_lock(&work->lock);
    work->gone++;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

static enum hw_status send_piece(struct work *work, size_t number)
{
    const struct piece *piece = &work->pieces[number];
    struct slot *slot = &work->slots[number % SLOTS];
    const struct hw_copy op = {
        .src = hw_host_1d(slot->host, piece->dtype, piece->to.extent[0]), .dst = piece->to
    };
    const enum hw_status status = hw_copy(work->upload->queue, &op);
    return status ? status : slot_mark(slot, work->upload->queue);
}

static bool send_all(struct work *work, struct fault *why)
{
    const struct upload *upload = work->upload;
    uint64_t total = 0, done = 0;
    for (size_t i = 0; i < work->count; i++)
        total += work->pieces[i].bytes;
    for (size_t i = 0; i < work->count; i++) {
        if (upload->progress)
            upload->progress(upload->user, done, total);
        if (!await_filled(work, i, why))
            return false;
        if (send_piece(work, i))
            return failed(why);
        done += work->pieces[i].bytes;
        if (i < ON_THE_WAY)
            continue;
        if (slot_wait(&work->slots[(i - ON_THE_WAY) % SLOTS]))
            return failed(why);
        piece_is_gone(work);
    }
    if (upload->progress)
        upload->progress(upload->user, total, total);
    return true;
}

/* ---- The upload ---- */

static bool open_slots(struct work *work, struct fault *why)
{
    size_t most = 0;
    for (size_t i = 0; i < work->count; i++)
        most = work->pieces[i].bytes > most ? work->pieces[i].bytes : most;
    for (size_t i = 0; i < SLOTS && i < work->count; i++)
        if (slot_open(&work->slots[i], work->upload->queue, most))
            return failed(why);
    return true;
}

/* Returns how many were started; if one was not, `error` says why. */
static int start_readers(struct work *work, pthread_t *readers, int *error)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int count = 0;
    *error = 0;
    while (count < READERS && (size_t)count < work->count &&
           (count == 0 || count < cores) &&
           !(*error = pthread_create(&readers[count], NULL, read_pieces, work)))
        count++;
    return count;
}

static void stop_readers(struct work *work, const pthread_t *readers, int count)
{
    pthread_mutex_lock(&work->lock);
    work->stop = true;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
    for (int i = 0; i < count; i++)
        pthread_join(readers[i], NULL);
}

static bool move_pieces(struct work *work, struct fault *why)
{
    pthread_t readers[READERS];
    int error;
    const int count = start_readers(work, readers, &error);
    const bool good = count || !work->count
                          ? send_all(work, why)
                          : fault(why, "cannot start a thread to read the weights: %s",
                                  strerror(error));
    stop_readers(work, readers, count);
    return good;
}

bool upload_run(const struct upload *upload, struct fault *why)
{
    struct work work = { .upload = upload,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER };
    bool good = cut(&work, why) && open_slots(&work, why) && move_pieces(&work, why);
    if (hw_queue_wait(upload->queue) && good)
        good = failed(why);
    for (int i = 0; i < SLOTS; i++)
        slot_close(&work.slots[i]);
    free(work.pieces);
    return good;
}
