/* SPDX-License-Identifier: MIT */
/* fuzz_verdict.c - the reply of a probe, of arbitrary bytes. */
#include "load/verdict.h"
#include "open/registry.h"
#include "probe/verdict_write.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *data, size_t size)
{
    struct verdict verdict;
    unsigned char *bytes = NULL;
    size_t length = 0;
    if (!verdict_decode(&verdict, data, size))
        return;
    if ((verdict.reason == REASON_NONE) != (verdict.device_count != 0) ||
        verdict.device_count > MAX_DEVICES || verdict.withdrawn_count > VERDICT_WITHDRAWN ||
        (!verdict.reason && !verdict.version))
        abort();
    for (uint32_t i = 0; i < verdict.device_count; i++)
        if (device_fault(&verdict.devices[i].info))
            abort();
    for (uint32_t i = 0; i < verdict.withdrawn_count; i++)
        if (verdict.withdrawn[i].device >= verdict.device_count ||
            verdict.withdrawn[i].op >= HW_OP_COUNT || !verdict.withdrawn[i].why)
            abort();
    uint64_t sum = 0;
    for (uint32_t i = 0; i < verdict.device_count * verdict.form_count; i++)
        sum += verdict.left[i];
    for (uint32_t i = 0; i < verdict.form_count; i++)
        if (verdict.forms[i].op >= HW_OP_COUNT)
            abort();
    if (sum > verdict.untested || verdict.form_count > VERDICT_FORMS)
        abort();
    /* A verdict that was read can be written, with the same length. */
    if (!verdict_encode(&verdict, &bytes, &length) || length != size)
        abort();
    free(bytes);
    verdict_free(&verdict);
}

/* First unchanged, then with a correct frame. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size);
    if (size < VERDICT_FRAME)
        return 0;
    uint8_t *sealed = malloc(size);
    if (!sealed)
        abort();
    memcpy(sealed, data, size);
    verdict_seal(sealed, size);
    check(sealed, size);
    free(sealed);
    return 0;
}
