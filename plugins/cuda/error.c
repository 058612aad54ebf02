/* SPDX-License-Identifier: MIT */
/* Converts a result of the driver to a status and a message; enters a device's context. */
#include "cuda.h"

/* After one of these, every call in the process's context fails. */
static bool is_fatal(int result)
{
    return result == ILLEGAL_ADDRESS || result == LAUNCH_TIMEOUT ||
           result == CONTEXT_DESTROYED || result == ASSERTION ||
           (result >= STACK_ERROR && result <= LAUNCH_FAILED) || result == ECC_ERROR ||
           result == NVLINK_ERROR || result == UNKNOWN;
}

/* "cannot <what>: <the driver's words>" */
static const char *explain(const struct driver *cuda, int result, const char *what,
                           char *line, size_t size)
{
    const char *name = NULL, *text = NULL;
    if (cuda->error_name(result, &name) || !name)
        name = "an error that this driver cannot name";
    if (cuda->error_string(result, &text) || !text)
        text = "no description";
    snprintf(line, size, "cannot %s: %s (%s, %d)", what, text, name, result);
    return line;
}

enum { LINE = 1024 };

int32_t answer_early(const struct plugin *plugin, int result, const char *what)
{
    char line[LINE];
    if (!result)
        return HW_OK;
    return hw_fail(plugin->host, result == NO_DEVICE ? HW_NO_DEVICE : HW_DRIVER, "%s",
                   explain(&plugin->cuda, result, what, line, sizeof line));
}

void note_early(const struct plugin *plugin, int result, const char *what)
{
    char line[LINE];
    if (result)
        plugin->host->log(plugin->host->instance, HW_LOG_WARN,
                          explain(&plugin->cuda, result, what, line, sizeof line));
}

int32_t answer(struct device *device, int result, const char *what)
{
    char line[LINE];
    int32_t status = HW_DRIVER;
    if (!result)
        return HW_OK;
    if (is_fatal(result))
        device->lost = true;
    if (device->lost)
        status = HW_LOST;
    else if (result == OUT_OF_MEMORY)
        status = HW_NO_MEMORY;
    explain(device->cuda, result, what, line, sizeof line);
    device->host->log(device->host->instance, HW_LOG_DEBUG, line);
    return hw_fail(device->host, status, "%s", line);
}

/* A lost device is reported only once. */
void note(struct device *device, int result, const char *what)
{
    const bool lost = device->lost;
    if (is_fatal(result))
        device->lost = true;
    if (!lost)
        note_early(device->plugin, result, what);
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
    note(device, device->cuda->context_pop(&context), "leave the device's context");
}

bool enter_to_close(struct device *device, const char *what)
{
    const int result = device->cuda->context_push(device->context);
    note(device, result, what);
    return !result;
}
