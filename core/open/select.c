/* SPDX-License-Identifier: MIT */
/* select.c - stage 1, filter; and which of the devices that were found are selected, in
 * which order. */
#define _POSIX_C_SOURCE 200809L
#include "open/select.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/message.h"
#include "base/text.h"
#include "open/apart.h"
#include "open/config.h"
#include "open/registry.h"
#include "open/scan.h"
#include "open/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the lists ---- */

static const struct setting_value *setting_of(const struct hw_context *context,
                                              enum setting s)
{
    return &context->settings.value[s];
}

/* The name of the setting's source for messages. */
static const char *source_of(const struct hw_context *context, enum setting s)
{
    const char *source = setting_of(context, s)->source;
    if (strcmp(source, "option") != 0)
        return source;
    return s == SETTING_backends  ? "option backends"
           : s == SETTING_disable ? "option disable"
           : s == SETTING_worker  ? "option worker"
                                  : "option require";
}

/* HW_DISABLE, HW_WORKER and HW_REQUIRE accept only a part of the grammar. */
static enum hw_status check_plain(const struct selector_list *list, const char *source,
                                  bool devices)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct selector *selector = &list->items[i];
        if (selector->removes || selector->optional)
            return fail(HW_INVALID, "%s: \"%s\": ! and ? are allowed in HW_BACKENDS only",
                        source, selector->text);
        if (selector->device && !devices)
            return fail(HW_INVALID,
                        "%s: \"%s\": must be a backend; to exclude a device, write "
                        "!%s in HW_BACKENDS",
                        source, selector->text, selector->text);
    }
    return HW_OK;
}

/* A list with only removals selects everything else. */
static enum hw_status imply_rest(struct selector_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].removes)
            return HW_OK;
    if (list->count == MAX_SELECTORS)
        return fail(HW_INVALID, "HW_BACKENDS: more than %d entries", MAX_SELECTORS);
    struct selector *selector = &list->items[list->count++];
    selector->text = strdup("*");
    selector->backend = strdup("*");
    return selector->text && selector->backend ? HW_OK
                                               : fail(HW_NO_MEMORY, "out of memory");
}

static enum hw_status read_list(struct hw_context *context, struct selector_list *list,
                                enum setting setting, bool anyway)
{
    const char *source = source_of(context, setting);
    enum hw_status status = selectors_parse(list, setting_of(context, setting)->text,
                                            source);
    if (!status && setting != SETTING_backends)
        status = check_plain(list, source, setting == SETTING_require);
    if (status && anyway && status != HW_NO_MEMORY) {
        selectors_free(list);
        if (selectors_parse(list, "", "default"))
            return HW_NO_MEMORY;
    }
    if (list->items && setting == SETTING_backends && imply_rest(list))
        return HW_NO_MEMORY;
    return status;
}

enum hw_status selection_read(struct hw_context *context, bool anyway)
{
    struct selection *selection = calloc(1, sizeof *selection);
    if (!selection)
        return fail(HW_NO_MEMORY, "out of memory for the selection");
    context->selection = selection;
    enum hw_status last = read_list(context, &selection->backends, SETTING_backends,
                                    anyway);
    if (last && !anyway)
        return last;
    enum hw_status status = read_list(context, &selection->disable, SETTING_disable,
                                      anyway);
    last = status ? status : last;
    if (last && !anyway)
        return last;
    status = read_list(context, &selection->require, SETTING_require, anyway);
    last = status ? status : last;
    if (last && !anyway)
        return last;
    status = read_list(context, &selection->worker, SETTING_worker, anyway);
    return status ? status : last;
}

void selection_free(struct hw_context *context)
{
    if (!context->selection)
        return;
    selectors_free(&context->selection->backends);
    selectors_free(&context->selection->disable);
    selectors_free(&context->selection->require);
    selectors_free(&context->selection->worker);
    free(context->selection);
}

bool is_apart(const struct hw_context *context, const char *name)
{
    const struct selector_list *list = &context->selection->worker;
    for (size_t i = 0; i < list->count; i++)
        if (glob(list->items[i].backend, name))
            return true;
    return false;
}

/* ---- the stage filter ---- */

bool filter(struct hw_context *context, struct candidate *candidate)
{
    const struct selection *selection = context->selection;
    const struct setting_value *value = setting_of(context, SETTING_disable);
    for (size_t i = 0; i < selection->disable.count; i++)
        if (glob(selection->disable.items[i].backend, candidate->name))
            return stop(candidate, REASON_DISABLED, "disabled by \"%s\" in disable (%s)",
                        selection->disable.items[i].text, value->source);
    value = setting_of(context, SETTING_backends);
    bool wanted = false;
    for (size_t i = 0; i < selection->backends.count; i++) {
        const struct selector *selector = &selection->backends.items[i];
        if (!glob(selector->backend, candidate->name))
            continue;
        if (selector->removes && !selector->device)
            return stop(candidate, REASON_DISABLED, "disabled by \"!%s\" in backends (%s)",
                        selector->text, value->source);
        wanted = wanted || !selector->removes;
    }
    return wanted || stop(candidate, REASON_NOT_SELECTED,
                          "backends (%s) selects only \"%s\"", value->source, value->text);
}

/* ---- order ---- */

/* Software that imitates a GPU comes last, after the CPU. The others are ordered by the
 * rank in the manifest, the kind of device, the name, and the plugin's own order. */
static int compare_devices(const void *a, const void *b)
{
    static const int kinds[] = { [HW_DEVICE_DISCRETE] = 0,
                                 [HW_DEVICE_INTEGRATED] = 1,
                                 [HW_DEVICE_OTHER] = 2,
                                 [HW_DEVICE_CPU] = 3,
                                 [HW_DEVICE_SOFTWARE] = 4 };
    const struct hw_device *x = *(struct hw_device *const *)a;
    const struct hw_device *y = *(struct hw_device *const *)b;
    int software = (x->info.kind == HW_DEVICE_SOFTWARE) -
                   (y->info.kind == HW_DEVICE_SOFTWARE);
    if (software)
        return software;
    if (x->plugin->rank != y->plugin->rank)
        return x->plugin->rank < y->plugin->rank ? -1 : 1;
    if (kinds[x->info.kind] != kinds[y->info.kind])
        return kinds[x->info.kind] - kinds[y->info.kind];
    int names = strcmp(x->plugin->candidate->name, y->plugin->candidate->name);
    return names ? names : x->index - y->index;
}

/* ---- picking ---- */

static void set_why(struct hw_device *device, char *why)
{
    free(device->why);
    device->why = why;
}

static const struct selector *removed_by(const struct selection *selection,
                                         const struct hw_device *device)
{
    for (size_t i = 0; i < selection->backends.count; i++)
        if (selection->backends.items[i].removes &&
            selector_matches(&selection->backends.items[i], device))
            return &selection->backends.items[i];
    return NULL;
}

/* A selected device of another plugin that is the same hardware; or NULL. */
static const struct hw_device *same_hardware(const struct hw_context *context,
                                             const struct hw_device *device)
{
    char pci[PCI_SIZE], other_pci[PCI_SIZE];
    device_pci(&device->info, pci);
    for (uint32_t i = 0; i < context->device_count; i++) {
        const struct hw_device *other = context->devices[i];
        device_pci(&other->info, other_pci);
        bool same = (*pci && strcmp(pci, other_pci) == 0) ||
                    (device->info.has_uuid && other->info.has_uuid &&
                     memcmp(device->info.uuid, other->info.uuid, 16) == 0);
        if (same && other->plugin != device->plugin)
            return other;
    }
    return NULL;
}

/* Why the device could not be opened when it was tried; or NULL. */
static const char *fault_of(const struct hw_device *device)
{
    const struct verdict *verdict = device->plugin->candidate->verdict;
    return verdict && (uint32_t)device->index < verdict->device_count
               ? verdict->devices[device->index].fault
               : NULL;
}

/* Selects the devices that match. Returns how many match, selected now or before. */
static uint32_t pick(struct hw_context *context, const struct selector *selector)
{
    uint32_t matched = 0, kept = 0;
    for (uint32_t i = 0; i < context->device_count; i++)
        matched += selector_matches(selector, context->devices[i]);
    for (uint32_t i = 0; i < context->unselected_count; i++) {
        struct hw_device *device = context->unselected[i];
        const struct selector *removal = removed_by(context->selection, device);
        /* A backend that is named, rather than matched by a glob, shows all its devices. */
        const struct hw_device *shadow = is_glob(selector->backend)
                                             ? same_hardware(context, device)
                                             : NULL;
        const char *fault = fault_of(device);
        bool wanted = selector_matches(selector, device);
        matched += wanted && !removal && !fault;
        if (wanted && !removal && !shadow && !fault) {
            set_why(device, NULL);
            context->devices[context->device_count++] = device;
            continue;
        }
        if (wanted && removal)
            set_why(device, text_format("excluded by \"!%s\" in backends", removal->text));
        else if (wanted && fault)
            set_why(device, text_format("it cannot be opened: %s", fault));
        else if (wanted)
            set_why(device, text_format("shadowed: the same hardware as %s", shadow->name));
        context->unselected[kept++] = device;
    }
    context->unselected_count = kept;
    return matched;
}

/* ---- selectors that match nothing ---- */

static bool was_found(const struct candidate *candidate)
{
    return candidate->name[0] && candidate->reason != REASON_BAD_NAME &&
           candidate->reason != REASON_OTHER_SYSTEM &&
           candidate->reason != REASON_SHADOWED && candidate->reason != REASON_DUPLICATE;
}

/* The first plugin of that name that works, or else the first; NULL if there is none. */
static const struct candidate *find_candidate(const struct hw_context *context,
                                              const struct selector *selector)
{
    const struct candidate *found = NULL;
    for (const struct candidate *c = context->candidates; c; c = c->next) {
        if (!was_found(c) || !glob(selector->backend, c->name))
            continue;
        if (!c->reason)
            return c;
        if (!found)
            found = c;
    }
    return found;
}

static void append(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s%s", length ? ", " : "", more);
}

/* The list with a ? after `missing`. */
static void write_optional(const struct selector_list *list, const struct selector *missing,
                           char *text, size_t size)
{
    *text = '\0';
    for (size_t i = 0; i < list->count; i++) {
        const struct selector *s = &list->items[i];
        char item[256];
        snprintf(item, sizeof item, "%s%s%s", s->removes ? "!" : "", s->text,
                 s->optional || s == missing ? "?" : "");
        size_t length = strlen(text);
        snprintf(text + length, size - length, "%s%s", i ? "," : "", item);
    }
}

/* Lists the plugins that were found, and shows how to make the backend optional. */
static enum hw_status unknown_selector(const struct hw_context *context,
                                       const struct selector *selector,
                                       enum setting setting)
{
    char found[512] = "", optional[512];
    const char *names[MAX_SELECTORS];
    size_t count = 0;
    for (const struct candidate *c = context->candidates; c; c = c->next) {
        if (!was_found(c))
            continue;
        append(found, sizeof found, c->name);
        if (count < MAX_SELECTORS)
            names[count++] = c->name;
    }
    const char *near = nearest(selector->backend, names, count);
    write_optional(&context->selection->backends, selector, optional, sizeof optional);
    bool offer = setting == SETTING_backends && !selector->removes;
    return fail(HW_NO_DEVICE,
                "%s: \"%s\": no plugin of that name was found%s%s%s; found: %s%s%s%s",
                source_of(context, setting), selector->text,
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "",
                *found ? found : "none", offer ? ". If it may be missing, write \"" : "",
                offer ? optional : "", offer ? "\"" : "");
}

static void list_devices(const struct hw_context *context, char *text, size_t size)
{
    *text = '\0';
    for (uint32_t i = 0; i < context->device_count; i++)
        append(text, size, context->devices[i]->name);
    if (!*text)
        append(text, size, "none");
}

static bool plugin_has_devices(const struct hw_context *context,
                               const struct candidate *candidate)
{
    for (uint32_t i = 0; i < context->device_count; i++)
        if (context->devices[i]->plugin->candidate == candidate)
            return true;
    for (uint32_t i = 0; i < context->unselected_count; i++)
        if (context->unselected[i]->plugin->candidate == candidate)
            return true;
    return false;
}

static enum hw_status stopped(const struct candidate *candidate,
                              const struct selector *selector, const char *source)
{
    return fail(HW_NO_DEVICE, "%s: \"%s\" cannot be used: %s. Remedy: %s", source,
                selector->text, message_of(candidate), remedy_of(candidate));
}

/* Returns HW_NO_DEVICE with the reason. */
static enum hw_status selector_failed(const struct hw_context *context,
                                      const struct selector *selector, enum setting setting)
{
    const struct candidate *candidate = find_candidate(context, selector);
    if (!candidate)
        return unknown_selector(context, selector, setting);
    if (candidate->reason)
        return stopped(candidate, selector, source_of(context, setting));
    char found[1024] = "";
    for (uint32_t i = 0; i < context->device_count + context->unselected_count; i++) {
        const struct hw_device *device =
            i < context->device_count ? context->devices[i]
                                      : context->unselected[i - context->device_count];
        /* Says why the device is not selected if it is the one that was meant. */
        bool meant = device->why && selector_matches(selector, device);
        char line[256];
        snprintf(line, sizeof line, "%s (%s)", device->name,
                 meant ? device->why : device->info.name);
        if (glob(selector->backend, device->plugin->candidate->name))
            append(found, sizeof found, line);
    }
    return fail(HW_NO_DEVICE, "%s: \"%s\": no such device; there are: %s",
                source_of(context, setting), selector->text, found);
}

static void warn_unknown(struct hw_context *context, const struct selector *selector,
                         enum setting setting)
{
    unknown_selector(context, selector, setting);
    log_line(&context->log, HW_LOG_WARN, "%s", hw_message());
    settings_warn(&context->settings, text_format("%s", hw_message()));
}

/* Nothing matches the selector. That is an error, except that a plugin that was found and
 * stopped is a warning, and so is the removal of one that is not there. */
static enum hw_status check_selector(struct hw_context *context,
                                     const struct selector *selector)
{
    if (selector->optional || strcmp(selector->text, "*") == 0)
        return HW_OK;
    const struct candidate *candidate = find_candidate(context, selector);
    if (selector->removes) {
        if (!candidate)
            warn_unknown(context, selector, SETTING_backends);
        return HW_OK;
    }
    enum hw_status status = selector_failed(context, selector, SETTING_backends);
    if (!candidate || !candidate->reason || plugin_has_devices(context, candidate))
        return status;
    if (!is_broken(candidate)) /* for a broken one, the ladder has logged a warning */
        log_line(&context->log, HW_LOG_WARN, "%s", hw_message());
    return HW_OK;
}

/* Fails with what is wrong with the first backend that is named, or else with every
 * file. */
static enum hw_status nothing_selected(struct hw_context *context)
{
    const struct selector_list *list = &context->selection->backends;
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].removes && !is_glob(list->items[i].backend) &&
            find_candidate(context, &list->items[i]))
            return selector_failed(context, &list->items[i], SETTING_backends);
    char reasons[1536] = "";
    for (const struct candidate *c = context->candidates; c; c = c->next) {
        char line[512];
        snprintf(line, sizeof line, "%s: %s", c->name[0] ? c->name : c->file,
                 c->reason ? message_of(c) : "its devices are not selected");
        append(reasons, sizeof reasons, line);
    }
    if (*reasons)
        return fail(HW_NO_DEVICE, "no device can be used. %s", reasons);
    for (const struct directory *d = context->directories; d; d = d->next) {
        char line[512];
        snprintf(line, sizeof line, "%s: %s", d->path, d->state ? d->state : "");
        append(reasons, sizeof reasons, line);
    }
    return fail(
        HW_NO_DEVICE,
        "no plugin was found (%s); install one, or name its directory in HW_PLUGIN_PATH",
        *reasons ? reasons : "no directory to search");
}

/* A required device is one that is used: its plugin must not fail later. */
static enum hw_status require(struct hw_context *context, const struct selector *selector)
{
    enum hw_status status = HW_OK;
    bool there = false;
    for (uint32_t i = 0; i < context->device_count; i++) {
        if (!selector_matches(selector, context->devices[i]))
            continue;
        there = true;
        if (!(status = plugin_bind(context->devices[i]->plugin)))
            return HW_OK;
    }
    return there ? fail_in(status, "%s: \"%s\": ", source_of(context, SETTING_require),
                           selector->text)
                 : selector_failed(context, selector, SETTING_require);
}

static enum hw_status check_required(struct hw_context *context)
{
    const struct selector_list *list = &context->selection->require;
    enum hw_status status = HW_OK;
    for (size_t i = 0; i < list->count && !status; i++)
        status = require(context, &list->items[i]);
    return status;
}

static void warn_unmatched(struct hw_context *context)
{
    const struct selector_list *list = &context->selection->disable;
    for (size_t i = 0; i < list->count; i++)
        if (!find_candidate(context, &list->items[i]))
            warn_unknown(context, &list->items[i], SETTING_disable);
    list = &context->selection->worker;
    for (size_t i = 0; i < list->count; i++)
        if (!find_candidate(context, &list->items[i]))
            warn_unknown(context, &list->items[i], SETTING_worker);
}

/* Notes which devices the list names, rather than matches by a glob. */
static void note_named(struct hw_context *context, const struct selector_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct selector *s = &list->items[i];
        const bool names = !s->removes && (s->device || !is_glob(s->backend));
        for (uint32_t k = 0; k < context->device_count && names; k++)
            if (selector_matches(s, context->devices[k]))
                atomic_fetch_or(&context->devices[k]->chosen, CHOSEN_BY_NAME);
    }
}

enum hw_status select_devices(struct hw_context *context)
{
    const struct selector_list *list = &context->selection->backends;
    const struct setting_value *value = setting_of(context, SETTING_backends);
    uint32_t total = context->unselected_count;
    context->devices = calloc(total ? total : 1, sizeof *context->devices);
    if (!context->devices)
        return fail(HW_NO_MEMORY, "out of memory for the list of devices");
    if (total)
        qsort(context->unselected, total, sizeof *context->unselected, compare_devices);

    enum hw_status first = HW_OK;
    warn_unmatched(context);
    for (uint32_t i = 0; i < total; i++)
        set_why(context->unselected[i],
                text_format("not selected by backends (%s)", value->source));
    for (size_t i = 0; i < list->count; i++) {
        uint32_t matched = list->items[i].removes ? 0 : pick(context, &list->items[i]);
        if (matched == 0 && !first)
            first = check_selector(context, &list->items[i]);
    }
    if (first)
        return first;
    if (context->device_count == 0)
        return nothing_selected(context);
    note_named(context, list);
    note_named(context, &context->selection->require);
    return check_required(context);
}

/* ---- by name, by handle ---- */

enum hw_status hw_device_find(struct hw_context *context, const char *name,
                              struct hw_device **device)
{
    if (device)
        *device = NULL;
    REQUIRE(context);
    REQUIRE(name);
    REQUIRE(device);
    enum hw_status status = guard(context->generation);
    struct selector_list list = { 0 };
    if (status || (status = selectors_parse(&list, name, "device")))
        return status;
    if (list.count != 1 || list.items[0].removes || list.items[0].optional) {
        selectors_free(&list);
        return fail(HW_INVALID, "device \"%s\": must be one name, such as cpu or cpu:0",
                    name);
    }
    for (uint32_t i = 0; i < context->device_count && !*device; i++)
        if (selector_matches(&list.items[0], context->devices[i]))
            *device = context->devices[i];
    if (*device)
        atomic_fetch_or(&(*device)->chosen, CHOSEN_BY_NAME);
    const struct candidate *candidate = find_candidate(context, &list.items[0]);
    if (!*device && candidate && candidate->reason) {
        status = stopped(candidate, &list.items[0], "device");
    } else if (!*device) {
        char found[1024];
        list_devices(context, found, sizeof found);
        status = fail(HW_NO_DEVICE, "device \"%s\": no such device; there are: %s", name,
                      found);
    }
    selectors_free(&list);
    return status;
}

/* The device `index` of a plugin, if it is one of the context's. */
static enum hw_status import_device(struct hw_context *context, const struct plugin *plugin,
                                    int32_t index, struct hw_device **device)
{
    for (uint32_t i = 0; i < context->device_count && !*device; i++)
        if (context->devices[i]->plugin == plugin && context->devices[i]->index == index)
            *device = context->devices[i];
    if (*device)
        atomic_fetch_or(&(*device)->chosen, CHOSEN_BY_NAME);
    return *device ? HW_OK
                   : fail(HW_NO_DEVICE,
                          "hw_device_import: device %d of plugin %s is not selected",
                          (int)index, plugin->table.name);
}

/* "mine.device" is a kind of the plugin mine, and of its variants, such as mine_two. */
static bool names_plugin(const char *kind, const struct plugin *plugin)
{
    const size_t length = strcspn(kind, ".");
    const char *name = plugin->candidate->name;
    return length && strncmp(kind, name, length) == 0 &&
           (!name[length] || name[length] == '_');
}

enum hw_status hw_device_import(struct hw_context *context, const char *kind, void *handle,
                                struct hw_device **device)
{
    REQUIRE(device);
    *device = NULL;
    REQUIRE(context);
    REQUIRE(kind);
    enum hw_status status = guard(context->generation);
    if (status)
        return status;
    status = HW_UNSUPPORTED;
    for (struct plugin *plugin = context->plugins; plugin; plugin = plugin->next) {
        int32_t index = -1;
        if (!plugin_is_bound(plugin) && !names_plugin(kind, plugin))
            continue;
        const enum hw_status bound = plugin_bind(plugin);
        if (bound) {
            status = bound;
            continue;
        }
        plugin_message_clear();
        const int32_t answer = plugin->table.device_import(plugin->self, kind, handle,
                                                           &index);
        if (answer == HW_UNSUPPORTED)
            continue;
        status = answer ? fail_in(plugin_failed(answer), "hw_device_import: ")
                        : import_device(context, plugin, index, device);
        if (status != HW_NO_DEVICE) /* another module of the vendor may show it */
            return status;
    }
    return status != HW_UNSUPPORTED
               ? status
               : fail(HW_UNSUPPORTED,
                      "hw_device_import: no plugin knows devices of the kind \"%s\"", kind);
}
