/* SPDX-License-Identifier: MIT */
/* shortage.c - see shortage.h. free() is not replaced: all memory here comes from the original
 * heap. */
#define _GNU_SOURCE
#include "shortage.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)

/* The original functions, by their alternative names. */
#if defined(__SANITIZE_ADDRESS__)
#define BEHIND(name) __interceptor_##name
#else
#define BEHIND(name) __libc_##name
#endif

void *BEHIND(malloc)(size_t size);
void *BEHIND(calloc)(size_t count, size_t size);
void *BEHIND(realloc)(void *memory, size_t size);
void *BEHIND(memalign)(size_t alignment, size_t size);

/* LeakSanitizer cannot recognise allocations of the dynamic loader here, because these wrappers
 * hide the caller. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:ld-linux";
}

static _Thread_local unsigned left; /* allocations until one fails; 0: none does */
static _Thread_local bool failed;
static uintptr_t loader, loader_end; /* where the system's loader is */

/* The dynamic loader leaks when its own allocations fail. */
static void find_loader(void)
{
    loader = (uintptr_t)getauxval(AT_BASE);
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)loader;
    const ElfW(Phdr) *part = (const ElfW(Phdr) *)(loader + (head ? head->e_phoff : 0));
    for (int i = 0; head && i < head->e_phnum; i++)
        if (part[i].p_type == PT_LOAD)
            loader_end = loader + part[i].p_vaddr + part[i].p_memsz;
}

static bool fails_now(const void *caller)
{
    if (left == 0 || ((uintptr_t)caller >= loader && (uintptr_t)caller < loader_end) ||
        --left > 0)
        return false;
    failed = true;
    errno = ENOMEM;
    return true;
}

bool shortage_possible(void)
{
    return true;
}

void shortage_begin(unsigned n)
{
    if (!loader_end)
        find_loader();
    failed = false;
    left = n;
}

bool shortage_end(void)
{
    left = 0;
    return failed;
}

void *malloc(size_t size)
{
    return fails_now(__builtin_return_address(0)) ? NULL : BEHIND(malloc)(size);
}

void *calloc(size_t count, size_t size)
{
    return fails_now(__builtin_return_address(0)) ? NULL : BEHIND(calloc)(count, size);
}

void *realloc(void *memory, size_t size)
{
    return fails_now(__builtin_return_address(0)) ? NULL : BEHIND(realloc)(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails_now(__builtin_return_address(0)) ? NULL
                                                  : BEHIND(memalign)(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = fails_now(__builtin_return_address(0)) ? NULL
                                                     : BEHIND(memalign)(alignment, size);
    return *memory ? 0 : ENOMEM;
}

#else

bool shortage_possible(void)
{
    return false;
}

void shortage_begin(unsigned n)
{
    (void)n;
}

bool shortage_end(void)
{
    return false;
}

#endif
