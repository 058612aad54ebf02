/* SPDX-License-Identifier: MIT */
/* symbols.h - a vendor's library, opened at run time, and its functions, found by name.
 *
 * A plugin lists each function that it calls once, in <vendor>.def, with its own types, so no
 * vendor header is needed to build:
 *
 *   REQUIRED(int, cuInit, (unsigned flags), "cuInit")
 *   REQUIRED(int, cuMemAlloc, (uint64_t *at, size_t bytes), "cuMemAlloc_v2|cuMemAlloc")
 *   OPTIONAL(int, cuLaunchKernelEx, (const void *config, void *function, void **arguments,
 *                                    void **extra), "cuLaunchKernelEx")
 *
 * The last column is the exported name, or several separated by |; the first that the library
 * exports is used. The list generates the members of a struct and the table of their names:
 *
 *   struct driver {
 *   #define REQUIRED SYMBOL_MEMBER
 *   #define OPTIONAL SYMBOL_MEMBER
 *   #include "cuda.def"
 *   };
 *
 *   static const struct symbol symbols[] = {
 *   #define REQUIRED(result, name, args, names) SYMBOL(struct driver, name, names, true)
 *   #define OPTIONAL(result, name, args, names) SYMBOL(struct driver, name, names, false)
 *   #include "cuda.def"
 *   };
 *
 * and cuda.def ends with #undef REQUIRED and #undef OPTIONAL. */
#ifndef COMMON_SYMBOLS_H
#define COMMON_SYMBOLS_H

#include <hw/plugin.h>

#include <stdbool.h>

#define SYMBOL_MEMBER(result, name, arguments, names) result(*name) arguments;

#define SYMBOL(type, name, names, required) { names, offsetof(type, name), required },

struct symbol {
    const char *names; /* "a" or "a|b" */
    size_t offset;     /* of the function pointer, in the plugin's struct */
    bool required;
};

struct symbol_library {
    const char *files; /* "libcuda.so.1" or "a|b", as in the manifest's needs= */
    const struct symbol *symbols;
    uint32_t count;
    const char *remedy; /* for the message: "; install ..."; NULL: none */
    /* The vendor's own way to find a function, tried first for each name. If it is NULL or returns
     * NULL, the library's exports are searched. */
    void *(*find)(void *library, const char *name);
};

/* Opens the first of `files` that can be opened and stores the address of each symbol in the struct
 * at `functions`; an optional symbol that the library lacks is NULL. Returns HW_NO_DEVICE if no
 * file can be opened or a required symbol is missing: the message then names the missing file or
 * symbol and the reason, and all pointers are NULL. If that happens in open(), hw adds the remedy
 * of the manifest.
 *
 * The library is never closed: vendors' libraries start threads and register exit handlers, and
 * their code has to stay loaded. */
int32_t symbols_load(const struct hw_host *host, const struct symbol_library *library,
                     void *functions);

#endif
