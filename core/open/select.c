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

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the lists ---- */

static const struct {
    enum setting setting;
    const char *option; /* the name of the source in messages, if it is an option */
    unsigned accepted;  /* selector.h */
} rows[] = {
    [LIST_BACKENDS] = { SETTING_backends, "option backends", ACCEPT_DEVICE | ACCEPT_MARKS },
    [LIST_DISABLE] = { SETTING_disable, "option disable", 0 },
    [LIST_REQUIRE] = { SETTING_require, "option require", ACCEPT_DEVICE },
    [LIST_WORKER] = { SETTING_worker, "option worker", ACCEPT_SECONDS },
};

static const struct setting_value *value_of(const struct hw_context *context,
                                            enum list_name name)
{
    return &context->settings.value[rows[name].setting];
}

static const char *source_of(const struct hw_context *context, enum list_name name)
{
    const char *source = value_of(context, name)->source;
    return strcmp(source, "option") == 0 ? rows[name].option : source;
}

enum hw_status selection_read(struct hw_context *context, bool anyway)
{
    struct selection *selection = calloc(1, sizeof *selection);
    if (!selection)
        return fail(HW_NO_MEMORY, "out of memory for the selection");
    context->selection = selection;
    enum hw_status last = HW_OK;
    for (enum list_name i = 0; i < LISTS; i++) {
        enum hw_status status = selectors_parse(&selection->list[i],
                                                value_of(context, i)->text,
                                                source_of(context, i), rows[i].accepted);
        last = status ? status : last;
        if (status && anyway)
            status = selectors_parse(&selection->list[i], "", "default", rows[i].accepted);
        if (status)
            return status;
    }
    return last;
}

void selection_free(struct hw_context *context)
{
    for (int i = 0; context->selection && i < LISTS; i++)
        selectors_free(&context->selection->list[i]);
    free(context->selection);
}

bool runs_out_of_process(const struct hw_context *context, const char *name,
                         uint32_t *seconds)
{
    const struct selector *selector = selectors_find(&context->selection->list[LIST_WORKER],
                                                     name);
    if (selector)
        *seconds = selector->seconds;
    return selector;
}

/* ---- the stage filter ---- */

bool filter(struct hw_context *context, struct candidate *candidate)
{
    const struct selector_list *backends = &context->selection->list[LIST_BACKENDS];
    const struct selector *disabled =
        selectors_find(&context->selection->list[LIST_DISABLE], candidate->name);
    const struct setting_value *value = value_of(context, LIST_BACKENDS);
    bool wanted = false;
    if (disabled)
        return stop(candidate, REASON_DISABLED, "disabled by \"%s\" in disable (%s)",
                    disabled->text, value_of(context, LIST_DISABLE)->source);
    for (size_t i = 0; i < backends->count; i++) {
        const struct selector *selector = &backends->items[i];
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

__attribute__((format(printf, 3, 4))) static void list_append(char *text, size_t size,
                                                              const char *format, ...)
{
    char item[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(item, sizeof item, format, arguments);
    va_end(arguments);
    const size_t length = strlen(text);
    snprintf(text + length, size - length, "%s%s", length ? ", " : "", item);
}

/* The beginning of a message about a selector of a list, or of hw_device_find() (LISTS). */
struct subject {
    char text[512];
};
static struct subject subject_of(const struct catalog *found,
                                 const struct selector *selector, enum list_name name)
{
    struct subject subject;
    const bool listed = name < LISTS;
    snprintf(subject.text, sizeof subject.text, "%s%s \"%s\"",
             listed ? source_of(found->context, name) : "device", listed ? ":" : "",
             selector->text);
    return subject;
}

/* Lists the plugins that were found, and shows how to make the backend optional. */
static enum hw_status unknown_selector(const struct catalog *found,
                                       const struct selector *selector, enum list_name name)
{
    char all[512] = "";
    const char *names[MAX_SELECTORS];
    size_t count = 0;
    for (const struct candidate *c = found->candidates; c; c = c->next) {
        if (!was_found(c))
            continue;
        list_append(all, sizeof all, "%s", c->name);
        if (count < MAX_SELECTORS)
            names[count++] = c->name;
    }
    const char *near = nearest(selector->backend, names, count);
    const bool offer = name == LIST_BACKENDS && !selector->removes;
    return fail(HW_NO_DEVICE, "%s: no plugin of that name was found%s%s%s; found: %s%s%s%s",
                subject_of(found, selector, name).text, near ? "; did you mean \"" : "",
                near ? near : "", near ? "\"?" : "", *all ? all : "none",
                offer ? ". If it may be missing, write \"" : "",
                offer ? selector->text : "", offer ? "?\"" : "");
}

/* An unselected device that the selector matches, and the reason; or NULL. */
static const struct unselected *unselected_match(const struct catalog *found,
                                                 const struct selector *selector)
{
    for (uint32_t i = 0; i < found->unselected_count; i++)
        if (found->unselected[i].why &&
            selector_matches(selector, found->unselected[i].device))
            return &found->unselected[i];
    return NULL;
}

/* Lists the selected devices or, for a selector, all devices of its backends. */
static void list_devices(const struct catalog *found, const struct selector *selector,
                         char *text, size_t size)
{
    const uint32_t count = found->order_count + (selector ? found->unselected_count : 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct hw_device *device =
            i < found->order_count ? found->order[i]
                                   : found->unselected[i - found->order_count].device;
        if (!selector || glob(selector->backend, device->plugin->candidate->name))
            list_append(text, size, "%s (%s)", device->name, device->info.name);
    }
}

enum hw_status selector_failed(const struct catalog *found, const struct selector *selector,
                               enum list_name name)
{
    const struct candidate *candidate = find_candidate(found, selector);
    const struct unselected *one = unselected_match(found, selector);
    const struct subject subject = subject_of(found, selector, name);
    char all[1024] = "";
    if (!candidate && name < LISTS)
        return unknown_selector(found, selector, name);
    if (candidate && candidate->reason)
        return fail(HW_NO_DEVICE, "%s cannot be used: %s. Remedy: %s", subject.text,
                    message_of(candidate), remedy_of(candidate));
    if (one)
        return fail(HW_NO_DEVICE, "%s is not used: %s", subject.text, one->why);
    list_devices(found, name < LISTS ? selector : NULL, all, sizeof all);
    return fail(HW_NO_DEVICE, "%s: no such device; there are: %s", subject.text,
                *all ? all : "none");
}

static void warn_unknown(struct catalog *found, const struct selector *selector,
                         enum list_name name)
{
    if (!catalog_is_first(found)) /* hw_open() has said it */
        return;
    unknown_selector(found, selector, name);
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
            warn_unknown(found, selector, LIST_BACKENDS);
        return HW_OK;
    }
    enum hw_status status = selector_failed(found, selector, LIST_BACKENDS);
    if (!candidate || !candidate->reason)
        return status;
    if (!is_broken(candidate)) /* the ladder has warned about a broken plugin */
        log_line(&found->context->log, HW_LOG_WARN, "%s", hw_message());
    return HW_OK;
}

/* Fails with the reason of the first named backend or, without one, with the reasons of all
 * files. */
static enum hw_status nothing_selected(struct catalog *found)
{
    const struct selector_list *list = &found->context->selection->list[LIST_BACKENDS];
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].removes && !is_glob(list->items[i].backend) &&
            find_candidate(found, &list->items[i]))
            return selector_failed(found, &list->items[i], LIST_BACKENDS);
    char reasons[1536] = "";
    for (const struct candidate *c = found->candidates; c; c = c->next)
        list_append(reasons, sizeof reasons, "%s: %s", c->name[0] ? c->name : c->file,
                    c->reason ? message_of(c) : "its devices are not selected");
    if (*reasons)
        return fail(HW_NO_DEVICE, "no device can be used. %s", reasons);
    for (const struct directory *d = found->directories; d; d = d->next)
        list_append(reasons, sizeof reasons, "%s: %s", d->path, d->state ? d->state : "");
    return fail(
        HW_NO_DEVICE,
        "no plugin was found (%s); install one, or name its directory in HW_PLUGIN_PATH",
        *reasons ? reasons : "no directory to search");
}

/* Binds the plugin of a required device, so that it cannot fail later. */
static enum hw_status require_bound(struct catalog *found, const struct selector *selector)
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
    return there ? fail_in(status, "%s: ", subject_of(found, selector, LIST_REQUIRE).text)
                 : selector_failed(found, selector, LIST_REQUIRE);
}

static enum hw_status check_required(struct catalog *found)
{
    const struct selector_list *list = &found->context->selection->list[LIST_REQUIRE];
    enum hw_status status = HW_OK;
    for (size_t i = 0; i < list->count && !status; i++)
        status = require_bound(found, &list->items[i]);
    return status;
}

static void warn_unmatched(struct catalog *found, enum list_name name)
{
    const struct selector_list *list = &found->context->selection->list[name];
    for (size_t i = 0; i < list->count; i++)
        if (!find_candidate(found, &list->items[i]))
            warn_unknown(found, &list->items[i], name);
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
    const struct selector_list *list = &found->context->selection->list[LIST_BACKENDS];
    enum hw_status first = HW_OK, status = pick_begin(found);
    if (status)
        return status;
    warn_unmatched(found, LIST_DISABLE);
    warn_unmatched(found, LIST_WORKER);
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
    note_named(found, &found->context->selection->list[LIST_REQUIRE]);
    return catalog_is_first(found) ? check_required(found) : HW_OK;
}
