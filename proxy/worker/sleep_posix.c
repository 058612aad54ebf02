/* SPDX-License-Identifier: MIT */
/* sleep_posix.c - sleeps with futexes on Linux, and polls on other systems. */
#define _GNU_SOURCE
#include "worker/sleep.h"

#include "base/platform.h"

#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#define SPIN_MICROSECONDS 50 /* a few times as long as sleeping and waking */
#define SPIN_TURNS        32 /* between two readings of the clock */

#if defined(__linux__)
void sleep_on(_Atomic uint32_t *word, uint32_t value, uint32_t microseconds)
{
    const struct timespec most = { microseconds / 1000000,
                                   (long)(microseconds % 1000000) * 1000 };
    syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0);
}

void wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
#else
void sleep_on(_Atomic uint32_t *word, uint32_t value, uint32_t microseconds)
{
    const uint32_t most = microseconds < 100 ? microseconds : 100;
    if (atomic_load(word) == value)
        nanosleep(&(struct timespec){ .tv_nsec = (long)most * 1000 }, NULL);
}

void wake_all(_Atomic uint32_t *word)
{
    (void)word;
}
#endif

static bool is_alone(void)
{
    static _Atomic unsigned processors;
    unsigned count = atomic_load_explicit(&processors, memory_order_relaxed);
    if (!count) {
        count = usable_processors();
        count += !count;
        atomic_store_explicit(&processors, count, memory_order_relaxed);
    }
    return count == 1;
}

bool spin_on(struct spin *spin)
{
    if (spin->turns++ % SPIN_TURNS == 0) {
        const uint64_t now = microseconds_now();
        if (!spin->end)
            spin->end = is_alone() ? now : now + SPIN_MICROSECONDS;
        if (now >= spin->end)
            return false;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    return true;
}
