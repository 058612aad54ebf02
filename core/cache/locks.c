/* SPDX-License-Identifier: MIT */
/* locks.c - who is trying or binding a plugin: see locks.h.
 *
 * Trying: a process locks a byte of the file, far behind its end; the entry's number says which.
 * The lock ends with the process, however that ends. Binding: a thread locks one of the first bytes
 * and writes the entry's number to the place in the table that belongs to the byte. The number
 * hides the entry; the thread removes it at the end. If its process ends before that, the number
 * stays without a lock, until the plugin has been tried again.
 *
 * The locks belong to open files (OFD), so that threads exclude each other, too. If a forked child
 * of the process that tries a plugin lives on, the lock stays; others then wait in vain and try the
 * plugin themselves. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "cache/locks.h"

#include "cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int locks_open(int place, int flags)
{
    return openat(place, LOCKS_FILE, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

/* Opens the file for locking. -1: there is no cache. */
static int locks_make(const struct hw_context *context, const struct candidate *candidate)
{
    const int place = cache_place(context, candidate, true);
    const int fd = place < 0 ? -1 : locks_open(place, O_RDWR | O_CREAT);
    if (place >= 0)
        close(place);
    return fd;
}

/* Returns 0, or errno. */
static int byte_lock(int fd, off_t byte, short type)
{
    struct flock range = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1
    };
    return fcntl(fd, F_OFD_SETLK, &range) ? errno : 0;
}

/* Unlocks explicitly, because a forked child may have inherited the descriptor. */
static void byte_unlock(int *fd, off_t byte)
{
    byte_lock(*fd, byte, F_UNLCK);
    close(*fd);
    *fd = -1;
}

/* ---- trying a plugin ---- */

static off_t probe_byte(const struct candidate *candidate)
{
    return (off_t)(INT64_C(1) << 62 | (int64_t)(cache_number(candidate) >> 2));
}

bool probe_lock(const struct hw_context *context, struct candidate *candidate)
{
    const int fd = locks_make(context, candidate);
    const int error = fd < 0 ? ENOENT : byte_lock(fd, probe_byte(candidate), F_WRLCK);
    if (!error)
        candidate->probe_lock = fd;
    else if (fd >= 0)
        close(fd);
    return error != EAGAIN && error != EACCES;
}

void probe_unlock(struct candidate *candidate)
{
    if (candidate->probe_lock >= 0)
        byte_unlock(&candidate->probe_lock, probe_byte(candidate));
}

/* ---- binding a plugin ---- */

static uint64_t number_read(int fd, uint32_t row)
{
    uint64_t number = 0;
    return pread(fd, &number, sizeof number, row * sizeof number) < 0 ? 1 : number;
}

static bool number_write(int fd, uint32_t row, uint64_t number)
{
    return pwrite(fd, &number, sizeof number, row * sizeof number) == sizeof number;
}

/* Takes the row unless another thread has it or, without `stale`, a process ended while it had
 * it. */
static bool row_take(int fd, uint32_t row, uint64_t number, bool stale)
{
    if (byte_lock(fd, row, F_WRLCK))
        return false;
    if ((stale || !number_read(fd, row)) && number_write(fd, row, number))
        return true;
    byte_lock(fd, row, F_UNLCK);
    return false;
}

/* If all rows are taken, a second round takes rows of processes that have ended. */
void bind_lock(const struct hw_context *context, struct candidate *candidate)
{
    const int fd = locks_make(context, candidate);
    const uint64_t number = fd < 0 ? 0 : cache_number(candidate);
    for (uint32_t i = 0; fd >= 0 && i < 2 * LOCKS_MAX; i++)
        if (row_take(fd, i % LOCKS_MAX, number, i >= LOCKS_MAX)) {
            candidate->bind_lock = fd;
            candidate->bind_row = i % LOCKS_MAX;
            return;
        }
    if (fd >= 0)
        close(fd);
}

void bind_unlock(const struct hw_context *context, struct candidate *candidate, bool keep)
{
    char name[CACHE_NAME_CHARS];
    const int place = keep ? -1 : cache_place(context, candidate, false);
    if (place >= 0) {
        cache_name(candidate, name);
        unlinkat(place, name, 0);
        close(place);
    }
    if (candidate->bind_lock < 0)
        return;
    number_write(candidate->bind_lock, candidate->bind_row, 0);
    byte_unlock(&candidate->bind_lock, candidate->bind_row);
}

/* Returns how many rows there are. */
static uint32_t rows_read(int fd, uint64_t numbers[LOCKS_MAX])
{
    const ssize_t bytes = fd < 0 ? 0 : pread(fd, numbers, LOCKS_MAX * sizeof *numbers, 0);
    return bytes < 0 ? 0 : (uint32_t)((size_t)bytes / sizeof *numbers);
}

bool bind_is_locked(int place, const struct candidate *candidate)
{
    uint64_t numbers[LOCKS_MAX];
    const uint64_t number = cache_number(candidate);
    const int fd = locks_open(place, O_RDONLY);
    uint32_t row = 0, rows = rows_read(fd, numbers);
    while (row < rows && numbers[row] != number)
        row++;
    if (fd >= 0)
        close(fd);
    return row < rows;
}

void bind_forgive(int place, const struct candidate *candidate)
{
    uint64_t numbers[LOCKS_MAX];
    const uint64_t number = cache_number(candidate);
    const int fd = locks_open(place, O_RDWR);
    const uint32_t rows = rows_read(fd, numbers);
    for (uint32_t row = 0; row < rows; row++)
        if (numbers[row] == number && !byte_lock(fd, row, F_WRLCK)) {
            if (number_read(fd, row) == number) /* still, now that the row is locked */
                number_write(fd, row, 0);
            byte_lock(fd, row, F_UNLCK);
        }
    if (fd >= 0)
        close(fd);
}
