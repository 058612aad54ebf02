/* SPDX-License-Identifier: MIT */
/* The devices of all platforms: what they are, opening and closing them. */
#include "opencl.h"

#include <dirent.h>
#include <stdlib.h>

/* What can be asked about a device. */
enum {
    DEVICE_TYPE = 0x1000,
    DEVICE_UNITS = 0x1002,
    DEVICE_GROUP_MOST = 0x1004,
    DEVICE_BUFFER_MOST = 0x1010,
    DEVICE_ALIGNMENT_BITS = 0x1019,
    DEVICE_MEMORY = 0x101F,
    DEVICE_LITTLE_ENDIAN = 0x1026,
    DEVICE_AVAILABLE = 0x1027,
    DEVICE_HAS_COMPILER = 0x1028,
    DEVICE_NAME = 0x102B,
    DEVICE_VENDOR = 0x102C,
    DEVICE_DRIVER = 0x102D,
    DEVICE_VERSION = 0x102F,
    DEVICE_EXTENSIONS = 0x1030,
    DEVICE_PLATFORM = 0x1031,
    DEVICE_UNIFIED_MEMORY = 0x1035,
    DEVICE_UUID = 0x106A, /* cl_khr_device_uuid */
    DEVICE_PCI = 0x410F   /* cl_khr_pci_bus_info */
};
enum { TYPE_CPU = 2, TYPE_GPU = 4, ANY_TYPE_OF_DEVICE = -1 };
enum { MOST_GROUP = 256, MOST_PLATFORMS = 32 };
enum { PLATFORM_NAME = 0x0902, DEVICE_NOT_FOUND = -1 };

/* ---- asking ---- */

/* Numbers of 32 bits (also flags) and of 64, or of the size of a pointer; 0 if not known. */
static uint64_t number(const struct plugin *plugin, void *device, uint32_t what)
{
    union {
        uint32_t small;
        uint64_t large;
    } value = { .large = 0 };
    size_t size = 0;
    if (plugin->cl.device_info(device, what, sizeof value, &value, &size))
        return 0;
    return size == sizeof value.small ? value.small : value.large;
}

/* Cut off if it is too long; "" if not known. */
static void text(const struct plugin *plugin, void *device, uint32_t what, char *to,
                 size_t room)
{
    char whole[1024];
    if (plugin->cl.device_info(device, what, sizeof whole, whole, NULL))
        whole[0] = '\0';
    whole[sizeof whole - 1] = '\0';
    snprintf(to, room, "%s", whole);
}

/* "OpenCL 3.0 <what the vendor likes>" is 30; 0 if not known. */
static int version(const struct plugin *plugin, void *device)
{
    char words[64];
    int major = 0, minor = 0;
    text(plugin, device, DEVICE_VERSION, words, sizeof words);
    return sscanf(words, "OpenCL %d.%d", &major, &minor) == 2 ? major * 10 + minor : 0;
}

static bool has_extension(const struct plugin *plugin, void *device, const char *name)
{
    size_t size = 0;
    bool found = false;
    if (plugin->cl.device_info(device, DEVICE_EXTENSIONS, 0, NULL, &size) || !size)
        return false;
    char *list = calloc(1, size + 1);
    if (list && !plugin->cl.device_info(device, DEVICE_EXTENSIONS, size, list, NULL))
        for (const char *at = list; !found && (at = strstr(at, name)); at += strlen(name))
            found = (at == list || at[-1] == ' ') &&
                    (at[strlen(name)] == ' ' || !at[strlen(name)]);
    free(list);
    return found;
}

/* ---- finding ---- */

/* Why the device cannot run the kernels; NULL: it can. */
static const char *why_not(const struct plugin *plugin, void *device)
{
    if (!number(plugin, device, DEVICE_AVAILABLE))
        return "it is not available";
    if (!number(plugin, device, DEVICE_HAS_COMPILER))
        return "it has no compiler";
    if (!number(plugin, device, DEVICE_LITTLE_ENDIAN))
        return "it is big-endian";
    if (number(plugin, device, DEVICE_GROUP_MOST) < LEAST_GROUP)
        return "its groups have fewer than 32 work-items";
    if (version(plugin, device) < 12)
        return "it has no OpenCL 1.2";
    return NULL;
}

static void leave_out(const struct plugin *plugin, void *device, const char *why)
{
    char name[128], line[256];
    text(plugin, device, DEVICE_NAME, name, sizeof name);
    snprintf(line, sizeof line, "%s is left out: %s", name, why);
    plugin->host->log(plugin->host->instance, HW_LOG_INFO, line);
}

/* Returns the error if the platform does not even say that it has no devices. */
static int find_on(struct plugin *plugin, void *platform)
{
    void *found[MOST_DEVICES];
    uint32_t count = 0;
    const int error = plugin->cl.get_devices(
        platform, (uint64_t)(uint32_t)ANY_TYPE_OF_DEVICE, MOST_DEVICES, found, &count);
    for (uint32_t i = 0; !error && i < count && i < MOST_DEVICES; i++) {
        const char *why = why_not(plugin, found[i]);
        if (why)
            leave_out(plugin, found[i], why);
        else if (plugin->devices < MOST_DEVICES)
            plugin->device[plugin->devices++] = found[i];
    }
    return error == DEVICE_NOT_FOUND ? 0 : error;
}

/* What is wrong with a platform matters most if no other has devices. */
static int32_t find_on_all(struct plugin *plugin, void **platforms, uint32_t count)
{
    char line[256] = "";
    for (uint32_t i = 0; i < count; i++) {
        const int error = find_on(plugin, platforms[i]);
        if (!error)
            continue;
        snprintf(line, sizeof line, "cannot list the devices of a platform: %s (%d)",
                 error_name(error), error);
        plugin->host->log(plugin->host->instance, HW_LOG_WARN, line);
    }
    return line[0] && !plugin->devices ? hw_fail(plugin->host, HW_NO_DEVICE, "%s", line)
                                       : HW_OK;
}

/* Copies the name of a file "<vendor>.icd" in the directory; false if there is none. Each names an
 * implementation to the library that the plugin calls. */
static bool find_icd(const char *directory, char *name, size_t room)
{
    bool found = false;
    DIR *list = opendir(directory);
    for (const struct dirent *entry; list && !found && (entry = readdir(list));) {
        const size_t length = strlen(entry->d_name);
        found = length > 4 && strcmp(entry->d_name + length - 4, ".icd") == 0;
        if (found)
            snprintf(name, room, "%s", entry->d_name);
    }
    if (list)
        closedir(list);
    return found;
}

/* The library says nothing about an implementation that it cannot open. */
static int32_t fail_without_platform(const struct plugin *plugin, int error)
{
    const char *chosen = getenv("OCL_ICD_VENDORS");
    const char *directory = chosen && chosen[0] ? chosen : "/etc/OpenCL/vendors";
    const char *why = error ? error_name(error) : "no platform";
    char name[256];
    if (find_icd(directory, name, sizeof name))
        return hw_fail(plugin->host, HW_NO_DEVICE,
                       "the implementations of OpenCL in %s (%s) cannot be used (%s): "
                       "reinstall the OpenCL driver of your device's vendor",
                       directory, name, why);
    return hw_fail(
        plugin->host, HW_NO_DEVICE,
        "no OpenCL implementation is installed (%s): install the OpenCL driver of "
        "your device's vendor",
        why);
}

int32_t devices_find(struct plugin *plugin)
{
    void *platforms[MOST_PLATFORMS];
    uint32_t count = 0;
    const int error = plugin->cl.get_platforms(MOST_PLATFORMS, platforms, &count);
    if (error || !count)
        return fail_without_platform(plugin, error);
    return find_on_all(plugin, platforms, count < MOST_PLATFORMS ? count : MOST_PLATFORMS);
}

/* ---- facts ---- */

int32_t device_count(void *self, int32_t *count)
{
    *count = ((struct plugin *)self)->devices;
    return HW_OK;
}

/* OpenCL on a CPU imitates a GPU. Oclgrind has all types. */
static int32_t kind_of(const struct plugin *plugin, void *device)
{
    const uint64_t type = number(plugin, device, DEVICE_TYPE);
    if (type & TYPE_CPU)
        return HW_DEVICE_SOFTWARE;
    if (!(type & TYPE_GPU))
        return HW_DEVICE_OTHER;
    return number(plugin, device, DEVICE_UNIFIED_MEMORY) ? HW_DEVICE_INTEGRATED
                                                         : HW_DEVICE_DISCRETE;
}

static void read_identity(const struct plugin *plugin, void *device,
                          struct hw_device_info *facts)
{
    struct {
        uint32_t domain, bus, device, function;
    } pci;
    if (has_extension(plugin, device, "cl_khr_pci_bus_info") &&
        !plugin->cl.device_info(device, DEVICE_PCI, sizeof pci, &pci, NULL)) {
        facts->pci_domain = (int32_t)pci.domain;
        facts->pci_bus = (int32_t)pci.bus;
        facts->pci_device = (int32_t)pci.device;
        facts->pci_function = (int32_t)pci.function;
    }
    facts->has_uuid = has_extension(plugin, device, "cl_khr_device_uuid") &&
                      !plugin->cl.device_info(device, DEVICE_UUID, sizeof facts->uuid,
                                              facts->uuid, NULL);
}

int32_t device_info(void *self, int32_t index, struct hw_device_info *info)
{
    const struct plugin *plugin = self;
    if (index < 0 || index >= plugin->devices)
        return no_device(plugin->host, index);
    void *device = plugin->device[index];
    struct hw_device_info facts = hw_no_facts();
    facts.kind = kind_of(plugin, device);
    text(plugin, device, DEVICE_NAME, facts.name, sizeof facts.name);
    text(plugin, device, DEVICE_VENDOR, facts.vendor, sizeof facts.vendor);
    text(plugin, device, DEVICE_DRIVER, facts.driver, sizeof facts.driver);
    const int is = version(plugin, device);
    snprintf(facts.arch, sizeof facts.arch, "OpenCL %d.%d", is / 10, is % 10);
    facts.memory_total = number(plugin, device, DEVICE_MEMORY);
    facts.units = (uint32_t)number(plugin, device, DEVICE_UNITS);
    facts.buffer_max = number(plugin, device, DEVICE_BUFFER_MOST);
    facts.buffer_alignment = (uint32_t)number(plugin, device, DEVICE_ALIGNMENT_BITS) / 8;
    if (number(plugin, device, DEVICE_UNIFIED_MEMORY))
        facts.features |= HW_FEATURE_UNIFIED_MEMORY;
    if (has_extension(plugin, device, "cl_khr_fp16"))
        facts.features |= HW_FEATURE_F16;
    read_identity(plugin, device, &facts);
    hw_answer(info, &facts);
    return HW_OK;
}

/* ---- opening ---- */

/* What implementations get wrong. */
static const struct quirk {
    const char *platform;
    uint32_t group; /* the most work-items of a group that it gets right */
} quirks[] = {
    /* 3.1: the scores of attention are wrong in groups of 256, and right in smaller ones. */
    { "Portable Computing Language", 64 },
};

static uint32_t quirk_group(const struct plugin *plugin, void *device)
{
    char platform[128] = "";
    plugin->cl.platform_info((void *)(uintptr_t)number(plugin, device, DEVICE_PLATFORM),
                             PLATFORM_NAME, sizeof platform, platform, NULL);
    for (size_t i = 0; i < sizeof quirks / sizeof quirks[0]; i++)
        if (strcmp(platform, quirks[i].platform) == 0)
            return quirks[i].group;
    return MOST_GROUP;
}

/* The largest power of two that the device allows. */
static uint32_t group_of(const struct plugin *plugin, void *device)
{
    const uint64_t allowed = number(plugin, device, DEVICE_GROUP_MOST);
    const uint64_t right = quirk_group(plugin, device);
    const uint64_t most = allowed < right ? allowed : right;
    uint32_t group = LEAST_GROUP;
    while (group * 2 <= most)
        group *= 2;
    return group;
}

static void wait_for_callbacks(struct device *device)
{
    pthread_mutex_lock(&device->callback_lock);
    while (device->callbacks)
        pthread_cond_wait(&device->callback_done, &device->callback_lock);
    pthread_mutex_unlock(&device->callback_lock);
}

void device_close(void *self)
{
    struct device *device = self;
    wait_for_callbacks(device);
    program_end(device);
    if (device->context)
        note(device, device->cl->release_context(device->context), "release a context");
    pthread_cond_destroy(&device->callback_done);
    pthread_mutex_destroy(&device->callback_lock);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

static int32_t open_context(struct device *device)
{
    int error = 0;
    device->context = device->cl->create_context(NULL, 1, &device->handle, NULL, NULL,
                                                 &error);
    return answer(device, error, "make a context on the device");
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
    device->cl = &plugin->cl;
    device->handle = plugin->device[index];
    device->group = group_of(plugin, device->handle);
    device->choice.table = &launch_kernels;
    text(plugin, device->handle, DEVICE_NAME, device->name, sizeof device->name);
    text(plugin, device->handle, DEVICE_DRIVER, device->driver, sizeof device->driver);
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->callback_lock, NULL);
    pthread_cond_init(&device->callback_done, NULL);
    program_begin(device);
    int32_t status = kernel_choose(device->host, device->host->kernel, &device->choice);
    if (!status)
        status = open_context(device);
    if (status)
        device_close(device);
    else
        *out = device;
    return status;
}
