/* SPDX-License-Identifier: MIT */
/* checks.c - see checks.h: checks of the library's report, and of facts outside it: whether the
 * files of devices can be opened, and whether the devices compute. */
#define _GNU_SOURCE
#include "checks.h"

#include "command/output.h"
#include "driver_version.h"

#include <build_stamp.h>
#include <hw/hw.h>
#include <hw/report.h>

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum state { GOOD, NOTE, PROBLEM };

/* Adds a row. `remedy` may be NULL. */
__attribute__((format(printf, 5, 6))) static void add(json_t *rows, const char *subject,
                                                      enum state state, const char *remedy,
                                                      const char *format, ...)
{
    static const char *const states[] = { "good", "note", "problem" };
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_array_append_new(
        rows, json_pack("{s:s, s:s, s:o, s:o}", "subject", subject, "state", states[state],
                        "text", json_text(text, strlen(text)), "remedy",
                        remedy ? json_text(remedy, strlen(remedy)) : json_null()));
}

/* ---- the library's report ---- */

static void check_versions(json_t *rows, const json_t *explain)
{
    const char *library = text_of(explain, "version");
    if (strcmp(library, HW_BUILD_STAMP))
        add(rows, "library", NOTE,
            "Install command and library of the same release, or check LD_LIBRARY_PATH",
            "the command is version " HW_BUILD_STAMP ", the library %s", library);
    else
        add(rows, "library", GOOD, NULL, "version %s, plugin ABI %d to %d", library,
            (int)number_of(explain, "abi_min"), (int)number_of(explain, "abi_max"));
}

static void check_settings(json_t *rows, const json_t *explain)
{
    json_t *each;
    size_t index;
    json_array_foreach (json_object_get(explain, "warnings"), index, each)
        add(rows, "settings", PROBLEM,
            "'hw env' lists the settings and where they come from", "%s",
            json_string_value(each));
    json_array_foreach (json_object_get(explain, "settings"), index, each)
        if (strcmp(text_of(each, "source"), "default"))
            add(rows, "settings", GOOD, NULL, "%s is \"%s\" (%s)",
                text_of(each, "variable"), text_of(each, "value"), text_of(each, "source"));
}

static void check_directories(json_t *rows, const json_t *explain)
{
    json_t *each;
    size_t index;
    json_array_foreach (json_object_get(explain, "directories"), index, each) {
        const bool read = !strncmp(text_of(each, "state"), "read", 4);
        add(rows, "directories", read ? GOOD : NOTE,
            read ? NULL : "Create it, or correct HW_PLUGIN_PATH", "%s (%s): %s",
            text_of(each, "path"), text_of(each, "source"), text_of(each, "state"));
    }
    if (!json_array_size(json_object_get(explain, "candidates")))
        add(rows, "plugins", PROBLEM, "Put a plugin into one of the directories above",
            "no plugin file was found");
}

static size_t devices_of(const json_t *explain, const char *backend)
{
    size_t index, count = 0;
    json_t *device;
    json_array_foreach (json_object_get(explain, "devices"), index, device)
        count += !strcmp(text_of(device, "backend"), backend);
    return count;
}

bool may_be_meant(const char *reason)
{
    static const char *const reasons[] = { "disabled",    "not-selected",  "shadowed",
                                           "no-hardware", "needs-library", "no-driver",
                                           "no-device",   "other-system",  NULL };
    for (const char *const *each = reasons; *each; each++)
        if (!strcmp(reason, *each))
            return true;
    return false;
}

static void check_plugins(json_t *rows, const json_t *explain)
{
    json_t *file;
    size_t index;
    json_array_foreach (json_object_get(explain, "candidates"), index, file) {
        const char *reason = text_of(file, "reason"), *path = text_of(file, "file");
        const json_t *manifest = json_object_get(file, "manifest");
        if (*reason)
            add(rows, "plugins", may_be_meant(reason) ? NOTE : PROBLEM,
                text_of(file, "remedy"), "%s: %s (%s)", path, text_of(file, "message"),
                reason);
        else
            add(rows, "plugins", GOOD, NULL, "%s: %s, devices: %zu%s%s", path,
                text_of(file, "name"), devices_of(explain, text_of(file, "name")),
                flag_of(manifest, "built_with_library") ? "" : ", another version: ",
                flag_of(manifest, "built_with_library") ? "" : text_of(manifest, "build"));
    }
}

/* ---- the hardware that the system lists ---- */

static const struct vendor {
    const char *number, *name, *driver;
} vendors[] = {
    { "10de", "NVIDIA", "Install NVIDIA's driver (Debian: nvidia-driver), and restart" },
    { "1002", "AMD",
      "Load the module amdgpu; it may need firmware (Debian: firmware-amd-graphics)" },
    { "8086", "Intel", "Load the module i915 or xe" },
};

static const struct vendor *vendor_of(const char *number)
{
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
        if (!strcmp(vendors[i].number, number))
            return &vendors[i];
    return NULL;
}

/* The name of the device at this place, or NULL. */
static const char *device_at(const json_t *explain, const char *pci)
{
    json_t *device;
    size_t index;
    json_array_foreach (json_object_get(explain, "devices"), index, device)
        if (!strcmp(text_of(device, "pci"), pci))
            return text_of(device, "name");
    return NULL;
}

static void check_hardware(json_t *rows, const json_t *explain)
{
    json_t *each;
    size_t index;
    json_array_foreach (json_object_get(explain, "hardware"), index, each) {
        const char *pci = text_of(each, "pci"), *driver = text_of(each, "kernel_driver");
        const struct vendor *vendor = vendor_of(text_of(each, "vendor"));
        const char *name = device_at(explain, pci);
        char what[128];
        snprintf(what, sizeof what, "%s %s:%s at %s", vendor ? vendor->name : "PCI device",
                 text_of(each, "vendor"), text_of(each, "device"), pci);
        if (name)
            add(rows, "hardware", GOOD, NULL, "%s: %s, kernel driver %s", what, name,
                driver);
        else if (!*driver)
            add(rows, "hardware", vendor ? PROBLEM : NOTE, vendor ? vendor->driver : NULL,
                "%s: no kernel driver is bound to it", what);
        else if (!strcmp(driver, "nouveau"))
            add(rows, "hardware", PROBLEM, vendor ? vendor->driver : NULL,
                "%s: kernel driver nouveau, which does not work with CUDA", what);
        else
            add(rows, "hardware", NOTE,
                "If one of the plugins above is for it, its line has the reason",
                "%s: kernel driver %s, no plugin offers it as a device", what, driver);
    }
    if (!json_array_size(json_object_get(explain, "hardware")))
        add(rows, "hardware", GOOD, NULL, "the system lists no GPU on PCI");
}

/* An update of the packages replaces the libraries, but not the loaded module. */
static void check_driver(json_t *rows)
{
    struct driver_version version;
    const enum driver_state state = driver_version_nvidia("", &version);
    if (state == DRIVER_MIXED)
        add(rows, "driver", PROBLEM,
            "Restart, or install libraries and kernel module of one version",
            "NVIDIA's kernel module is version %s, its library %s %s", version.kernel,
            version.path, version.user);
    else if (state == DRIVER_WHOLE)
        add(rows, "driver", GOOD, NULL, "NVIDIA's kernel module and %s: both version %s",
            version.path, version.kernel);
}

static void check_node(json_t *rows, const char *path)
{
    struct stat about;
    char remedy[512];
    if (access(path, R_OK | W_OK) == 0) {
        add(rows, "device files", GOOD, NULL, "%s can be opened", path);
        return;
    }
    const int error = errno;
    const bool known = stat(path, &about) == 0;
    const struct group *group = known ? getgrgid(about.st_gid) : NULL;
    if (error == EACCES && group && group->gr_gid && (about.st_mode & S_IWGRP))
        snprintf(remedy, sizeof remedy,
                 "Run usermod -aG %s NAME-OF-USER as root, and log in again",
                 group->gr_name);
    else
        snprintf(remedy, sizeof remedy,
                 "Give the user access to it; in a container, pass the device on to it");
    add(rows, "device files", PROBLEM, remedy, "%s cannot be opened: %s", path,
        strerror(error));
}

static void check_nodes(json_t *rows)
{
    static const char *const patterns[] = { "/dev/nvidia[0-9]*", "/dev/nvidiactl",
                                            "/dev/nvidia-uvm",   "/dev/kfd",
                                            "/dev/dri/render*",  "/dev/dxg" };
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found))
            continue;
        for (size_t k = 0; k < found.gl_pathc; k++)
            check_node(rows, found.gl_pathv[k]);
        globfree(&found);
    }
}

/* ---- facts that need a trial ---- */

/* Folders of the cache that the library ignores, because others may write to them. */
static void check_cache_folders(json_t *rows, const char *cache)
{
    char pattern[4096], remedy[4200];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*/", cache);
    if (glob(pattern, 0, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat about;
        if (stat(found.gl_pathv[i], &about) || !(about.st_mode & (S_IWGRP | S_IWOTH)))
            continue;
        snprintf(remedy, sizeof remedy, "Run chmod go-w %s", found.gl_pathv[i]);
        add(rows, "cache", NOTE, remedy, "%s is not used: others may write to it (%03o)",
            found.gl_pathv[i], (unsigned)about.st_mode & 07777);
    }
    globfree(&found);
}

static void check_cache(json_t *rows, const json_t *explain)
{
    json_t *each;
    size_t index;
    json_array_foreach (json_object_get(explain, "settings"), index, each) {
        const char *path = text_of(each, "value");
        if (strcmp(text_of(each, "variable"), "HW_CACHE_DIR"))
            continue;
        if (*path != '/')
            add(rows, "cache", NOTE, "Set HW_CACHE_DIR",
                "there is no cache: each start tries the plugins and compiles programs anew");
        else if (access(path, W_OK) && errno != ENOENT)
            add(rows, "cache", NOTE, "Give the user access to it, or set HW_CACHE_DIR",
                "%s: %s", path, strerror(errno));
        else {
            add(rows, "cache", GOOD, NULL, "%s", path);
            check_cache_folders(rows, path);
        }
    }
}

/* Computes a small silu on the device, longer than a vector and not a multiple of one. Returns
 * NULL, or the fault. */
static const char *silu_fault(struct hw_device *device)
{
    enum { COUNT = 37 };
    float x[COUNT], y[COUNT];
    struct hw_call_stats stats = { .size = sizeof stats };
    struct hw_queue *queue;
    const char *fault = NULL;
    for (int i = 0; i < COUNT; i++) {
        x[i] = 0.25f * (float)i - 4.5f;
        y[i] = NAN;
    }
    const struct hw_silu op = { .x = hw_host_1d(x, HW_F32, COUNT),
                                .y = hw_host_1d(y, HW_F32, COUNT) };
    if (hw_queue_open(device, NULL, &queue))
        return hw_message();
    if (hw_silu(queue, &op) || hw_queue_wait(queue))
        fault = hw_message();
    else if (!hw_queue_calls(queue, HW_OP_SILU, &stats) && stats.fallbacks)
        fault = "another device had to compute it";
    for (int i = 0; i < COUNT && !fault; i++)
        if (!(fabsf(y[i] - x[i] / (1 + expf(-x[i]))) < 1e-5f))
            fault = "the result is wrong";
    hw_queue_close(queue);
    return fault;
}

/* Devices that plugins found but hide. */
static void check_left_out(json_t *rows, const json_t *explain)
{
    json_t *file, *device;
    size_t index, each;
    json_array_foreach (json_object_get(explain, "candidates"), index, file)
        json_array_foreach (json_object_get(file, "left_out"), each, device)
            add(rows, "devices", NOTE, NULL, "%s leaves out %s: %s", text_of(file, "name"),
                text_of(device, "device"), text_of(device, "why"));
}

static void check_devices(json_t *rows, const struct report *report)
{
    for (uint32_t i = 0; i < hw_device_count(report->context); i++) {
        struct hw_device *device = hw_device_at(report->context, i);
        const char *fault = silu_fault(device);
        if (fault)
            add(rows, "devices", PROBLEM,
                "Compare all ops with the reference: hw verify DEVICE",
                "%s: a small silu: %s", hw_device_name(device), fault);
        else
            add(rows, "devices", GOOD, NULL, "%s computes", hw_device_name(device));
    }
    if (report_error(report) || !hw_device_count(report->context))
        add(rows, "devices", PROBLEM, NULL, "%s",
            report_error(report) ? report_error(report) : "no device can be used");
}

/* Withdrawn ops, which other devices compute or nobody: a row for each type. */
static void check_withdrawn(json_t *rows, const json_t *explain)
{
    json_t *each;
    size_t index;
    json_array_foreach (json_object_get(explain, "demotions"), index, each) {
        const char *device = text_of(each, "device"), *op = text_of(each, "op");
        add(rows, "ops", PROBLEM, text_of(each, "remedy"),
            "%s does not compute %s (%s): %s", device, op, text_of(each, "dtypes"),
            text_of(each, "why"));
        json_t *row = json_array_get(rows, json_array_size(rows) - 1);
        json_object_set_new(row, "device", json_text(device, strlen(device)));
        json_object_set_new(row, "op", json_text(op, strlen(op)));
    }
}

json_t *checks_of(const struct report *report)
{
    json_t *rows = json_array();
    check_versions(rows, report->explain);
    check_settings(rows, report->explain);
    check_directories(rows, report->explain);
    check_plugins(rows, report->explain);
    check_hardware(rows, report->explain);
    check_driver(rows);
    check_nodes(rows);
    check_cache(rows, report->explain);
    check_devices(rows, report);
    check_withdrawn(rows, report->explain);
    check_left_out(rows, report->explain);
    return rows;
}

double checks_problems(const json_t *rows)
{
    json_t *row, *seen = json_object();
    size_t index;
    double count = 0;
    json_array_foreach ((json_t *)rows, index, row) {
        const char *device = text_of(row, "device"), *op = text_of(row, "op");
        char key[256];
        snprintf(key, sizeof key, "%s %s", device, op);
        if (strcmp(text_of(row, "state"), "problem") || (*op && json_object_get(seen, key)))
            continue;
        json_object_set_new(seen, key, json_true());
        count++;
    }
    json_decref(seen);
    return count;
}
