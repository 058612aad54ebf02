/* SPDX-License-Identifier: MIT */
/* match.c - the stage match: is there hardware that makes the plugin worthwhile? The stage is
 * skipped for a plugin that the settings name. */
#include "open/match.h"

#include "open/inventory.h"
#include "open/select.h"

#include <stdlib.h>
#include <string.h>

static bool is_named(const struct selector_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].removes && strcmp(list->items[i].backend, name) == 0)
            return true;
    return false;
}

const struct inventory *inventory_of(struct catalog *found)
{
    if (!found->inventory && (found->inventory = malloc(sizeof *found->inventory)) &&
        !inventory_read(found->inventory, "")) {
        inventory_free(found->inventory);
        free(found->inventory);
        found->inventory = NULL;
    }
    return found->inventory;
}

bool match(struct hw_context *context, struct candidate *candidate)
{
    const struct manifest *manifest = candidate->manifest;
    if (!manifest->match_count || candidate->explicit_file ||
        is_named(&context->selection->backends, candidate->name) ||
        is_named(&context->selection->require, candidate->name))
        return true;
    const struct inventory *inventory = inventory_of(candidate->found);
    if (!inventory)
        return stop(candidate, REASON_NO_MEMORY, NULL);
    for (uint32_t i = 0; i < manifest->match_count; i++)
        if (inventory_holds(inventory, "", manifest->match[i]))
            return true;
    stop(candidate, REASON_NO_HARDWARE, "the system lists no %s%shardware for it",
         manifest->vendor, *manifest->vendor ? " " : "");
    set_remedy(candidate,
               "If it exists, check that it is enabled and visible to this system; "
               "HW_BACKENDS=%s tries the plugin all the same",
               candidate->name);
    return false;
}
