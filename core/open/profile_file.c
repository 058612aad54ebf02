/* SPDX-License-Identifier: MIT */
/* profile_file.c - finds the profile of a device and reads it. Files that another user can have
 * written are ignored. POSIX, like cache.c. */
#define _POSIX_C_SOURCE 200809L
#include "open/profile.h"

#include "base/hash.h"
#include "base/platform.h"
#include "base/text.h"
#include "base/whole.h"
#include "open/candidate.h"
#include "open/registry.h"
#include "open/verdict.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the key ---- */

/* Makes one line of text, whatever characters the plugin's name contains. */
static char *line(const char *name, const char *value)
{
    char *text = text_format("%s %s", name, value && *value ? value : "-");
    for (char *c = text; c && *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    return text;
}

/* Appends a line; *key becomes NULL if memory runs out. */
static void add(char **key, const char *name, const char *value)
{
    char *text = *key ? line(name, value) : NULL;
    char *longer = text ? text_format("%s%s\n", *key, text) : NULL;
    free(text);
    free(*key);
    *key = longer;
}

/* Identifies the device, independently of its driver. */
static char *identity_of(const struct hw_device *device)
{
    char pci[PCI_SIZE], uuid[UUID_SIZE];
    char *key = strdup("");
    device_pci(&device->info, pci);
    device_uuid(&device->info, uuid);
    add(&key, "device", device->info.name);
    add(&key, "vendor", device->info.vendor);
    add(&key, "arch", device->info.arch);
    add(&key, "pci", pci);
    add(&key, "uuid", uuid);
    return key;
}

static const char *version_of(const struct plugin *plugin)
{
    const struct verdict *verdict = plugin->candidate->verdict;
    return plugin_is_bound(plugin) ? plugin->table.version
           : verdict               ? verdict->version
                                   : NULL;
}

char *profile_key(const struct hw_device *device)
{
    const struct setting_value *settings = device->context->settings.value;
    const struct candidate *candidate = device->plugin->candidate;
    char *key = identity_of(device), threads[16];
    snprintf(threads, sizeof threads, "%u", usable_processors());
    add(&key, "driver", device->info.driver);
    add(&key, "plugin", candidate->name);
    add(&key, "version", version_of(device->plugin));
    add(&key, "build", candidate->manifest ? candidate->manifest->build : NULL);
    add(&key, "threads",
        *settings[SETTING_threads].text ? settings[SETTING_threads].text : threads);
    add(&key, "precision", settings[SETTING_precision].text);
    add(&key, "kernel", settings[SETTING_kernel].text);
    return key;
}

/* NULL: there is no cache. A process with elevated rights has none. */
static char *directory_of(const struct hw_device *device)
{
    const struct settings *settings = &device->context->settings;
    const char *cache = settings->value[SETTING_cache_dir].text;
    return settings->elevated || !cache || *cache != '/'
               ? NULL
               : text_format("%s/" PROFILE_PLACE, cache);
}

/* "<backend>-<hash of the identity>". The name does not depend on the driver, so that a new driver
 * finds the old profile and reports the difference. */
static char *file_of(const struct hw_device *device)
{
    char *identity = identity_of(device);
    char *name = identity ? text_format("%s-%016" PRIx64, device->plugin->candidate->name,
                                        hash_add(HASH_START, identity, strlen(identity)))
                          : NULL;
    free(identity);
    return name;
}

char *profile_path(const struct hw_device *device)
{
    char *directory = directory_of(device);
    char *file = directory ? file_of(device) : NULL;
    char *path = file ? text_format("%s/%s", directory, file) : NULL;
    free(directory);
    free(file);
    return path;
}

/* ---- the file ---- */

static void say(struct profile *profile, const char *what, const char *why)
{
    profile->ignored = true;
    snprintf(profile->why, sizeof profile->why, "%s%s", what, why);
}

/* Whether this user owns it, and nobody else may write to it. */
static bool is_ours(struct profile *profile, int fd, const char *what, struct stat *file)
{
    if (fstat(fd, file))
        say(profile, what, strerror(errno));
    else if (file->st_uid != geteuid())
        say(profile, what, "belongs to another user");
    else if (file->st_mode & (S_IWGRP | S_IWOTH))
        say(profile, what, "other users may write to it");
    else
        return true;
    return false;
}

/* Returns -1 on an error, with the reason unless the path does not exist. */
static int open_ours(struct profile *profile, int at, const char *path, int flags,
                     const char *what, struct stat *file)
{
    const int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd < 0 && errno != ENOENT)
        say(profile, what,
            errno == ELOOP || errno == ENOTDIR ? "is a symbolic link or of another kind"
                                               : strerror(errno));
    if (fd < 0 || is_ours(profile, fd, what, file))
        return fd;
    close(fd);
    return -1;
}

static void read_file(struct profile *profile, int fd, const struct stat *file,
                      const char *key)
{
    if (!S_ISREG(file->st_mode) || file->st_size <= 0 ||
        file->st_size > (off_t)PROFILE_BYTES_MAX) {
        say(profile, "the file ", "is not a file of 1 byte to 256 KiB");
        return;
    }
    const size_t size = (size_t)file->st_size;
    char *data = malloc(size);
    if (!data || !read_whole(fd, data, size))
        say(profile, "the file ", data ? "cannot be read" : "is too large for the memory");
    else
        profile->ignored = !profile_parse(data, size, key, profile);
    free(data);
}

static void find(struct profile *profile, const struct hw_device *device)
{
    struct stat about;
    char *directory = directory_of(device), *name = file_of(device);
    char *key = profile_key(device);
    if (!directory || !name || !key) {
        snprintf(profile->why, sizeof profile->why, "there is no cache directory");
    } else {
        const int place = open_ours(profile, AT_FDCWD, directory, O_DIRECTORY,
                                    "its directory ", &about);
        const int fd = place < 0 ? -1
                                 : open_ours(profile, place, name, 0, "the file ", &about);
        if (fd >= 0)
            read_file(profile, fd, &about, key);
        if (fd >= 0)
            close(fd);
        if (place >= 0)
            close(place);
        if (!profile->written && !profile->why[0])
            snprintf(profile->why, sizeof profile->why, "hw tune has not measured it");
    }
    free(directory);
    free(name);
    free(key);
}

/* Several threads may read the profile at once; the result of one thread is kept. */
const struct profile *device_profile(struct hw_device *device)
{
    struct profile *known = atomic_load_explicit(&device->profile, memory_order_acquire);
    struct profile *made = known ? NULL : calloc(1, sizeof *made);
    if (!made)
        return known;
    find(made, device);
    if (!atomic_compare_exchange_strong(&device->profile, &known, made)) {
        free(made);
        return known;
    }
    if (made->ignored)
        log_line(&device->context->log, HW_LOG_INFO,
                 "%s: its profile is ignored: %s. Remedy: hw tune", device->name,
                 made->why);
    return made;
}
