/* SPDX-License-Identifier: MIT */
/* Faults that kill or hang the process. Built once per fault: ACT is one of the functions below,
 * NAME the plugin's name, PLACE where it acts: in a constructor, in its entry, when it is opened,
 * when it counts or describes its devices, when its device is opened or closed, or when it is
 * closed. */
#define _GNU_SOURCE
#define CHANGES
#include "minimal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- it crashes ---- */

static void crash(void)
{
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

static void divide(void)
{
    raise(SIGFPE);
}

static void trap(void)
{
    __builtin_trap();
}

/* Reads a page of an empty file. */
static void bus(void)
{
    const int fd = memfd_create("empty", MFD_CLOEXEC);
    volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED)
        (void)*page;
}

/* Recurses until any stack overflows. */
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

/* Terminal control sequences, and bytes that are not text. */
static void mess(void)
{
    static const char text[] = "\x1b[2J\x9b\xff\xfe\0\r\n\"and a mess\\";
    (void)!write(2, text, sizeof text);
    abort();
}

/* Simulates a program that aborts for lack of memory. It allocates more than the machine has; if
 * nothing stops it, the plugin is used and the test fails. */
static void eat_memory(void)
{
    const size_t piece = (size_t)1 << 28;
    const size_t pages = (size_t)sysconf(_SC_PHYS_PAGES),
                 most = pages / (piece / (size_t)sysconf(_SC_PAGESIZE)) + 1;
    for (size_t i = 0; i < most; i++) {
        char *more = mmap(NULL, piece, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (more == MAP_FAILED) {
            fputs("out of memory\n", stderr);
            abort();
        }
        more[0] = 1;
    }
}

static void terminate(void)
{
    raise(SIGTERM);
}

static void end_by_force(void)
{
    raise(SIGKILL);
}

/* ---- it ends the process ---- */

static void leave(void)
{
    fputs("out of patience\n", stderr);
    exit(0);
}

static void leave_at_once(void)
{
    _exit(7);
}

static void end_main_thread(void)
{
    pthread_exit(NULL);
}

/* hw-probe prints its usage if it has no arguments. */
static void become_another(void)
{
    execl("/proc/self/exe", "hw-probe", (char *)NULL);
}

/* ---- it does not come to an end ---- */

static void hang(void)
{
    for (;;)
        pause();
}

static void spin(void)
{
    for (;;)
        ;
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

/* ---- damage to the process ---- */

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

/* The beginning of a reply that states a length of 2^64 - 1 bytes. */
static void write_length(void)
{
    unsigned char reply[32];
    memset(reply, 0xff, sizeof reply);
    for (int fd = 3; fd < 64; fd++)
        (void)!write(fd, reply, sizeof reply);
}

static void take_descriptors(void)
{
    while (dup(0) >= 0)
        ;
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

/* ---- child processes that outlive it, only where the plugin is tried ---- */

/* Holds the FIFO open while it lives, so that the test can tell. */
static void stay(void)
{
    const char *fifo = getenv("HW_TEST_FIFO");
    if (fifo && open(fifo, O_WRONLY) >= 0)
        for (;;)
            pause();
    _exit(0);
}

static int is_tried(void)
{
    return getenv("HW_TEST_FIFO") && strcmp(program_invocation_short_name, "hw-probe") == 0;
}

/* A grandchild in its own session. */
static void stray(void)
{
    if (!is_tried() || fork())
        return;
    setsid();
    if (!fork())
        stay();
    _exit(0);
}

static void stray_then_crash(void)
{
    stray();
    usleep(50000);
    crash();
}

static void fork_many(void)
{
    for (int i = 0; i < 32 && is_tried(); i++)
        if (!fork())
            stay();
}

/* Both processes continue as if each were the original. */
static void fork_and_go_on(void)
{
    const pid_t child = is_tried() ? fork() : 0;
    if (child > 0)
        waitpid(child, NULL, 0);
}

static void *sleep_on(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void leave_thread(void)
{
    pthread_t id;
    if (!pthread_create(&id, NULL, sleep_on, NULL))
        pthread_detach(id);
}

/* ---- where ---- */

static void (*const all[])(void) = {
    abort,         crash,           divide,         trap,
    bus,           recurse,         thread,         mess,
    eat_memory,    terminate,       end_by_force,   leave,
    leave_at_once, end_main_thread, become_another, hang,
    spin,          stubborn,        print,          sleep_aside,
    close_files,   write_files,     write_length,   take_descriptors,
    end_watcher,   stop_watcher,    stray,          stray_then_crash,
    fork_many,     fork_and_go_on,  leave_thread,
};

enum {
    AT_LOAD,
    AT_ENTRY,
    AT_OPEN,
    AT_COUNT,
    AT_INFO,
    AT_DEVICE,
    AT_DEVICE_CLOSE,
    AT_CLOSE
};

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

static int32_t act_count(void *self, int32_t *count)
{
    act_at(AT_COUNT);
    return plugin_count(self, count);
}

static int32_t act_info(void *self, int32_t index, struct hw_device_info *info)
{
    act_at(AT_INFO);
    return plugin_info(self, index, info);
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
    act_at(AT_ENTRY);
    table->open = act_open;
    table->device_count = act_count;
    table->device_info = act_info;
    table->device_open = act_device;
    table->device_close = act_device_close;
    table->close = act_close;
}
