/* SPDX-License-Identifier: MIT */
/* explain.c - the report about a context, as JSON. docs/explain.md has the schema. */
#include "base/fork.h"
#include "base/json.h"
#include "call/args.h"
#include "call/queue.h"
#include "load/match.h"
#include "load/proxy.h"
#include "load/scan.h"
#include "load/verdict.h"
#include "open/pick.h"
#include "open/registry.h"
#include "route/fallback.h"
#include "settings/config.h"

#include <build_stamp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_settings(struct json *json, const struct settings *settings)
{
    json_open(json, "settings", '[');
    for (int i = 0; i < SETTING_COUNT; i++) {
        json_open(json, NULL, '{');
        json_string(json, "name", setting_fields[i]);
        json_string(json, "variable", setting_variables[i]);
        json_string(json, "value", settings->value[i].text);
        json_string(json, "source", settings->value[i].source);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_open(json, "warnings", '[');
    for (const struct note *note = settings->warnings; note; note = note->next)
        json_string(json, NULL, note->text);
    json_close(json, ']');
}

static void put_directories(struct json *json, const struct catalog *found)
{
    json_open(json, "directories", '[');
    for (const struct directory *d = found->directories; d; d = d->next) {
        json_open(json, NULL, '{');
        json_string(json, "path", d->path);
        json_string(json, "source", d->source);
        json_string(json, "state", d->state);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* Whether the device is a display or an accelerator: class 03, 12 or 0b40 of PCI. */
static bool may_compute(const struct pci_device *device)
{
    const uint32_t base = device->class_code >> 16;
    return base == 0x03 || base == 0x12 || device->class_code >> 8 == 0x0b40;
}

static void put_hardware(struct json *json, const struct catalog *found)
{
    struct inventory own = { .pci = NULL };
    const struct inventory *inventory = found->inventory;
    if (!inventory) {
        inventory_read(&own, "");
        inventory = &own;
    }
    json_open(json, "hardware", '[');
    for (size_t i = 0; i < inventory->pci_count; i++) {
        const struct pci_device *device = &inventory->pci[i];
        char text[8];
        if (!may_compute(device))
            continue;
        json_open(json, NULL, '{');
        json_string(json, "pci", device->slot);
        snprintf(text, sizeof text, "%04x", device->vendor);
        json_string(json, "vendor", text);
        snprintf(text, sizeof text, "%04x", device->device);
        json_string(json, "device", text);
        snprintf(text, sizeof text, "%06x", (unsigned)device->class_code & 0xffffff);
        json_string(json, "class", text);
        json_string(json, "kernel_driver", *device->driver ? device->driver : NULL);
        json_close(json, '}');
    }
    json_close(json, ']');
    inventory_free(&own);
}

static void put_list(struct json *json, const char *key, const char *const *list,
                     uint32_t count)
{
    json_open(json, key, '[');
    for (uint32_t i = 0; i < count; i++)
        json_string(json, NULL, list[i]);
    json_close(json, ']');
}

static void put_manifest(struct json *json, const struct manifest *manifest)
{
    if (!manifest) {
        json_string(json, "manifest", NULL);
        return;
    }
    json_open(json, "manifest", '{');
    json_string(json, "name", manifest->name);
    json_string(json, "vendor", manifest->vendor);
    json_signed(json, "rank", manifest->rank);
    json_number(json, "abi_min", manifest->abi_min);
    json_number(json, "abi_max", manifest->abi_max);
    put_list(json, "match", manifest->match, manifest->match_count);
    put_list(json, "needs", manifest->needs, manifest->need_count);
    put_list(json, "driver", manifest->drivers, manifest->driver_count);
    put_list(json, "variable", manifest->variables, manifest->variable_count);
    json_string(json, "remedy", manifest->remedy);
    json_string(json, "build", manifest->build);
    json_bool(json, "built_with_library", strcmp(manifest->build, HW_BUILD_STAMP) == 0);
    json_close(json, '}');
}

/* The latest candidate for the same file. */
static const struct candidate *candidate_latest(const struct candidate *c)
{
    return c->plugin ? atomic_load(&c->plugin->latest) : c;
}

static const char *candidate_state(const struct catalog *found, const struct candidate *c)
{
    if (candidate_latest(c)->reason)
        return "stopped";
    for (uint32_t i = 0; i < found->order_count; i++)
        if (found->order[i]->plugin == c->plugin)
            return "used";
    return "available";
}

/* Writes the title for display. Without one in the manifest, or without a manifest, it is the name
 * in capitals. */
static void put_title(struct json *json, const struct candidate *c)
{
    char capitals[NAME_SIZE];
    bool given = c->manifest && *c->manifest->title;
    for (size_t i = 0; i < sizeof capitals; i++) {
        bool small = c->name[i] >= 'a' && c->name[i] <= 'z';
        capitals[i] = (char)(small ? c->name[i] - 'a' + 'A' : c->name[i]);
    }
    json_string(json, "title", given ? c->manifest->title : capitals);
}

/* The verdict knows the table of a plugin that is not bound. */
static void put_table(struct json *json, const struct plugin *plugin)
{
    const bool bound = plugin && plugin_is_bound(plugin);
    const struct verdict *verdict = plugin ? plugin->candidate->verdict : NULL;
    json_string(json, "version",
                bound    ? plugin->table.version
                : plugin ? verdict->version
                         : NULL);
    if (!plugin) {
        json_string(json, "ops", NULL);
        return;
    }
    json_open(json, "ops", '[');
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (bound ? plugin_has(plugin, op) : verdict->ops >> op & 1)
            json_string(json, NULL, hw_op_name(op));
    json_close(json, ']');
}

/* 0 means that there is none. */
static void put_time(struct json *json, const char *key, int64_t time)
{
    if (time)
        json_signed(json, key, time);
    else
        json_string(json, key, NULL);
}

/* Writes the result of the admission test; null if there was none. Later tests change it, under the
 * context's lock. */
static void put_admission(struct json *json, const struct catalog *found,
                          const struct candidate *c)
{
    struct hw_context *context = found->context;
    const struct verdict *verdict = c->plugin ? c->plugin->verdict
                                              : candidate_latest(c)->verdict;
    if (!verdict || verdict->reason) {
        json_string(json, "admission", NULL);
        return;
    }
    const bool alone = forked(context->generation);
    if (!alone)
        pthread_mutex_lock(&context->lock);
    json_open(json, "admission", '{');
    json_number(json, "tested", verdict->tested);
    json_number(json, "untested", verdict->untested);
    json_number(json, "withdrawn", verdict->withdrawn_count);
    json_number(json, "microseconds", verdict->microseconds);
    json_close(json, '}');
    if (!alone)
        pthread_mutex_unlock(&context->lock);
}

/* Writes the devices that the plugin hides: in the process that tried it, or in this one. */
static void put_left_out(struct json *json, const struct candidate *c)
{
    const struct verdict *verdict = c->verdict;
    const struct left_out *list = verdict ? verdict->left_out : c->left_out;
    const uint32_t count = verdict ? verdict->left_out_count : c->left_out_count;
    json_open(json, "left_out", '[');
    for (uint32_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        json_string(json, "device", list[i].name);
        json_string(json, "why", list[i].why);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* Writes what has become of the file of a plugin; null if it is the file that was examined. */
static void put_kept(struct json *json, const struct candidate *examined)
{
    struct candidate now = { .path = examined->path };
    candidate_look(&now);
    const char *kept = !now.look.st_ino ? "its file is gone"
                       : !same_file(&now.look, &examined->look)
                           ? "its file has changed since it was examined"
                           : NULL;
    json_string(json, "kept", examined->plugin ? kept : NULL);
}

/* Writes a candidate; for a plugin in use, the candidate from which it was made. */
static void put_candidate(struct json *json, const struct catalog *found,
                          const struct candidate *listed)
{
    const struct candidate *c = is_in_use(listed) ? listed->plugin->candidate : listed;
    const struct candidate *last = candidate_latest(c);
    json_open(json, NULL, '{');
    json_string(json, "file", c->path);
    json_string(json, "real", c->real);
    json_string(json, "name", c->name);
    put_title(json, c);
    json_string(json, "state", candidate_state(found, c));
    json_string(json, "stage", stage_name(last->stage));
    json_string(json, "reason", last->reason ? reason_rows[last->reason].code : NULL);
    json_string(json, "message", last->reason ? message_of(last) : NULL);
    json_string(json, "remedy", last->reason ? remedy_of(last) : NULL);
    put_kept(json, last);
    json_bool(json, "bound", c->plugin && plugin_is_bound(c->plugin));
    json_bool(json, "locked", c->locked);
    json_bool(json, "recalled", c->recalled);
    put_time(json, "tried", c->tried);
    put_time(json, "retry", c->retry);
    put_table(json, c->plugin);
    put_manifest(json, c->manifest);
    put_left_out(json, c);
    put_admission(json, found, c);
    proxy_explain(json, c->plugin);
    json_open(json, "microseconds", '{');
    for (int i = 0; i < STAGE_COUNT; i++)
        json_number(json, stage_name((enum stage)i),
                    c->microseconds[i] + (last != c ? last->microseconds[i] : 0));
    json_close(json, '}');
    json_close(json, '}');
}

static void put_features(struct json *json, uint64_t features)
{
    static const struct {
        uint64_t bit;
        const char *name;
    } rows[] = {
        { HW_FEATURE_UNIFIED_MEMORY, "unified-memory" },
        { HW_FEATURE_HOST_TENSORS, "host-tensors" },
        { HW_FEATURE_F16, "f16" },
        { HW_FEATURE_BF16, "bf16" },
        { HW_FEATURE_INT8_DOT, "int8-dot" },
        { HW_FEATURE_MATRIX, "matrix" },
    };
    json_open(json, "features", '[');
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (features & rows[i].bit)
            json_string(json, NULL, rows[i].name);
    json_close(json, ']');
}

/* Writes a device. `why`: why it is not selected. */
static void put_device(struct json *json, struct hw_device *device, bool selected,
                       const char *why)
{
    const struct hw_device_info *info = &device->info;
    char pci[PCI_SIZE], uuid[UUID_SIZE];
    device_pci(info, pci);
    device_uuid(info, uuid);
    json_open(json, NULL, '{');
    json_string(json, "name", device->name);
    json_string(json, "backend", device->plugin->candidate->name);
    json_signed(json, "index", device->index);
    json_string(json, "device", info->name);
    json_string(json, "vendor", info->vendor);
    json_string(json, "driver", info->driver);
    json_string(json, "arch", info->arch);
    json_string(json, "kind", device_kind_name(info->kind));
    json_number(json, "memory_total", info->memory_total);
    json_number(json, "memory_free", info->memory_free);
    json_number(json, "buffer_max", info->buffer_max);
    json_number(json, "buffer_alignment", info->buffer_alignment);
    json_number(json, "units", info->units);
    put_features(json, info->features);
    json_string(json, "pci", *pci ? pci : NULL);
    json_string(json, "uuid", *uuid ? uuid : NULL);
    json_bool(json, "selected", selected);
    json_string(json, "why", why);
    json_bool(json, "awake", device->impl != NULL);
    json_bool(json, "lost", atomic_load(&device->lost) != 0);
    json_close(json, '}');
}

static void put_devices(struct json *json, const struct catalog *found)
{
    json_open(json, "devices", '[');
    for (uint32_t i = 0; i < found->device_count; i++) {
        const bool selected = is_among(found->order, found->order_count, found->devices[i]);
        put_device(json, found->devices[i], selected,
                   selected ? NULL : "another version of its plugin is used");
    }
    for (uint32_t i = 0; i < found->unselected_count; i++)
        put_device(json, found->unselected[i].device, false, found->unselected[i].why);
    json_close(json, ']');
    json_open(json, "selection", '[');
    for (uint32_t i = 0; i < found->order_count; i++)
        json_string(json, NULL, found->order[i]->name);
    json_close(json, ']');
    json_string(json, "recommended",
                found->order_count ? hw_device_backend(found->order[0]) : NULL);
}

static void put_stages(struct json *json)
{
    json_open(json, "stages", '[');
    for (int i = 0; i < STAGE_COUNT; i++) {
        json_open(json, NULL, '{');
        json_string(json, "name", stage_name((enum stage)i));
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void explain_op(struct json *json, const struct hw_device *device, uint32_t op)
{
    struct hw_call_stats sum = { .size = sizeof sum };
    if (device->closed_counts)
        add_counts(&device->closed_counts[op], &sum);
    for (struct hw_queue *q = device->context->queues; q; q = q->next)
        if (q->device == device)
            add_counts(&q->calls[op], &sum);
    if (!sum.calls && !sum.failed)
        return;
    json_open(json, NULL, '{');
    json_string(json, "device", device->name);
    json_string(json, "op", hw_op_name(op));
#define X(name) json_number(json, #name, sum.name);
    CALL_COUNTS(X)
#undef X
    json_close(json, '}');
}

static void explain_calls(struct json *json, const struct catalog *found)
{
    struct hw_context *context = found->context;
    pthread_mutex_lock(&context->lock);
    json_open(json, "calls", '[');
    for (uint32_t i = 0; i < found->device_count; i++)
        for (uint32_t op = 0; op < HW_OP_COUNT; op++)
            explain_op(json, found->devices[i], op);
    json_close(json, ']');
    explain_fallbacks(json, context);
    pthread_mutex_unlock(&context->lock);
}

size_t hw_explain(struct hw_context *context, char *text, size_t size)
{
    struct json json = { .text = text, .size = text ? size : 0 };
    json_open(&json, NULL, '{');
    json_number(&json, "schema", 1);
    json_string(&json, "version", hw_version_string());
    json_number(&json, "abi_min", HW_ABI_OLDEST);
    json_number(&json, "abi_max", HW_ABI_VERSION);
    const struct catalog *found = context ? catalog_of(context) : NULL;
    if (found) {
        json_string(&json, "open_error",
                    context->open_error ? context->open_error : found->error);
        json_bool(&json, "elevated", context->settings.elevated);
        json_number(&json, "open_microseconds", context->open_microseconds);
        put_stages(&json);
        put_settings(&json, &context->settings);
        put_directories(&json, found);
        put_hardware(&json, found);
        json_open(&json, "candidates", '[');
        for (const struct candidate *c = found->candidates; c; c = c->next)
            put_candidate(&json, found, c);
        json_close(&json, ']');
        put_devices(&json, found);
        if (!forked(context->generation))
            explain_calls(&json, found);
    }
    json_close(&json, '}');
    return json_end(&json);
}
