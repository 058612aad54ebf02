/* SPDX-License-Identifier: MIT */
/* soak.c - repeats the loader's work until faults occur that are as rare as one in 100 000 starts.
 *
 * usage: soak MODE COUNT [SEED]
 *
 *   cycles   contexts opened and closed, one after the other
 *   threads  64 threads at once that open and close contexts, compute and rescan
 *   fork     fork() at ten points of a context's life, and while another thread goes through it
 *   swap     contexts opened while the plugin's file is constantly swapped with one that must not
 *            be loaded
 *   syscalls contexts opened while one system call fails; COUNT is the number of such faults
 *   zoo      directories of random faulty and damaged plugins beside a good one, with random
 *            settings: each plugin gets its expected reason
 *   hours    computing, also in workers, with one fault in a hundred steps; COUNT is in seconds
 *   junk     files in one directory that have plugin names and nothing else
 *
 * It prints a line with figures. The status is 1 after an error, if descriptors, threads or memory
 * grew, or if the state of the process changed. FIXTURES and SOAK_FIXTURES are directories of built
 * plugins. */
#define _GNU_SOURCE
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pid_t owner; /* of the root: not a process that this one forks */

static void remove_root(void)
{
    if (getpid() == owner)
        remove_tree(root);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(long count);
    } modes[] = {
#define X(mode) { #mode, soak_##mode },
        MODES(X)
#undef X
    };
    const long count = argc > 2 ? atol(argv[2]) : 0;
    state_of_random = argc > 3 ? strtoull(argv[3], NULL, 10) | 1 : 20261123;
    strcpy(root, "/tmp/hw-soak-XXXXXX");
    if (!mkdtemp(root) || chmod(root, 0755))
        die("no directory in /tmp");
    owner = getpid();
    atexit(remove_root);
    umask(022);
    setenv("HW_CACHE_DIR", below("cache"), 1);
    for (size_t i = 0; i < sizeof modes / sizeof *modes && argc > 1 && count > 0; i++)
        if (!strcmp(modes[i].name, argv[1])) {
            modes[i].run(count);
            return 0;
        }
#define X(mode) " " #mode
    die("usage: soak MODE COUNT [SEED]; the modes are:" MODES(X));
#undef X
}
