/* SPDX-License-Identifier: MIT */
/* swap.c - opens contexts while the plugin's file is constantly swapped with one that must not be
 * used. Each context has its own process, because a process never unloads a file. */
#define _GNU_SOURCE
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum outcome { USED, NOT_USED };

/* Two files whose links alternate as the plugin; the good one comes first. */
static pid_t start_swaps(long count)
{
    static const char *const names[] = { "marked", "good" };
    const pid_t swapper = fork();
    if (swapper)
        return swapper;
    for (long i = 0; i < count; i++)
        if (link(below("%s", names[i & 1]), below("part")) ||
            rename(below("part"), below("plugins/hw_good.so")))
            _exit(1);
    _exit(0);
}

/* False while the process runs. */
static bool has_ended(pid_t swapper)
{
    int status;
    const pid_t ended = waitpid(swapper, &status, WNOHANG);
    if (ended && (ended != swapper || status))
        die("the plugin cannot be replaced");
    return ended;
}

static enum outcome open_in_child(const char *probe)
{
    int status;
    const pid_t child = fork();
    if (!child) {
        struct hw_context *context;
        setenv("HW_PROBE", probe, 1);
        if (open_on(below("plugins"), &context))
            die("hw_open: %s", hw_message());
        const bool good = has_good(context);
        hw_close(context);
        _exit(good ? USED : NOT_USED);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) > NOT_USED)
        die("a process that opened a context failed");
    return (enum outcome)WEXITSTATUS(status);
}

/* How often the wrong file has left this letter. */
static long marks(char letter)
{
    size_t size;
    unsigned char *bytes = read_file(below("marks"), &size);
    long found = 0;
    for (size_t i = 0; i < size; i++)
        found += bytes[i] == letter;
    free(bytes);
    return found;
}

void soak_swap(long count)
{
    long opened = 0, good = 0;
    make_directory(below("plugins"));
    copy_file(FIXTURES "/hw_good.so", below("good"), 0755);
    copy_file(SOAK_FIXTURES "/hw_marked.so", below("marked"), 0666);
    write_file(below("marks"), "", 0, 0600);
    setenv("SOAK_MARKS", below("marks"), 1);
    if (link(below("good"), below("plugins/hw_good.so")))
        die("no hard links in %s", root);
    const double start = seconds();
    const pid_t swapper = start_swaps(count);
    if (swapper < 0)
        die("a process cannot be started");
    while (!has_ended(swapper)) {
        good += open_in_child(opened % 4 ? "inproc" : "child") == USED;
        opened++;
    }
    printf(
        "swap: %ld swaps, %ld contexts opened meanwhile in %.1f s, the good file used in "
        "%ld, the other one loaded for %ld and used for %ld\n",
        count, opened, seconds() - start, good, marks('c'), marks('e'));
    if (marks('c') || marks('e'))
        die("the file that others can write to was loaded");
}
