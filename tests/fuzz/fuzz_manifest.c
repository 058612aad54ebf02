/* SPDX-License-Identifier: MIT */
/* fuzz_manifest.c - manifests of arbitrary bytes. */
#include "object/manifest.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct manifest manifest;
    char why[64] = "";
    bool good = manifest_parse(&manifest, (const char *)data, size, why, sizeof why);
    if (good != (why[0] == '\0') || !memchr(why, '\0', sizeof why))
        abort();
    if (good &&
        (!name_valid(manifest.name, strlen(manifest.name)) || manifest.abi_min == 0 ||
         manifest.abi_min > manifest.abi_max || manifest.match_count > MATCHES ||
         manifest.need_count > NEEDS || manifest.driver_count > DRIVERS ||
         manifest.variable_count > VARIABLES || strlen(manifest.title) >= NAME_SIZE))
        abort();
    return 0;
}
