/* SPDX-License-Identifier: MIT */
/* rescan.c - hw_rescan(): searches the directories again and publishes a new catalog. Other threads
 * compute at the same time, so nothing that they may use is changed or freed. Only new files and
 * files that had failed are tried; plugins in use are listed as they are, with their devices. */
#define _POSIX_C_SOURCE 200809L
#include "open/rescan.h"

#include "base/argument.h"
#include "base/fork.h"
#include "base/message.h"
#include "load/bind.h"
#include "load/match.h"
#include "load/scan.h"
#include "load/verdict.h"
#include "open/admission.h"
#include "open/context.h"
#include "open/ladder.h"
#include "open/pick.h"
#include "open/registry.h"

#include <stdlib.h>
#include <string.h>

/* ---- catalogs ---- */

struct catalog *catalog_create(struct hw_context *context)
{
    struct catalog *found = calloc(1, sizeof *found);
    if (!found)
        return NULL;
    found->context = context;
    found->previous = atomic_load(&context->found);
    found->plugins = found->previous ? found->previous->plugins : NULL;
    return found;
}

static void catalog_free(struct catalog *found)
{
    scan_free(found);
    pick_free(found);
    if (found->inventory)
        inventory_free(found->inventory);
    free(found->inventory);
    free(found->error);
    free(found->key);
    free(found);
}

/* close() may log, so free what the log needs last. */
static void close_plugins(struct plugin *first, const struct plugin *end)
{
    for (struct plugin *plugin = first; plugin != end; plugin = plugin->next)
        registry_drop(plugin);
    while (first != end) {
        struct plugin *plugin = first;
        first = plugin->next;
        plugin_close(plugin);
    }
}

void catalog_free_all(struct catalog *found)
{
    if (found)
        close_plugins(found->plugins, NULL);
    while (found) {
        struct catalog *previous = found->previous;
        catalog_free(found);
        found = previous;
    }
}

/* Frees a catalog that was not published. */
static void catalog_drop(struct catalog *found)
{
    close_plugins(found->plugins, catalog_of(found->context)->plugins);
    catalog_free(found);
}

/* ---- plugins that are in use ---- */

static bool has_path(const struct candidate *candidate, const struct plugin *plugin)
{
    return strcmp(candidate->path, plugin->candidate->path) == 0 &&
           candidate->explicit_file == plugin->candidate->explicit_file;
}

/* Lists the plugin in the place of its file, or at the end if the file is gone. A plugin whose bind
 * failed is not listed if its file exists: that file is examined again. */
static bool list_in_use(struct catalog *found, struct plugin *plugin)
{
    struct candidate **at = &found->candidates, *used;
    while (*at && !has_path(*at, plugin))
        at = &(*at)->next;
    if (*at && !plugin_is_alive(plugin))
        return true;
    if (!*at && !(*at = candidate_again(plugin->candidate)))
        return false;
    used = *at;
    used->found = found;
    used->plugin = plugin;
    used->stage = STAGE_BIND;
    used->passed = true;
    memcpy(used->name, plugin->candidate->name, sizeof used->name);
    return true;
}

/* Lists all plugins, except plugins that another version has replaced. */
static enum hw_status list_all_in_use(struct catalog *found)
{
    for (struct plugin *p = found->plugins; p; p = p->next)
        if (plugin_named(found, p->candidate->name) == p && !list_in_use(found, p))
            return fail(HW_NO_MEMORY, "out of memory for the list of plugins");
    return HW_OK;
}

/* ---- is there anything new? ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Does not compare the messages of equal verdicts: they say how long ago the plugin was tried. */
static bool same_candidate(const struct candidate *a, const struct candidate *b)
{
    return strcmp(a->path, b->path) == 0 && a->plugin == b->plugin &&
           a->reason == b->reason &&
           ((a->retry && a->retry == b->retry) || same_text(a->message, b->message));
}

static bool same_files(const struct catalog *a, const struct catalog *b)
{
    const struct candidate *c = a->candidates, *e = b->candidates;
    const struct directory *d = a->directories, *f = b->directories;
    while (c && e && same_candidate(c, e)) {
        c = c->next;
        e = e->next;
    }
    while (d && f && same_text(d->state, f->state)) {
        d = d->next;
        f = f->next;
    }
    return !c && !e && !d && !f;
}

static bool same_selection(const struct catalog *a, const struct catalog *b)
{
    return a->order_count == b->order_count &&
           !memcmp(a->order, b->order, a->order_count * sizeof *a->order);
}

/* Keep the old catalog if nothing changed: polling must not grow memory. */
static bool is_news(const struct catalog *found)
{
    const struct catalog *before = catalog_of(found->context);
    for (const struct candidate *c = found->candidates; c; c = c->next)
        if (is_revived(c))
            return true;
    return found->plugins != before->plugins || !same_files(found, before) ||
           !same_selection(found, before) || !same_text(found->error, before->error);
}

/* ---- searching ---- */

/* Errors of the selection do not fail hw_rescan(): selected devices stay selected. */
static enum hw_status selection_settle(struct catalog *found, enum hw_status status)
{
    if (!status || status == HW_NO_MEMORY)
        return status;
    if (found->context->flags & HW_OPEN_ANYWAY && !found->error)
        found->error = strdup(hw_message());
    log_line(&found->context->log, HW_LOG_INFO, "hw_rescan: %s", hw_message());
    return HW_OK;
}

/* Whether memory or descriptors ran out in this process. A shortage that hw-probe or a plugin
 * reports for itself does not count: other plugins may work nevertheless. */
static bool is_incomplete(const struct catalog *found)
{
    bool incomplete = found->shortage;
    for (const struct candidate *c = found->candidates; c && !incomplete; c = c->next)
        incomplete = c->reason == REASON_NO_MEMORY &&
                     !(c->verdict && c->verdict->reason == REASON_NO_MEMORY);
    return incomplete;
}

static enum hw_status scan_again(struct catalog *found)
{
    enum hw_status status = selection_settle(found, scan(found));
    if (!status)
        status = list_all_in_use(found);
    if (status)
        return status;
    climb_all(found);
    status = selection_settle(found, select_devices(found));
    if (!status && is_incomplete(found))
        status = fail(HW_NO_MEMORY, "hw_rescan: out of memory, or of open files");
    if (!status)
        status = admission_apply(found);
    for (const struct candidate *c = found->candidates; c && !status; c = c->next)
        if (is_revived(c))
            status = admission_renew(c->plugin, c->verdict);
    return status;
}

/* Makes plugins usable again whose bind had failed and whose new probe has succeeded. */
static void revive_plugins(const struct catalog *found)
{
    pthread_mutex_t *binding = &found->context->binding;
    for (const struct candidate *c = found->candidates; c; c = c->next) {
        if (!is_revived(c))
            continue;
        pthread_mutex_lock(binding);
        atomic_store(&c->plugin->latest, c);
        atomic_store(&c->plugin->verdict, c->verdict);
        atomic_store(&c->plugin->bound, BOUND_NOT_YET);
        pthread_mutex_unlock(binding);
    }
}

static void say_new(const struct catalog *found)
{
    for (uint32_t i = catalog_of(found->context)->device_count; i < found->device_count;
         i++)
        log_line(&found->context->log, HW_LOG_INFO, "%s: %s (new)", found->devices[i]->name,
                 found->devices[i]->info.name);
}

static enum hw_status catalog_renew(struct hw_context *context)
{
    struct catalog *found = catalog_create(context);
    if (!found)
        return fail(HW_NO_MEMORY, "hw_rescan: out of memory");
    const enum hw_status status = scan_again(found);
    const bool news = !status && is_news(found);
    if (news) {
        say_new(found);
        revive_plugins(found);
        atomic_store_explicit(&context->found, found, memory_order_release);
    } else {
        const struct saved_message saved = message_save();
        catalog_drop(found);
        message_restore(&saved);
    }
    return status;
}

enum hw_status hw_rescan(struct hw_context *context)
{
    REQUIRE(context);
    enum hw_status status = guard(context->generation);
    if (status)
        return status;
    if (context_is_opening() || log_is_telling())
        return fail(HW_INVALID,
                    "hw_rescan: called by a plugin that is being opened, or by a function "
                    "that the library calls meanwhile (log_fn, start_fn)");
    pthread_mutex_lock(&context->looking);
    const uint32_t before = context_opening(context->generation);
    status = catalog_renew(context);
    context_opening(before);
    pthread_mutex_unlock(&context->looking);
    return status;
}
