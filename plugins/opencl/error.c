/* SPDX-License-Identifier: MIT */
/* Converts an error of OpenCL to a status and a message. */
#include "opencl.h"

static const struct {
    int error;
    const char *name;
    int32_t status;
} errors[] = {
#define FAILURE(name, value, status) { value, "CL_" #name, status },
#include "opencl.def"
    { -9999, "an illegal access of a kernel", HW_LOST }, /* of NVIDIA's implementation */
};

const char *error_name(int error)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "an unknown error";
}

static int32_t status_of(int error)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error)
            return errors[i].status;
    return HW_DRIVER;
}

int32_t check_lost(struct device *device)
{
    if (!device->lost)
        return HW_OK;
    return hw_fail(device->host, HW_LOST,
                   "the device is lost after an earlier error; restart the program");
}

/* "cannot <what>: CL_OUT_OF_RESOURCES (-5)" */
static void write_line(struct device *device, int32_t level, int error, const char *what)
{
    char line[512];
    snprintf(line, sizeof line, "cannot %s: %s (%d)", what, error_name(error), error);
    device->host->log(device->host->instance, level, line);
}

/* A lost device is reported only once. */
void note(struct device *device, int error, const char *what)
{
    const bool lost = device->lost;
    if (error && status_of(error) == HW_LOST)
        device->lost = true;
    if (error && !lost)
        write_line(device, HW_LOG_WARN, error, what);
}

int32_t answer(struct device *device, int error, const char *what)
{
    if (!error)
        return HW_OK;
    write_line(device, HW_LOG_DEBUG, error, what);
    int32_t status = status_of(error);
    if (status == HW_LOST)
        device->lost = true;
    if (device->lost)
        status = HW_LOST;
    return hw_fail(device->host, status, "cannot %s: %s (%d)", what, error_name(error),
                   error);
}

int32_t other_context(struct device *device, const char *what)
{
    return hw_fail(device->host, HW_INVALID,
                   "the %s belongs to another context than the device's; make it in the "
                   "device's context, which is an exported queue's CL_QUEUE_CONTEXT",
                   what);
}
