/* SPDX-License-Identifier: MIT */
/* platform.h - what the operating system knows about the process. */
#ifndef HW_BASE_PLATFORM_H
#define HW_BASE_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the process runs with rights that its user does not have (set-user-ID and so on). */
bool process_elevated(void);
uint64_t microseconds_now(void);
/* The plugin directory beside the running library; see docs/build.md. The caller frees it. NULL,
 * and errno, if memory runs out or the system does not tell. */
char *plugin_directory(bool elevated);
/* The helper program of this name that belongs to the running library, hw-probe or hw-worker,
 * which need not exist; see docs/build.md. The caller frees it. NULL as above. */
char *helper_program(const char *name, bool elevated);
/* The directory that the C library was loaded from, which is one of the system's. May be NULL;
 * the caller frees it. */
char *libc_directory(void);
/* Whether users or groups other than the file's own have rights of their own to it: an access
 * control list. True if that cannot be told. */
bool has_access_list(const char *path);
/* When the system was started, as a text that differs each time; false if it does not say. */
bool system_start(char *text, size_t size);
/* How many processors the process may use; 0: not known. */
unsigned usable_processors(void);
/* Whether an error means that memory, descriptors or processes ran out: it may go well later. */
bool is_shortage(int error);
/* Whether the process can open a few more files. */
bool descriptors_left(void);
/* "2.36"; NULL if the C library is not glibc. */
const char *libc_version(void);

#endif
