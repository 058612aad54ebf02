/* SPDX-License-Identifier: MIT */
/* group.c - runs a group of a kernel: its work-items are coroutines on one thread. In each round,
 * every work-item runs up to its next barrier, in alternating order: first to last, then last to
 * first. A work-item that reads another one's result without a barrier in between finds the old
 * value in one of the two orders, each time. */

/* Fortified longjmp() refuses to switch to another stack. */
#undef _FORTIFY_SOURCE

#include "run.h"

#include <stdbool.h>
#include <ucontext.h>

#ifdef __has_feature
#define ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#else
#define ASAN 0
#endif

/* AddressSanitizer must be told before and after a switch to another stack. */
#if ASAN
#include <sanitizer/common_interface_defs.h>
#define LEAVING(save, to)           __sanitizer_start_switch_fiber(save, (to)->bottom, (to)->size)
#define ENTERED(save, bottom, size) __sanitizer_finish_switch_fiber(save, bottom, size)
#else
#define LEAVING(save, to)           ((void)(save))
#define ENTERED(save, bottom, size) ((void)(save))
#endif

/* AddressSanitizer unpoisons a whole stack whenever longjmp() leaves it, because frames may end by
 * that. No frame ends here, so its marks are worth keeping. The compiler's own jumps, in functions
 * without instrumentation, keep them, and save three system calls per jump. */
#if ASAN && defined(__x86_64__)
typedef void *point[5];
#define MARK(at) __builtin_setjmp(at)
#define JUMP(at) __builtin_longjmp(at, 1)
#define BARE     __attribute__((noinline, no_sanitize("address")))
#else
typedef jmp_buf point;
#define MARK(at) setjmp(at)
#define JUMP(at) longjmp(at, 1)
#define BARE
#endif

enum { STACK = 64 * 1024, ENDED = -1 };

struct stack {
    point at;
    const void *bottom;
    size_t size;
};

static unsigned char memory[GROUP][STACK] __attribute__((aligned(16)));
static struct stack caller, item[GROUP];
static int reached[GROUP]; /* the line of a barrier, or ENDED */
int group_item;

static struct {
    portable_fn *kernel;
    i64 group;
    const void *args;
    void *const *pointers;
} work;

static BARE void change(struct stack *from, struct stack *to)
{
    void *save = NULL;

    LEAVING(&save, to);
    if (!MARK(from->at))
        JUMP(to->at);
    ENTERED(save, NULL, NULL);
}

void group_barrier(int line)
{
    reached[group_item] = line;
    change(&item[group_item], &caller);
}

/* Runs one work-item of every group, one group after the other. */
static void run_item(void)
{
    ENTERED(NULL, &caller.bottom, &caller.size);
    for (;;) {
        change(&item[group_item], &caller);
        work.kernel(work.pointers, work.args, work.group, work.group + 1);
        reached[group_item] = ENDED;
    }
}

/* Starts a work-item, which immediately switches back and waits for a group. */
static void start(int i)
{
    ucontext_t first;
    void *save = NULL;

    if (getcontext(&first))
        abort();
    first.uc_stack.ss_sp = memory[i];
    first.uc_stack.ss_size = STACK;
    makecontext(&first, run_item, 0);
    item[i].bottom = memory[i];
    item[i].size = STACK;
    group_item = i;
    LEAVING(&save, &item[i]);
    if (!MARK(caller.at)) {
        setcontext(&first);
        abort();
    }
    ENTERED(save, NULL, NULL);
}

/* Fails unless all work-items are at the same barrier, or all have ended. */
static void check_together(void)
{
    for (int i = 1; i < GROUP; i++)
        if (reached[i] != reached[0])
            fail_msg(
                "work-item 0 is at the barrier of line %d, work-item %d at %d (-1: ended)",
                reached[0], i, reached[i]);
}

void group_run(portable_fn *kernel, i64 group, const void *args, void *const *pointers)
{
    static bool started; /* true at the end of a group, too, unless a test failed */

    for (int i = 0; i < GROUP && !started; i++)
        start(i);
    started = false;
    work.kernel = kernel;
    work.group = group;
    work.args = args;
    work.pointers = pointers;
    reached[0] = 0;
    for (int round = 0; reached[0] != ENDED; round++) {
        for (int i = 0; i < GROUP; i++) {
            group_item = round % 2 ? GROUP - 1 - i : i;
            change(&caller, &item[group_item]);
        }
        check_together();
    }
    started = true;
}
