/* SPDX-License-Identifier: MIT */
/* The devices of all platforms: their facts, opening and closing them. */
#include "opencl.h"

#include "common/sha256.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { ANY_TYPE_OF_DEVICE = -1 };
enum { MOST_GROUP = 256, MOST_PLATFORMS = 32 };

/* ---- asking ---- */

/* Numbers of 32 bits (also flags), of 64 bits or of the size of a pointer; 0 if unknown. */
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

/* Cuts the text off if it is too long; "" if unknown. */
static void text(const struct plugin *plugin, void *device, uint32_t what, char *to,
                 size_t room)
{
    char whole[1024];
    if (plugin->cl.device_info(device, what, sizeof whole, whole, NULL))
        whole[0] = '\0';
    whole[room - 1 < sizeof whole ? room - 1 : sizeof whole - 1] = '\0';
    memcpy(to, whole, strlen(whole) + 1);
}

/* "OpenCL 3.0 <vendor's text>" becomes 30; 0 if unknown. */
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

/* ---- quirks ---- */

/* Bugs of implementations, and the workarounds. The first column is the platform's name, the second
 * the beginning of the driver's version. */
static const struct quirk {
    const char *platform, *driver;
    bool refused;        /* the device is left out */
    uint32_t group_most; /* work-items of a group; 0: as many as the device allows */
    uint64_t lacks;      /* of enum feature */
    const char *options; /* for the compiler; NULL: none */
    const char *why;
} quirks[] = {
    { .platform = "Portable Computing Language",
      .driver = "",
      .group_most = 64,
      .why = "the scores of attention are wrong in larger groups on PoCL 3.1" },
    { .platform = "Portable Computing Language",
      .driver = "5.",
      .lacks = RIGHT_MATMUL_ID,
      .why = "PoCL 5 compiles matmul_id wrong, so another device computes it" },
    { .platform = "Intel(R) OpenCL",
      .driver = "",
      .options = " -DHW_CONTRACTS",
      .why = "its compiler contracts products and sums where it must not" },
    { .platform = "rusticl",
      .driver = "22.",
      .refused = true,
      .why =
          "rusticl of Mesa 22 damages the memory of the process; install Mesa 23 or later" },
};

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), last = strlen(end);
    return length > last && strcmp(text + length - last, end) == 0;
}

/* Applies the quirks to a device. Returns the reason why it must not be used, or NULL. */
static const char *apply_quirks(const struct plugin *plugin, const char *platform,
                                struct found *found)
{
    char name[128], driver[64], line[512];
    text(plugin, found->handle, DEVICE_NAME, name, sizeof name);
    text(plugin, found->handle, DEVICE_DRIVER, driver, sizeof driver);
    for (size_t i = 0; i < sizeof quirks / sizeof quirks[0]; i++) {
        const struct quirk *quirk = &quirks[i];
        if (strcmp(platform, quirk->platform) != 0 || !begins_with(driver, quirk->driver))
            continue;
        if (quirk->refused)
            return quirk->why;
        if (quirk->group_most && quirk->group_most < found->group_most)
            found->group_most = quirk->group_most;
        found->lacks |= quirk->lacks;
        if (quirk->options)
            found->options = quirk->options;
        snprintf(line, sizeof line, "%s needs care: %s", name, quirk->why);
        plugin->host->log(plugin->host->instance, HW_LOG_INFO, line);
    }
    return NULL;
}

/* ---- vendors ---- */

#ifdef OPENCL_VENDOR
#define NOTHING_FOUND "no OpenCL device of " OPENCL_VENDOR " can be used"

/* Numbers of the PCI Special Interest Group; processors have their makers' numbers, too. The text
 * is the beginning of the vendor's name. Each model of a Mali GPU has its own number; only the text
 * is common to all. */
static const struct {
    const char *name, *text;
    uint32_t number;
} vendors[] = {
    { "amd", "Advanced Micro Devices", 0x1002 },
    { "amd", "AMD", 0x1022 },
    { "arm", "ARM", 0x13B5 },
    { "intel", "Intel", 0x8086 },
    { "nvidia", "NVIDIA", 0x10DE },
    { "qualcomm", "QUALCOMM", 0x5143 },
};

/* Whether a module for one vendor shows the device. */
static bool is_wanted(const struct plugin *plugin, void *device)
{
    const uint64_t maker = number(plugin, device, DEVICE_VENDOR_NUMBER);
    char words[64];
    text(plugin, device, DEVICE_VENDOR, words, sizeof words);
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
        if (strcmp(vendors[i].name, OPENCL_VENDOR) == 0 &&
            (vendors[i].number == maker || begins_with(words, vendors[i].text)))
            return true;
    return false;
}
#else
#define NOTHING_FOUND "no OpenCL device can be used"

static bool is_wanted(const struct plugin *plugin, void *device)
{
    (void)plugin, (void)device;
    return true;
}
#endif

/* ---- finding ---- */

/* Returns the reason why the device cannot run the kernels, or NULL. */
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

static void find_device(struct plugin *plugin, const char *platform, uint32_t index,
                        void *handle)
{
    struct found found = {
        .handle = handle, .number = index, .group_most = MOST_GROUP, .options = ""
    };
    char name[128];
    if (!is_wanted(plugin, handle))
        return;
    const char *why = why_not(plugin, handle);
    if (!why)
        why = apply_quirks(plugin, platform, &found);
    if (!why && plugin->devices == MOST_DEVICES)
        why = "there are more than 64 devices";
    text(plugin, handle, DEVICE_NAME, name, sizeof name);
    snprintf(found.platform, sizeof found.platform, "%s", platform);
    if (why)
        hw_leave_out(plugin->host, name, why);
    else
        plugin->device[plugin->devices++] = found;
}

static void fail_platform(const struct plugin *plugin, const char *name, const char *what,
                          int error)
{
    char why[128];
    snprintf(why, sizeof why, "cannot %s: %s (%d)", what, error_name(error), error);
    hw_leave_out(plugin->host, name, why);
}

static void find_on(struct plugin *plugin, void *platform)
{
    void *found[MOST_DEVICES];
    uint32_t count = 0;
    char name[128] = "";
    int error = plugin->cl.platform_info(platform, PLATFORM_NAME, sizeof name, name, NULL);
    if (error) {
        fail_platform(plugin, "a platform", "read its name", error);
        return;
    }
    name[sizeof name - 1] = '\0';
    error = plugin->cl.get_devices(platform, (uint64_t)(uint32_t)ANY_TYPE_OF_DEVICE,
                                   MOST_DEVICES, found, &count);
    if (error == DEVICE_NOT_FOUND || (!error && !count))
        hw_leave_out(plugin->host, name, "the implementation lists no device");
    else if (error)
        fail_platform(plugin, name, "list its devices", error);
    for (uint32_t i = 0; !error && i < count && i < MOST_DEVICES; i++)
        find_device(plugin, name, i, found[i]);
}

/* Copies the name of a file "<vendor>.icd" in the directory; false if there is none. The library
 * that the plugin calls reads these files to find implementations. */
static bool find_icd(const char *directory, char *name, size_t room)
{
    bool found = false;
    DIR *list = opendir(directory);
    for (const struct dirent *entry; list && !found && (entry = readdir(list));) {
        found = ends_with(entry->d_name, ".icd");
        if (found)
            snprintf(name, room, "%s", entry->d_name);
    }
    if (list)
        closedir(list);
    return found;
}

#define VENDORS "/etc/OpenCL/vendors"

/* Describes OCL_ICD_VENDORS as the library understands it: a directory, a file "<vendor>.icd"
 * (perhaps in the usual directory), or a library, which the system searches for. */
static void describe_chosen(const char *chosen, char *what, size_t room)
{
    char name[256], usual[512];
    struct stat about;
    const bool is_file = ends_with(chosen, ".icd");
    snprintf(usual, sizeof usual, VENDORS "/%s", chosen);
    const bool there = !stat(chosen, &about) ||
                       (is_file && !strchr(chosen, '/') && !stat(usual, &about));
    if (there && S_ISDIR(about.st_mode) && find_icd(chosen, name, sizeof name))
        snprintf(what, room, "whose implementations of OpenCL (%s) cannot be used", name);
    else if (there && S_ISDIR(about.st_mode))
        snprintf(what, room, "a directory without a file *.icd");
    else if (there && is_file)
        snprintf(what, room, "which names a library that cannot be used");
    else if (is_file || strchr(chosen, '/'))
        snprintf(what, room, there ? "which cannot be used" : "which is not there");
    else
        snprintf(what, room, "a library that cannot be used");
}

/* The library says nothing about an implementation that it cannot open. The text after the line
 * break replaces the manifest's remedy. */
static int32_t fail_without_platform(const struct plugin *plugin, int error)
{
    const char *chosen = getenv("OCL_ICD_VENDORS");
    const char *why = error ? error_name(error) : "no platform";
    char what[512];
    if (chosen && chosen[0]) {
        describe_chosen(chosen, what, sizeof what);
        return hw_fail(
            plugin->host, HW_NO_DEVICE,
            "OCL_ICD_VENDORS is \"%s\", %s (%s)\ncorrect or unset OCL_ICD_VENDORS", chosen,
            what, why);
    }
    if (find_icd(VENDORS, what, sizeof what))
        return hw_fail(plugin->host, HW_NO_DEVICE,
                       "the implementations of OpenCL in " VENDORS
                       " (%s) cannot be used (%s)\n"
                       "reinstall the OpenCL driver of your device's vendor",
                       what, why);
    return hw_fail(plugin->host, HW_NO_DEVICE, "no OpenCL implementation is installed (%s)",
                   why);
}

int32_t devices_find(struct plugin *plugin)
{
    void *platforms[MOST_PLATFORMS];
    uint32_t count = 0;
    const int error = plugin->cl.get_platforms(MOST_PLATFORMS, platforms, &count);
    if (error || !count)
        return fail_without_platform(plugin, error);
    for (uint32_t i = 0; i < count && i < MOST_PLATFORMS; i++)
        find_on(plugin, platforms[i]);
    if (!plugin->devices)
        return hw_fail(plugin->host, HW_NO_DEVICE, NOTHING_FOUND);
    return HW_OK;
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

/* A UUID for a device without one: made from its names and its number on the platform. So a device
 * that two modules show is recognised as one. */
static void name_identity(const struct found *found, struct hw_device_info *facts)
{
    const char *const names[] = { found->platform, facts->name, facts->driver };
    uint8_t digest[SHA256_BYTES];
    struct sha256 hash;
    sha256_begin(&hash);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        sha256_add(&hash, names[i], strlen(names[i]) + 1);
    sha256_add(&hash, &found->number, sizeof found->number);
    sha256_end(&hash, digest);
    digest[6] = 0x80 | (digest[6] & 0x0F); /* version 8 of RFC 9562: of one's own making */
    digest[8] = 0x80 | (digest[8] & 0x3F);
    memcpy(facts->uuid, digest, sizeof facts->uuid);
    facts->has_uuid = true;
}

static void read_identity(const struct plugin *plugin, const struct found *found,
                          struct hw_device_info *facts)
{
    void *device = found->handle;
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
    if (!facts->has_uuid && facts->pci_bus < 0)
        name_identity(found, facts);
}

/* "opencl.device": a cl_device_id. */
int32_t device_import(void *self, const char *kind, void *handle, int32_t *index)
{
    const struct plugin *plugin = self;
    const int32_t status = check_kind(plugin->host, "device", kind, "opencl.device");
    if (status)
        return status;
    for (int32_t i = 0; i < plugin->devices; i++)
        if (handle == plugin->device[i].handle) {
            *index = i;
            return HW_OK;
        }
    return hw_fail(plugin->host, HW_NO_DEVICE, "the OpenCL plugin has no device %p",
                   handle);
}

/* The alignment of buffers, in bytes. */
static uint32_t alignment_of(const struct plugin *plugin, void *device)
{
    return (uint32_t)number(plugin, device, DEVICE_ALIGNMENT_BITS) / 8;
}

/* OpenCL does not report free memory. AMD's extension reports it, and its largest block. */
struct device_memory device_memory(const struct plugin *plugin, void *device)
{
    size_t kilobytes[2] = { 0, 0 };
    struct device_memory memory = { .total = number(plugin, device, DEVICE_MEMORY) };
    if (has_extension(plugin, device, "cl_amd_device_attribute_query") &&
        !plugin->cl.device_info(device, DEVICE_FREE_KB, sizeof kilobytes, kilobytes, NULL))
        memory.free = (uint64_t)kilobytes[0] << 10;
    return memory;
}

uint64_t device_local_memory(const struct plugin *plugin, void *device)
{
    return number(plugin, device, DEVICE_LOCAL_MEMORY);
}

/* AMD's own driver has the full name, which users would not search for. */
static void read_vendor(const struct plugin *plugin, void *device, char *to, size_t room)
{
    text(plugin, device, DEVICE_VENDOR, to, room);
    if (begins_with(to, "Advanced Micro Devices"))
        snprintf(to, room, "AMD");
}

int32_t device_info(void *self, int32_t index, struct hw_device_info *info)
{
    const struct plugin *plugin = self;
    if (index < 0 || index >= plugin->devices)
        return no_device(plugin->host, index);
    void *device = plugin->device[index].handle;
    struct hw_device_info facts = hw_no_facts();
    facts.kind = kind_of(plugin, device);
    text(plugin, device, DEVICE_NAME, facts.name, sizeof facts.name);
    read_vendor(plugin, device, facts.vendor, sizeof facts.vendor);
    text(plugin, device, DEVICE_DRIVER, facts.driver, sizeof facts.driver);
    const int is = version(plugin, device);
    snprintf(facts.arch, sizeof facts.arch, "OpenCL %d.%d", is / 10, is % 10);
    const struct device_memory memory = device_memory(plugin, device);
    facts.memory_total = memory.total;
    facts.memory_free = memory.free;
    facts.units = (uint32_t)number(plugin, device, DEVICE_UNITS);
    facts.buffer_max = number(plugin, device, DEVICE_BUFFER_MOST);
    facts.buffer_alignment = alignment_of(plugin, device);
    if (number(plugin, device, DEVICE_UNIFIED_MEMORY))
        facts.features |= HW_FEATURE_UNIFIED_MEMORY;
    if (has_extension(plugin, device, "cl_khr_fp16"))
        facts.features |= HW_FEATURE_F16;
    if (has_extension(plugin, device, "cl_khr_integer_dot_product"))
        facts.features |= HW_FEATURE_INT8_DOT;
    read_identity(plugin, &plugin->device[index], &facts);
    hw_answer(info, &facts);
    return HW_OK;
}

/* ---- opening ---- */

/* The largest power of two that the device allows. */
static uint32_t group_of(const struct plugin *plugin, const struct found *found)
{
    const uint64_t allowed = number(plugin, found->handle, DEVICE_GROUP_MOST);
    const uint64_t most = allowed < found->group_most ? allowed : found->group_most;
    uint32_t group = LEAST_GROUP;
    while (group * 2 <= most)
        group *= 2;
    return group;
}

/* The floats of a vector of the processor: 4, 8 or 16. */
static uint32_t wide_of(const struct plugin *plugin, void *device)
{
    const uint64_t wide = number(plugin, device, DEVICE_FLOATS_WIDE);
    return wide >= 16 ? 16 : wide >= 8 ? 8 : 4;
}

/* Whether the host and kernels can use memory in turns without mapping it: fine-grain shared
 * virtual memory of OpenCL 2.0. It is useful if the device's memory is the host's memory. */
static bool shares_memory(const struct plugin *plugin, void *device)
{
    return plugin->cl.svm_alloc && plugin->cl.svm_free && version(plugin, device) >= 20 &&
           number(plugin, device, DEVICE_UNIFIED_MEMORY) &&
           number(plugin, device, DEVICE_SVM) & SVM_FINE_BUFFER;
}

/* Whether the device has an instruction for dot products of four signed bytes; OpenCL C 3.0 has a
 * function for it. */
static bool multiplies_bytes(const struct plugin *plugin, void *device)
{
    uint32_t accelerated[6] = { 0 }; /* the first: both with signs */
    return version(plugin, device) >= 30 &&
           has_extension(plugin, device, "cl_khr_integer_dot_product") &&
           !plugin->cl.device_info(device, DEVICE_DOTS, sizeof accelerated, accelerated,
                                   NULL) &&
           accelerated[0];
}

static uint64_t features_of(const struct plugin *plugin, const struct found *found,
                            bool has_dots)
{
    const uint64_t local = device_local_memory(plugin, found->handle);
    const bool is_cpu = number(plugin, found->handle, DEVICE_TYPE) & TYPE_CPU;
    uint64_t features = RIGHT_MATMUL_ID;
    if (plugin->host->precision >= HW_PRECISION_INT8)
        features |= ALLOW_INT8;
    if (is_cpu && local >= 192 << 10)
        features |= ON_CPU | DOTS; /* the row for CPUs comes before the other one */
    if (!is_cpu && has_dots)
        features |= DOTS;
    if (local >= 32 << 10 && group_of(plugin, found) >= 64)
        features |= LOCAL_32K;
    return features & ~found->lacks;
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
    device->handle = plugin->device[index].handle;
    device->group = group_of(plugin, &plugin->device[index]);
    device->choice.table = &launch_kernels;
    device->units = (uint32_t)number(plugin, device->handle, DEVICE_UNITS);
    device->units = device->units ? device->units : 1;
    device->wide = wide_of(plugin, device->handle);
    device->alignment = alignment_of(plugin, device->handle);
    device->shares = shares_memory(plugin, device->handle);
    device->dots = multiplies_bytes(plugin, device->handle);
    device->choice.features = features_of(plugin, &plugin->device[index], device->dots);
    text(plugin, device->handle, DEVICE_NAME, device->name, sizeof device->name);
    text(plugin, device->handle, DEVICE_DRIVER, device->driver, sizeof device->driver);
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->callback_lock, NULL);
    pthread_cond_init(&device->callback_done, NULL);
    program_begin(device, plugin->device[index].options);
    kernel_choose(device->host, &device->choice);
    const int32_t status = open_context(device);
    if (status)
        device_close(device);
    else
        *out = device;
    return status;
}
