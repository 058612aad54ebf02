/* SPDX-License-Identifier: MIT */
/* preflight.c - the stage preflight: reads the beginning of the file and its manifest, without
 * running it. A file stops here if it is not a plugin, incomplete, or built for another system or
 * library. hw-probe checks the rest before it loads the file (probe/examine.c). */
#define _POSIX_C_SOURCE 200809L
#include "load/preflight.h"

#include "base/platform.h"
#include "cache/key.h"
#include "load/scan.h"
#include "object/header.h"
#include "open/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool check_manifest(struct candidate *candidate, const struct header *header)
{
    char why[256];
    if (!header->manifest)
        return stop(candidate, REASON_NO_MANIFEST, NULL);
    candidate->manifest = malloc(sizeof *candidate->manifest);
    if (!candidate->manifest)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    if (manifest_parse(candidate->manifest, header->manifest, header->manifest_bytes, why,
                       sizeof why))
        return true;
    free(candidate->manifest);
    candidate->manifest = NULL;
    return stop(candidate, REASON_BAD_MANIFEST, "its manifest is invalid: %s", why);
}

/* If the file's name does not name the plugin, the manifest does. The checks of names in the
 * earlier stages then follow here. */
static bool check_name(struct hw_context *context, struct candidate *candidate)
{
    const char *name = candidate->manifest->name;
    bool unnamed = candidate->name[0] == '\0';
    if (!unnamed && strcmp(candidate->name, name) != 0)
        return stop(candidate, REASON_NAME_MISMATCH,
                    "the file is named %s, but its manifest has the name \"%s\"",
                    candidate->file, name);
    memcpy(candidate->name, name, sizeof candidate->name);
    return !unnamed || (first_of_name(context, candidate) && filter(context, candidate));
}

static bool check_abi(struct candidate *candidate)
{
    const struct manifest *manifest = candidate->manifest;
    uint32_t oldest = HW_ABI_OLDEST, newest = HW_ABI_VERSION;
    if (manifest->abi_max >= oldest && manifest->abi_min <= newest)
        return true;
    return stop(candidate, REASON_ABI_RANGE,
                "it supports ABI versions %u to %u, this library %u to %u",
                (unsigned)manifest->abi_min, (unsigned)manifest->abi_max, (unsigned)oldest,
                (unsigned)newest);
}

static bool read_file(struct candidate *candidate, struct header *header)
{
    static const enum reason reasons[OBJECT_FAULT_COUNT] = {
#define X(NAME, code) [OBJECT_##NAME] = REASON_##NAME,
        OBJECT_FAULTS(X)
#undef X
    };
    struct stat info;
    char why[256] = "";
    if (fstat(candidate->fd, &info))
        return stop(candidate, is_shortage(errno) ? REASON_NO_MEMORY : REASON_UNREADABLE,
                    "cannot be read: %s", strerror(errno));
    const enum object_fault fault = header_read(candidate->fd, (uint64_t)info.st_size,
                                                header, why, sizeof why);
    return !fault || stop(candidate, reasons[fault], "%s", why);
}

bool preflight(struct hw_context *context, struct candidate *candidate)
{
    struct header header = { 0 };
    if (context->settings.probe != PROBE_INPROC)
        key_begin(candidate);
    const bool good = read_file(candidate, &header) && check_manifest(candidate, &header) &&
                      check_name(context, candidate) && check_abi(candidate);
    free(header.manifest);
    candidate->beside = header.beside;
    return good;
}
