/* SPDX-License-Identifier: MIT */
/* select.h - which devices the settings ask for, and in which order. */
#ifndef HW_OPEN_SELECT_H
#define HW_OPEN_SELECT_H

#include "open/candidate.h"
#include "open/selector.h"

/* The lists of the settings. */
enum list_name { LIST_BACKENDS, LIST_DISABLE, LIST_REQUIRE, LIST_WORKER, LISTS };
struct selection {
    struct selector_list list[LISTS];
};

/* Reads the lists of the settings. With `anyway`, the default replaces an invalid list; the error
 * is returned nevertheless. */
enum hw_status selection_read(struct hw_context *context, bool anyway);
void selection_free(struct hw_context *context);
/* The stage filter. */
bool filter(struct hw_context *context, struct candidate *candidate);
/* Orders the devices of all plugins, and selects devices as the settings ask. */
enum hw_status select_devices(struct catalog *found);
/* Returns HW_NO_DEVICE and says why no selected device matches. LISTS: the selector is the name
 * that hw_device_find() got. */
enum hw_status selector_failed(const struct catalog *found, const struct selector *selector,
                               enum list_name name);

#endif
