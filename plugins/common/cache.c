/* SPDX-License-Identifier: MIT */
/* cache.c - a directory of compiled programs. It needs POSIX openat(): other systems need another
 * file, such as cache_none.c. */
#define _POSIX_C_SOURCE  200809L
#define _DARWIN_C_SOURCE /* O_NOFOLLOW */
#include "cache.h"

#include "base/whole.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The start of a file. The machine that wrote it reads it, so byte order does not matter. */
struct header {
    char magic[8];
    uint64_t bytes; /* that follow */
    uint8_t key[SHA256_BYTES];
    uint8_t checksum[SHA256_BYTES]; /* of the data after the header */
};

static const char magic[8] = "hwprog1";

/* When a file was written. */
#if defined(__APPLE__)
#define WRITTEN st_mtimespec
#else
#define WRITTEN st_mtim
#endif

enum { KEY_CHARS = 2 * SHA256_BYTES, NAME_BYTES = KEY_CHARS + 32 };

static void checksum(const void *data, size_t bytes, uint8_t digest[SHA256_BYTES])
{
    struct sha256 hash;

    sha256_begin(&hash);
    sha256_add(&hash, data, bytes);
    sha256_end(&hash, digest);
}

static void entry_name(const uint8_t key[SHA256_BYTES], char name[NAME_BYTES])
{
    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(name + 2 * i, 3, "%02x", key[i]);
}

/* Also true of the temporary names: an entry's name with ".<number>-<number>" behind it. */
static bool is_entry_name(const char *name)
{
    return strspn(name, "0123456789abcdef") == KEY_CHARS &&
           (!name[KEY_CHARS] || name[KEY_CHARS] == '.');
}

static bool is_shared(const struct stat *file)
{
    return file->st_mode & (S_IWGRP | S_IWOTH);
}

/* Whether this user owns the file and nobody else may write to it. */
static bool is_ours(const struct stat *file)
{
    return file->st_uid == geteuid() && !is_shared(file);
}

/* ---- the directory ---- */

/* Returns -1 and sets errno if it is missing or others may write to it. */
static int open_directory(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat file;

    if (fd < 0)
        return -1;
    if (fstat(fd, &file) == 0 && is_ours(&file))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

bool cache_is_shared(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISDIR(file.st_mode) && file.st_uid == geteuid() &&
           is_shared(&file);
}

/* Makes `path` and its parents. Errors show when the directory is opened. */
static void make_directories(const char *path)
{
    char part[4096];
    const size_t length = strlen(path);

    if (length >= sizeof part)
        return;
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        part[i] = '\0';
        mkdir(part, 0700);
        part[i] = path[i];
    }
}

struct entry {
    char name[NAME_BYTES];
    struct timespec written;
};

static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Returns the size of all entries in bytes and stores the oldest one in `oldest`. */
static uint64_t survey(int directory, struct entry *oldest)
{
    const int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    uint64_t bytes = 0;

    oldest->name[0] = '\0';
    if (!list) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    while ((item = readdir(list))) {
        struct stat file;
        if (!is_entry_name(item->d_name) || strlen(item->d_name) >= NAME_BYTES ||
            fstatat(directory, item->d_name, &file, AT_SYMLINK_NOFOLLOW) ||
            S_ISDIR(file.st_mode)) /* unlinkat() would not remove it */
            continue;
        bytes += (uint64_t)file.st_size;
        if (!oldest->name[0] || is_older(&file.WRITTEN, &oldest->written)) {
            strcpy(oldest->name, item->d_name);
            oldest->written = file.WRITTEN;
        }
    }
    closedir(list);
    return bytes;
}

/* Removes the oldest entries until the rest fit in the limit. */
static void make_room(int directory)
{
    struct entry oldest;

    while (survey(directory, &oldest) > CACHE_BYTES_MAX && oldest.name[0])
        if (unlinkat(directory, oldest.name, 0))
            return;
}

/* ---- reading ---- */

/* Reads the header and checks it against the key and the length of the file. */
static bool read_header(int fd, const uint8_t key[SHA256_BYTES], struct header *header)
{
    struct stat file;

    return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && is_ours(&file) &&
           read_whole(fd, header, sizeof *header) &&
           memcmp(header->magic, magic, sizeof magic) == 0 &&
           memcmp(header->key, key, SHA256_BYTES) == 0 && header->bytes > 0 &&
           header->bytes <= CACHE_ENTRY_MAX &&
           (uint64_t)file.st_size == sizeof *header + header->bytes;
}

static void *read_entry(int fd, const uint8_t key[SHA256_BYTES], size_t *bytes)
{
    uint8_t digest[SHA256_BYTES];
    struct header header;

    if (!read_header(fd, key, &header))
        return NULL;
    void *data = malloc((size_t)header.bytes);
    if (data && read_whole(fd, data, (size_t)header.bytes)) {
        checksum(data, (size_t)header.bytes, digest);
        if (memcmp(digest, header.checksum, sizeof digest) == 0) {
            *bytes = (size_t)header.bytes;
            return data;
        }
    }
    free(data);
    return NULL;
}

void *cache_read(const char *path, const uint8_t key[SHA256_BYTES], size_t *bytes)
{
    char name[NAME_BYTES];
    const int directory = open_directory(path);
    void *data = NULL;

    if (directory < 0)
        return NULL;
    entry_name(key, name);
    /* O_NONBLOCK: a FIFO does not stop us. */
    const int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        data = read_entry(fd, key, bytes);
        close(fd);
    }
    close(directory);
    return data;
}

/* ---- writing ---- */

/* Renames the temporary file. An empty directory with that name is replaced; one with content
 * stays. */
static bool take_place(int directory, const char *temporary, const char *name)
{
    if (renameat(directory, temporary, directory, name) == 0)
        return true;
    return errno == EISDIR && unlinkat(directory, name, AT_REMOVEDIR) == 0 &&
           renameat(directory, temporary, directory, name) == 0;
}

/* Writes the file under a temporary name, then renames it. If the process dies in between,
 * make_room() removes the temporary file later. */
static bool write_entry(int directory, const struct header *header, const void *data)
{
    char name[NAME_BYTES], temporary[NAME_BYTES];
    struct timespec now = { 0 };

    entry_name(header->key, name);
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(temporary, sizeof temporary, "%.*s.%ld-%ld", KEY_CHARS, name, (long)getpid(),
             now.tv_nsec);
    const int fd = openat(directory, temporary,
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = write_whole(fd, header, sizeof *header) &&
                   write_whole(fd, data, (size_t)header->bytes);
    written = close(fd) == 0 && written;
    if (written && take_place(directory, temporary, name))
        return true;
    const int error = errno;
    unlinkat(directory, temporary, 0);
    errno = error;
    return false;
}

bool cache_write(const char *path, const uint8_t key[SHA256_BYTES], const void *data,
                 size_t bytes, char *why, size_t why_size)
{
    struct header header = { .bytes = bytes };
    char name[NAME_BYTES];

    if (bytes == 0 || bytes > CACHE_ENTRY_MAX) {
        snprintf(why, why_size, "a program of %zu bytes is not cached", bytes);
        return false;
    }
    make_directories(path);
    const int directory = open_directory(path);
    if (directory < 0) {
        snprintf(why, why_size, "cannot use directory %.256s: %s", path,
                 errno == EPERM ? "another user owns it or may write to it"
                                : strerror(errno));
        return false;
    }
    memcpy(header.magic, magic, sizeof magic);
    memcpy(header.key, key, SHA256_BYTES);
    checksum(data, bytes, header.checksum);
    entry_name(key, name);
    const bool written = write_entry(directory, &header, data);
    if (!written)
        snprintf(why, why_size, "cannot write %.8s... to directory %.256s: %s", name, path,
                 strerror(errno));
    make_room(directory);
    close(directory);
    return written;
}
