/* SPDX-License-Identifier: MIT */
/* library_windows.c - see library.h. Compiled, not executed. */
#include "library.h"

#include <windows.h>

#include <stdio.h>
#include <string.h>

/* Searches the folders of the system, of the program, and those that the program has added, but
 * neither the current folder nor PATH. */
void *library_open(const char *file, char *why, size_t why_size)
{
    char text[256] = "";
    void *library = LoadLibraryExA(file, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    const DWORD error = library ? 0 : GetLastError();
    if (!library)
        FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
                       error, 0, text, sizeof text, NULL);
    text[strcspn(text, "\r\n")] = '\0';
    snprintf(why, why_size, "%s: error %lu%s%s", file, error, *text ? ", " : "", text);
    return library;
}

void *library_symbol(void *library, const char *name)
{
    const FARPROC found = GetProcAddress(library, name);
    void *address = NULL;
    memcpy(&address, &found, sizeof address);
    return address;
}

void library_path(void *symbol, char *path, size_t path_size)
{
    const DWORD flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                        GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    HMODULE module;
    if (!GetModuleHandleExA(flags, symbol, &module) ||
        !GetModuleFileNameA(module, path, (DWORD)path_size))
        path[0] = '\0';
}
