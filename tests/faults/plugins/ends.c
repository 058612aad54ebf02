/* SPDX-License-Identifier: MIT */
/* What only another process survives. Built once for each of many acts: ACT is the function
 * of that name below, NAME what the plugin is called. It acts where PLACE says: in a
 * constructor, when it is opened, when its device is opened or closed, when it is closed. */
#define _GNU_SOURCE
#define CHANGES
#include "minimal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void crash(void)
{
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

static void divide(void)
{
    raise(SIGFPE);
}

/* Deeper than any stack. */
static int overflow(volatile int depth)
{
    volatile char room[4096];
    room[depth % 4096] = (char)depth;
    return depth < 0 ? 0 : overflow(depth + 1) + room[depth % 4096];
}

static void recurse(void)
{
    if (overflow(0))
        abort();
}

static void *crash_aside(void *unused)
{
    crash();
    return unused;
}

static void thread(void)
{
    pthread_t id;
    if (!pthread_create(&id, NULL, crash_aside, NULL))
        pthread_join(id, NULL);
}

static void leave(void)
{
    fputs("out of patience\n", stderr);
    exit(0);
}

static void hang(void)
{
    for (;;)
        pause();
}

static void stubborn(void)
{
    for (int i = 1; i < 32; i++)
        signal(i, SIG_IGN);
    for (;;)
        ;
}

static void print(void)
{
    for (;;)
        if (write(1, "and so on ", 10) < 0)
            pause();
}

static void sleep_aside(void)
{
    raise(SIGSTOP);
}

static void close_files(void)
{
    for (int fd = 0; fd < 64; fd++)
        close(fd);
}

static void write_files(void)
{
    for (int fd = 3; fd < 64; fd++)
        (void)!write(fd, "hwprobe1, and then nonsense", 27);
}

static void end_watcher(void)
{
    kill(getppid(), SIGKILL);
    pause();
}

static void stop_watcher(void)
{
    kill(getppid(), SIGSTOP);
    pause();
}

/* A process in a session of its own, twice removed; it has the FIFO open as long as it lives.
 * Only where the plugin is tried. */
static void stray(void)
{
    const char *fifo = getenv("HW_TEST_FIFO");
    if (!fifo || strcmp(program_invocation_short_name, "hw-probe") != 0 || fork())
        return;
    setsid();
    if (!fork() && open(fifo, O_WRONLY) >= 0)
        for (;;)
            pause();
    _exit(0);
}

static void stray_then_crash(void)
{
    stray();
    usleep(50000);
    crash();
}

static void (*const all[])(void) = {
    abort,       crash,        divide, recurse,          thread,      leave,
    hang,        stubborn,     print,  sleep_aside,      close_files, write_files,
    end_watcher, stop_watcher, stray,  stray_then_crash,
};

enum { AT_LOAD, AT_OPEN, AT_DEVICE, AT_DEVICE_CLOSE, AT_CLOSE };

static void act_at(int place)
{
    (void)all;
    if (place == PLACE)
        ACT();
}

__attribute__((constructor)) static void construct(void)
{
    act_at(AT_LOAD);
}

static int32_t act_open(const struct hw_host *host, void **self)
{
    act_at(AT_OPEN);
    return plugin_open(host, self);
}

static int32_t act_device(void *self, int32_t index, void **device)
{
    act_at(AT_DEVICE);
    return plugin_device(self, index, device);
}

static void act_device_close(void *device)
{
    (void)device;
    act_at(AT_DEVICE_CLOSE);
}

static void act_close(void *self)
{
    (void)self;
    act_at(AT_CLOSE);
}

static void change(struct hw_plugin *table)
{
    table->open = act_open;
    table->device_open = act_device;
    table->device_close = act_device_close;
    table->close = act_close;
}
