/* SPDX-License-Identifier: MIT */
/* select.c - the stage filter; the selection that the settings ask for, and the errors if something
 * is missing. */
#define _POSIX_C_SOURCE 200809L
#include "open/select.h"

#include "base/message.h"
#include "base/text.h"
#include "load/proxy.h"
#include "load/scan.h"
#include "open/first_use.h"
#include "open/pick.h"
#include "settings/config.h"

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
    const unsigned accepted = setting == SETTING_backends  ? ACCEPT_DEVICE | ACCEPT_MARKS
                              : setting == SETTING_require ? ACCEPT_DEVICE
                              : setting == SETTING_worker  ? ACCEPT_SECONDS
                                                           : 0;
    enum hw_status status = selectors_parse(list, setting_of(context, setting)->text,
                                            source_of(context, setting), accepted);
    if (status && anyway && status != HW_NO_MEMORY &&
        selectors_parse(list, "", "default", accepted))
        return HW_NO_MEMORY;
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

bool runs_out_of_process(const struct hw_context *context, const char *name,
                         uint32_t *seconds)
{
    const struct selector_list *list = &context->selection->worker;
    size_t i = 0;
    while (i < list->count && !glob(list->items[i].backend, name))
        i++;
    if (i < list->count)
        *seconds = list->items[i].seconds;
    return i < list->count;
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

/* ---- selectors that match nothing ---- */

static bool was_found(const struct candidate *candidate)
{
    return candidate->name[0] && candidate->reason != REASON_BAD_NAME &&
           candidate->reason != REASON_OTHER_SYSTEM && candidate->reason != REASON_SHADOWED;
}

/* The first plugin of that name that works, or else the first; NULL if there is none. */
static const struct candidate *find_candidate(const struct catalog *found,
                                              const struct selector *selector)
{
    const struct candidate *stopped = NULL;
    for (const struct candidate *c = found->candidates; c; c = c->next) {
        if (!was_found(c) || !glob(selector->backend, c->name))
            continue;
        if (!c->reason)
            return c;
        if (!stopped)
            stopped = c;
    }
    return stopped;
}

static void append(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s%s", length ? ", " : "", more);
}

/* Writes the list with a ? after `missing`. */
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
static enum hw_status unknown_selector(const struct catalog *found,
                                       const struct selector *selector,
                                       enum setting setting)
{
    char all[512] = "", optional[512];
    const char *names[MAX_SELECTORS];
    size_t count = 0;
    for (const struct candidate *c = found->candidates; c; c = c->next) {
        if (!was_found(c))
            continue;
        append(all, sizeof all, c->name);
        if (count < MAX_SELECTORS)
            names[count++] = c->name;
    }
    const char *near = nearest(selector->backend, names, count);
    write_optional(&found->context->selection->backends, selector, optional,
                   sizeof optional);
    bool offer = setting == SETTING_backends && !selector->removes;
    return fail(HW_NO_DEVICE,
                "%s: \"%s\": no plugin of that name was found%s%s%s; found: %s%s%s%s",
                source_of(found->context, setting), selector->text,
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "",
                *all ? all : "none", offer ? ". If it may be missing, write \"" : "",
                offer ? optional : "", offer ? "\"" : "");
}

static bool plugin_has_devices(const struct catalog *found,
                               const struct candidate *candidate)
{
    for (uint32_t i = 0; i < found->order_count; i++)
        if (found->order[i]->plugin == candidate->plugin)
            return true;
    for (uint32_t i = 0; i < found->unselected_count; i++)
        if (found->unselected[i].device->plugin == candidate->plugin)
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
static enum hw_status selector_failed(const struct catalog *found,
                                      const struct selector *selector, enum setting setting)
{
    const struct candidate *candidate = find_candidate(found, selector);
    if (!candidate)
        return unknown_selector(found, selector, setting);
    if (candidate->reason)
        return stopped(candidate, selector, source_of(found->context, setting));
    char all[1024] = "";
    for (uint32_t i = 0; i < found->order_count + found->unselected_count; i++) {
        const struct unselected *one = i < found->order_count
                                           ? NULL
                                           : &found->unselected[i - found->order_count];
        const struct hw_device *device = one ? one->device : found->order[i];
        /* If the selector matches the device, says why the device is not selected. */
        const bool meant = one && one->why && selector_matches(selector, device);
        char line[256];
        snprintf(line, sizeof line, "%s (%s)", device->name,
                 meant ? one->why : device->info.name);
        if (glob(selector->backend, device->plugin->candidate->name))
            append(all, sizeof all, line);
    }
    return fail(HW_NO_DEVICE, "%s: \"%s\": no such device; there are: %s",
                source_of(found->context, setting), selector->text, all);
}

static void warn_unknown(struct catalog *found, const struct selector *selector,
                         enum setting setting)
{
    if (!catalog_is_first(found)) /* hw_open() has said it */
        return;
    unknown_selector(found, selector, setting);
    log_line(&found->context->log, HW_LOG_WARN, "%s", hw_message());
    settings_warn(&found->context->settings, text_format("%s", hw_message()));
}

/* Handles a selector that matches nothing. That is an error, but only a warning if the plugin was
 * found and stopped, or if the selector removes a plugin that does not exist. */
static enum hw_status check_selector(struct catalog *found, const struct selector *selector)
{
    if (selector->optional || strcmp(selector->text, "*") == 0)
        return HW_OK;
    const struct candidate *candidate = find_candidate(found, selector);
    if (selector->removes) {
        if (!candidate)
            warn_unknown(found, selector, SETTING_backends);
        return HW_OK;
    }
    enum hw_status status = selector_failed(found, selector, SETTING_backends);
    if (!candidate || !candidate->reason || plugin_has_devices(found, candidate))
        return status;
    if (!is_broken(candidate)) /* the ladder has warned about a broken plugin */
        log_line(&found->context->log, HW_LOG_WARN, "%s", hw_message());
    return HW_OK;
}

/* Fails with the reason of the first named backend or, without one, with the reasons of all
 * files. */
static enum hw_status nothing_selected(struct catalog *found)
{
    const struct selector_list *list = &found->context->selection->backends;
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].removes && !is_glob(list->items[i].backend) &&
            find_candidate(found, &list->items[i]))
            return selector_failed(found, &list->items[i], SETTING_backends);
    char reasons[1536] = "";
    for (const struct candidate *c = found->candidates; c; c = c->next) {
        char line[512];
        snprintf(line, sizeof line, "%s: %s", c->name[0] ? c->name : c->file,
                 c->reason ? message_of(c) : "its devices are not selected");
        append(reasons, sizeof reasons, line);
    }
    if (*reasons)
        return fail(HW_NO_DEVICE, "no device can be used. %s", reasons);
    for (const struct directory *d = found->directories; d; d = d->next) {
        char line[512];
        snprintf(line, sizeof line, "%s: %s", d->path, d->state ? d->state : "");
        append(reasons, sizeof reasons, line);
    }
    return fail(
        HW_NO_DEVICE,
        "no plugin was found (%s); install one, or name its directory in HW_PLUGIN_PATH",
        *reasons ? reasons : "no directory to search");
}

/* Binds the plugin of a required device, so that it cannot fail later. */
static enum hw_status require(struct catalog *found, const struct selector *selector)
{
    enum hw_status status = HW_OK;
    bool there = false;
    for (uint32_t i = 0; i < found->order_count; i++) {
        if (!selector_matches(selector, found->order[i]))
            continue;
        there = true;
        if (!(status = plugin_bind(found->order[i]->plugin)))
            return HW_OK;
    }
    return there
               ? fail_in(status, "%s: \"%s\": ", source_of(found->context, SETTING_require),
                         selector->text)
               : selector_failed(found, selector, SETTING_require);
}

static enum hw_status check_required(struct catalog *found)
{
    const struct selector_list *list = &found->context->selection->require;
    enum hw_status status = HW_OK;
    for (size_t i = 0; i < list->count && !status; i++)
        status = require(found, &list->items[i]);
    return status;
}

static void warn_unmatched(struct catalog *found)
{
    const struct selector_list *list = &found->context->selection->disable;
    for (size_t i = 0; i < list->count; i++)
        if (!find_candidate(found, &list->items[i]))
            warn_unknown(found, &list->items[i], SETTING_disable);
    list = &found->context->selection->worker;
    for (size_t i = 0; i < list->count; i++)
        if (!find_candidate(found, &list->items[i]))
            warn_unknown(found, &list->items[i], SETTING_worker);
}

static void list_devices(const struct catalog *found, char *text, size_t size)
{
    *text = '\0';
    for (uint32_t i = 0; i < found->order_count; i++)
        append(text, size, found->order[i]->name);
    if (!*text)
        append(text, size, "none");
}

enum hw_status device_missing(const struct catalog *found, const struct selector *selector,
                              const char *name)
{
    const struct candidate *candidate = find_candidate(found, selector);
    char all[1024];
    if (candidate && candidate->reason)
        return stopped(candidate, selector, "device");
    list_devices(found, all, sizeof all);
    for (uint32_t i = 0; i < found->unselected_count; i++) {
        const struct unselected *one = &found->unselected[i];
        if (one->why && selector_matches(selector, one->device))
            return fail(HW_NO_DEVICE,
                        "device \"%s\" is not used: %s; HW_BACKENDS selects those used: %s",
                        name, one->why, all);
    }
    return fail(HW_NO_DEVICE, "device \"%s\": no such device; there are: %s", name, all);
}

/* Notes which devices the list names, rather than matches by a glob. */
static void note_named(const struct catalog *found, const struct selector_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct selector *s = &list->items[i];
        const bool names = !s->removes && (s->device || !is_glob(s->backend));
        for (uint32_t k = 0; k < found->order_count && names; k++)
            if (selector_matches(s, found->order[k]))
                atomic_fetch_or(&found->order[k]->chosen, CHOSEN_BY_NAME);
    }
}

/* HW_REQUIRE is checked only by hw_open(). */
enum hw_status select_devices(struct catalog *found)
{
    const struct selector_list *list = &found->context->selection->backends;
    enum hw_status first = HW_OK, status = pick_begin(found);
    if (status)
        return status;
    warn_unmatched(found);
    for (size_t i = 0; i < list->count; i++) {
        uint32_t matched = list->items[i].removes ? 0 : pick(found, &list->items[i]);
        if (matched == 0 && !first)
            first = check_selector(found, &list->items[i]);
    }
    pick_end(found);
    if (first)
        return first;
    if (found->order_count == 0)
        return nothing_selected(found);
    note_named(found, list);
    note_named(found, &found->context->selection->require);
    return catalog_is_first(found) ? check_required(found) : HW_OK;
}
