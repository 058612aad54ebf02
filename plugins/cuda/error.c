/* SPDX-License-Identifier: MIT */
/* From a result of the driver to a status and a message; entering a device's context. */
#include "cuda.h"

/* Results of the driver. */
enum {
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    ECC_ERROR = 214,
    NVLINK_ERROR = 220,
    UNKNOWN = 999
};

/* After one of these, every call in the process's context fails. */
static bool is_fatal(int result)
{
    enum {
        ILLEGAL_ADDRESS = 700,
        LAUNCH_TIMEOUT = 702,
        CONTEXT_DESTROYED = 709,
        ASSERTION = 710,
        STACK_ERROR = 714,
        LAUNCH_FAILED = 719
    };
    return result == ILLEGAL_ADDRESS || result == LAUNCH_TIMEOUT ||
           result == CONTEXT_DESTROYED || result == ASSERTION ||
           (result >= STACK_ERROR && result <= LAUNCH_FAILED) || result == ECC_ERROR ||
           result == NVLINK_ERROR || result == UNKNOWN;
}

static int32_t explain(const struct driver *cuda, const struct hw_host *host,
                       int32_t status, int result, const char *what)
{
    const char *name = NULL, *text = NULL;
    if (cuda->error_name(result, &name) || !name)
        name = "an error that this driver cannot name";
    if (cuda->error_string(result, &text) || !text)
        text = "no description";
    return hw_fail(host, status, "cannot %s: %s (%s, %d)", what, text, name, result);
}

int32_t answer_early(const struct plugin *plugin, int result, const char *what)
{
    if (!result)
        return HW_OK;
    return explain(&plugin->cuda, plugin->host,
                   result == NO_DEVICE ? HW_NO_DEVICE : HW_DRIVER, result, what);
}

int32_t answer(struct device *device, int result, const char *what)
{
    int32_t status = HW_DRIVER;
    if (!result)
        return HW_OK;
    if (is_fatal(result))
        device->lost = true;
    if (device->lost)
        status = HW_LOST;
    else if (result == OUT_OF_MEMORY)
        status = HW_NO_MEMORY;
    return explain(device->cuda, device->host, status, result, what);
}

int32_t enter(struct device *device)
{
    if (device->lost)
        return hw_fail(device->host, HW_LOST,
                       "the device is lost after an earlier error; restart the program");
    return answer(device, device->cuda->context_push(device->context),
                  "enter the device's context");
}

void leave(struct device *device)
{
    void *context;
    device->cuda->context_pop(&context);
}
