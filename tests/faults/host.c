/* SPDX-License-Identifier: MIT */
/* host.c - see host.h. */
#define _GNU_SOURCE
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sorted by number, because the system lists them in no particular order. */
static void add_descriptors(FILE *out)
{
    const long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 0; fd < (most < 4096 ? most : 4096); fd++) {
        char link[64], target[512];
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(link, target, sizeof target - 1);
        if (length >= 0)
            fprintf(out, "descriptor %d -> %.*s\n", fd, (int)length, target);
    }
}

static void add_threads(FILE *out)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    fprintf(out, "threads %d\n", count);
}

static void add_signals(FILE *out)
{
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0)
            fprintf(out, "signal %d handler %p flags %x blocked %d\n", i,
                    (void *)(uintptr_t)action.sa_handler, (unsigned)action.sa_flags,
                    sigismember(&blocked, i));
    }
}

/* The floating-point modes, and their effect on arithmetic. */
static void add_floats(FILE *out)
{
    volatile float tiny = 1.5e-38f, half = 0.5f;
    fprintf(out, "rounding %d, denormal %g\n", fegetround(), (double)(tiny * half));
}

static void add_limits(FILE *out)
{
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)i, &limit) == 0)
            fprintf(out, "limit %d: %ju %ju\n", i, (uintmax_t)limit.rlim_cur,
                    (uintmax_t)limit.rlim_max);
    }
}

static void add_children(FILE *out)
{
    siginfo_t child = { 0 };
    const int none = waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0;
    fprintf(out, "children %s\n", none && errno == ECHILD ? "none" : "some");
}

static void add_rest(FILE *out)
{
    char directory[4096];
    const mode_t mask = umask(0);
    umask(mask);
    fprintf(out, "umask %03o\n", (unsigned)mask);
    fprintf(out, "directory %s\n", getcwd(directory, sizeof directory) ? directory : "?");
    fprintf(out, "locale %s\n", setlocale(LC_ALL, NULL));
    for (char **entry = environ; *entry; entry++)
        fprintf(out, "variable %s\n", *entry);
}

char *host_text(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    add_descriptors(out);
    add_threads(out);
    add_signals(out);
    add_floats(out);
    add_limits(out);
    add_children(out);
    add_rest(out);
    fclose(out);
    return text;
}

const char *host_difference(const char *before, const char *now)
{
    static char text[1200];
    while (*before || *now) {
        const size_t length = strcspn(before, "\n"), other = strcspn(now, "\n");
        if (length != other || memcmp(before, now, length) != 0) {
            snprintf(text, sizeof text, "\"%.*s\", then \"%.*s\"",
                     (int)(length < 500 ? length : 500), before,
                     (int)(other < 500 ? other : 500), now);
            return text;
        }
        before += length + (before[length] == '\n');
        now += other + (now[other] == '\n');
    }
    return NULL;
}

const char *host_mapping(const char *directory, const char *but)
{
    static char line[8192];
    FILE *maps = fopen("/proc/self/maps", "re");
    const char *found = maps ? NULL : "/proc/self/maps cannot be read";
    while (!found && fgets(line, sizeof line, maps)) {
        const char *path = strchr(line, '/');
        line[strcspn(line, "\n")] = '\0';
        if (path && !strncmp(path, directory, strlen(directory)) &&
            (strlen(path) < strlen(but) || strcmp(path + strlen(path) - strlen(but), but)))
            found = path;
    }
    if (maps)
        fclose(maps);
    return found;
}
