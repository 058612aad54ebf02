/* SPDX-License-Identifier: MIT */
/* symbols.c - opening a vendor's library and finding its functions. */
#include "symbols.h"

#include "library.h"

enum { NAME_BYTES = 128, REASON_BYTES = 512, PATH_BYTES = 1024 };

/* Copies the first of the names in `*list` and moves `*list` behind it; false at the end. */
static bool next_name(const char **list, char name[NAME_BYTES])
{
    const size_t length = strcspn(*list, "|");

    if (length == 0)
        return false;
    snprintf(name, NAME_BYTES, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == '|');
    return true;
}

static void *find_symbol(const struct symbol_library *library, void *handle,
                         const char *names)
{
    char name[NAME_BYTES];
    void *symbol = NULL;

    while (!symbol && next_name(&names, name)) {
        if (library->find)
            symbol = library->find(handle, name);
        if (!symbol)
            symbol = library_symbol(handle, name);
    }
    return symbol;
}

/* Opens the first file that can be opened and leaves its name in `file`. `reasons` gets the
 * system's message for each file that cannot be opened. */
static void *open_first(const char *files, char file[NAME_BYTES],
                        char reasons[REASON_BYTES])
{
    size_t used = 0;

    while (next_name(&files, file)) {
        char why[REASON_BYTES];
        void *library = library_open(file, why, sizeof why);
        if (library)
            return library;
        const int n = snprintf(reasons + used, REASON_BYTES - used, "%s%s",
                               used ? "; " : "", why);
        used += n > 0 ? (size_t)n : 0;
        used = used < REASON_BYTES ? used : REASON_BYTES - 1;
    }
    return NULL;
}

static void store(void *functions, const struct symbol *symbol, void *address)
{
    memcpy((char *)functions + symbol->offset, &address, sizeof address);
}

int32_t symbols_load(const struct hw_host *host, const struct symbol_library *library,
                     void *functions)
{
    char file[NAME_BYTES] = "", reasons[REASON_BYTES] = "no file is named";
    void *handle = open_first(library->files, file, reasons);
    const char *remedy = library->remedy ? library->remedy : "";
    const struct symbol *missing = NULL;
    char path[PATH_BYTES] = "";

    for (uint32_t i = 0; i < library->count; i++) {
        const struct symbol *symbol = &library->symbols[i];
        void *address = handle ? find_symbol(library, handle, symbol->names) : NULL;
        store(functions, symbol, address);
        if (!address && symbol->required && !missing)
            missing = symbol;
        if (address && !*path)
            library_path(address, path, sizeof path);
    }
    if (handle && !missing)
        return HW_OK;
    for (uint32_t i = 0; i < library->count; i++)
        store(functions, &library->symbols[i], NULL);
    if (!handle)
        return hw_fail(host, HW_NO_DEVICE, "cannot open %.200s: %s%s", library->files,
                       reasons, remedy);
    return hw_fail(host, HW_NO_DEVICE,
                   "%s has no function %s, so it is too old for this plugin%s",
                   *path ? path : file, missing->names, remedy);
}
