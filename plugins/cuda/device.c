/* SPDX-License-Identifier: MIT */
/* The devices: their facts, opening and closing them. */
#include "launch.h"

#include <stdlib.h>

/* -1 if the driver does not say. */
static int attribute(const struct plugin *plugin, int device, int attribute)
{
    int value;
    return plugin->cuda.device_attribute(&value, attribute, device) ? -1 : value;
}

/* 90 for compute capability 9.0; -1 if the driver does not say. */
static int capability(const struct plugin *plugin, int device)
{
    const int major = attribute(plugin, device, ATTRIBUTE_MAJOR);
    const int minor = attribute(plugin, device, ATTRIBUTE_MINOR);
    return major < 0 || minor < 0 ? -1 : major * 10 + minor;
}

/* "?" if the driver does not say. */
static void read_name(const struct plugin *plugin, int device, char *name, int size)
{
    if (plugin->cuda.device_name(name, size, device))
        snprintf(name, (size_t)size, "?");
    name[size - 1] = '\0';
}

enum { OLDEST_CAPABILITY = 50 };

/* Returns false, and reports the device as left out, if it is not. */
static bool is_new_enough(const struct plugin *plugin, int device)
{
    char name[128], why[128];
    const int is = capability(plugin, device);
    if (is >= OLDEST_CAPABILITY)
        return true;
    read_name(plugin, device, name, sizeof name);
    if (is < 0)
        snprintf(why, sizeof why, "the driver does not report its compute capability");
    else
        snprintf(why, sizeof why,
                 "it has compute capability %d.%d; this plugin needs %d.%d or later",
                 is / 10, is % 10, OLDEST_CAPABILITY / 10, OLDEST_CAPABILITY % 10);
    hw_leave_out(plugin->host, name, why);
    return false;
}

/* There is machine code of tuned kernels for these generations. */
static bool has_tuned_kernels(int capability)
{
    const int generation = capability / 10;
    return generation == 8 || generation == 9 || generation == 10 || generation == 12;
}

/* Why a device has no tuned kernels, if that is the driver. */
static bool is_driver_old(const struct plugin *plugin, int device, char *why, size_t size)
{
    enum { MAJOR = MACHINE_CODE_CUDA / 1000, MINOR = MACHINE_CODE_CUDA % 1000 / 10 };
    if (plugin->machine_code || !has_tuned_kernels(capability(plugin, device)))
        return false;
    snprintf(
        why, size,
        "the driver (%s) is older than the kernels' machine code (CUDA %d.%d): portable "
        "kernels are used; " TUNED_DRIVER " runs the tuned ones",
        plugin->version, MAJOR, MINOR);
    return true;
}

/* Reports the tuned kernels as disabled, once for all devices. */
static void leave_out_tuned(const struct plugin *plugin)
{
    char why[256];
    for (int32_t i = 0; i < plugin->devices; i++)
        if (is_driver_old(plugin, plugin->device[i], why, sizeof why)) {
            hw_leave_out(plugin->host, "tuned kernels", why);
            return;
        }
}

int32_t devices_find(struct plugin *plugin)
{
    int count = 0;
    const int32_t status = answer_early(plugin, plugin->cuda.device_count(&count),
                                        "count the devices");
    if (status)
        return status;
    for (int i = 0; i < count && plugin->devices < MOST_DEVICES; i++) {
        int device;
        const int result = plugin->cuda.device_get(&device, i);
        note_early(plugin, result, "look at a device, which is left out");
        if (!result && is_new_enough(plugin, device))
            plugin->device[plugin->devices++] = device;
    }
    if (count > 0 && plugin->devices == 0)
        return hw_fail(plugin->host, HW_NO_DEVICE,
                       "no device has compute capability %d.%d or later",
                       OLDEST_CAPABILITY / 10, OLDEST_CAPABILITY % 10);
    leave_out_tuned(plugin);
    return HW_OK;
}

int32_t device_count(void *self, int32_t *count)
{
    *count = ((struct plugin *)self)->devices;
    return HW_OK;
}

static uint64_t features_of(int capability)
{
    uint64_t features = 0;
    if (capability >= 53)
        features |= HW_FEATURE_F16;
    if (capability >= 61)
        features |= HW_FEATURE_INT8_DOT;
    if (capability >= 70)
        features |= HW_FEATURE_MATRIX;
    if (capability >= 80)
        features |= HW_FEATURE_BF16;
    return features;
}

/* Whether the device is a part of a card, which the driver names "NVIDIA H100 80GB HBM3 MIG
 * 1g.10gb". Each part has its own UUID but the card's PCI address, so all parts would seem to be
 * one device. Tried only on the stand-in. */
static bool is_part(const char *name)
{
    return strstr(name, " MIG ");
}

static void read_place(const struct plugin *plugin, int device,
                       struct hw_device_info *facts)
{
    facts->pci_domain = attribute(plugin, device, ATTRIBUTE_PCI_DOMAIN);
    facts->pci_bus = attribute(plugin, device, ATTRIBUTE_PCI_BUS);
    facts->pci_device = attribute(plugin, device, ATTRIBUTE_PCI_DEVICE);
    facts->pci_function = facts->pci_domain < 0 ? -1 : 0;
}

int32_t device_info(void *self, int32_t index, struct hw_device_info *info)
{
    const struct plugin *plugin = self;
    if (index < 0 || index >= plugin->devices)
        return no_device(plugin->host, index);
    const int device = plugin->device[index], is = capability(plugin, device);
    struct hw_device_info facts = hw_no_facts();
    size_t bytes = 0;
    facts.kind = attribute(plugin, device, ATTRIBUTE_INTEGRATED) == 1 ? HW_DEVICE_INTEGRATED
                                                                      : HW_DEVICE_DISCRETE;
    read_name(plugin, device, facts.name, sizeof facts.name);
    snprintf(facts.vendor, sizeof facts.vendor, "NVIDIA");
    snprintf(facts.driver, sizeof facts.driver, "%s", plugin->version);
    snprintf(facts.arch, sizeof facts.arch, "sm_%d", is);
    if (!plugin->cuda.device_memory(&bytes, device))
        facts.memory_total = bytes;
    facts.features = features_of(is);
    const int units = attribute(plugin, device, ATTRIBUTE_UNITS);
    facts.units = units > 0 ? (uint32_t)units : 0;
    if (!is_part(facts.name))
        read_place(plugin, device, &facts);
    facts.has_uuid = !plugin->cuda.device_uuid(facts.uuid, device);
    hw_answer(info, &facts);
    return HW_OK;
}

/* "cuda.device": the driver's CUdevice, a number, as a pointer. */
int32_t device_import(void *self, const char *kind, void *handle, int32_t *index)
{
    const struct plugin *plugin = self;
    const int32_t status = check_kind(plugin->host, "device", kind, "cuda.device");
    if (status)
        return status;
    for (int32_t i = 0; i < plugin->devices; i++)
        if ((intptr_t)handle == plugin->device[i]) {
            *index = i;
            return HW_OK;
        }
    return hw_fail(plugin->host, HW_NO_DEVICE, "the CUDA plugin has no device %lld",
                   (long long)(intptr_t)handle);
}

/* ---- opening ---- */

/* The device's features for rows. A kernel itself declares up to 1 KiB of shared memory. */
static uint64_t row_features(const struct device *device)
{
    const struct driver *cuda = device->cuda;
    const uint64_t features =
        (has_tuned_kernels(device->capability) ? SM_80 : 0) |
        (device->capability >= 80 && device->capability <= 90 ? SM_8X_90 : 0) |
        (device->shared_most >= SHARED_MOST + 1024 ? SHARED_160K : 0) |
        (device->capability == 90 && cuda->launch_ex && cuda->tensor_map_encode ? SM_90A
                                                                                : 0) |
        (device->host->precision >= HW_PRECISION_FP16 ? HALVES : 0) |
        (device->host->precision >= HW_PRECISION_INT8 ? BYTES : 0);
    return device->plugin->machine_code ? features | MACHINE_CODE
                                        : features & ~(uint64_t)MACHINE_CODE;
}

static int32_t open_stream(struct device *device)
{
    int32_t status = enter(device);
    if (status)
        return status;
    status = answer(device,
                    device->cuda->stream_create(&device->stream, STREAM_NON_BLOCKING),
                    "create a stream");
    leave(device);
    return status;
}

/* Also waits for callbacks of events, which run on their own streams. */
void device_close(void *self)
{
    struct device *device = self;
    if (device->context && enter_to_close(device, "close a device")) {
        note(device, device->cuda->context_wait(), "complete the device's work");
        launch_unload(device);
        if (device->stream)
            note(device, device->cuda->stream_destroy(device->stream), "destroy a stream");
        leave(device);
    }
    if (device->context)
        note(device, device->cuda->context_release(device->number), "release a context");
    pthread_mutex_destroy(&device->lock);
    free(device);
}

int32_t device_open(void *self, int32_t index, void **out)
{
    struct plugin *plugin = self;
    if (index < 0 || index >= plugin->devices)
        return no_device(plugin->host, index);
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return hw_fail(plugin->host, HW_NO_MEMORY, "out of memory");
    device->plugin = plugin;
    device->host = plugin->host;
    device->cuda = &plugin->cuda;
    device->number = plugin->device[index];
    device->units = attribute(plugin, device->number, ATTRIBUTE_UNITS);
    if (device->units < 1)
        device->units = 1; /* work is divided by it */
    device->capability = capability(plugin, device->number);
    device->shared_most = attribute(plugin, device->number, ATTRIBUTE_SHARED_MOST);
    device->choice.table = &launch_kernels;
    device->choice.features = row_features(device);
    pthread_mutex_init(&device->lock, NULL);
    size_t bytes = 0;
    kernel_choose(device->host, &device->choice);
    int32_t status = answer(device, plugin->cuda.device_memory(&bytes, device->number),
                            "ask how much memory the device has");
    device->memory = bytes;
    if (!status)
        status = answer(device,
                        plugin->cuda.context_retain(&device->context, device->number),
                        "make a context on the device");
    if (!status)
        status = open_stream(device);
    if (status) {
        device_close(device);
        return status;
    }
    char why[256];
    if (is_driver_old(plugin, device->number, why, sizeof why))
        plugin->host->log(plugin->host->instance, HW_LOG_WARN, why);
    *out = device;
    return HW_OK;
}
