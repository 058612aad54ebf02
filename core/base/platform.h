/* SPDX-License-Identifier: MIT */
/* platform.h - facts about the process and the system, from the operating system. */
#ifndef HW_BASE_PLATFORM_H
#define HW_BASE_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the process runs with rights that its user does not have (set-user-ID and so on). */
bool process_elevated(void);
uint64_t microseconds_now(void);
/* The plugin directory beside the running library; see docs/build.md. The caller frees it. Returns
 * NULL and sets errno if memory runs out or the system does not name the library's file. */
char *plugin_directory(bool elevated);
/* The path of a file that the running library needs beside its plugins: hw-probe, hw-worker,
 * hw_worker.so or hw_shadow.so. It need not exist; see docs/build.md. The caller frees it. NULL as
 * above. */
char *helper_program(const char *name, bool elevated);
/* The system directory from which the C library was loaded. May be NULL; the caller frees it. */
char *libc_directory(void);
/* Whether an access control list gives rights to the file to further users or groups. True if the
 * list cannot be read. */
bool has_access_list(const char *path);
/* Writes a text that identifies this boot of the system; false if the system has none. */
bool system_start(char *text, size_t size);
/* How many processors the process may use; 0: not known. */
unsigned usable_processors(void);
/* Whether an error means that memory, descriptors or processes ran out, so a retry may succeed. */
bool is_shortage(int error);
/* Whether the process can open a few more files. */
bool descriptors_left(void);
/* "2.36"; NULL if the C library is not glibc. */
const char *libc_version(void);

#endif
