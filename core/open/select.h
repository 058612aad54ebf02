/* SPDX-License-Identifier: MIT */
/* select.h - which devices the settings ask for, and in which order. */
#ifndef HW_OPEN_SELECT_H
#define HW_OPEN_SELECT_H

#include "open/candidate.h"
#include "open/selector.h"

/* The lists of the settings. */
struct selection {
    struct selector_list backends, disable, require;
};

/* Reads the lists, which filter() and select_devices() go by. With `anyway` a list in error
 * gives way to its default; the error is answered all the same. */
enum hw_status selection_read(struct hw_context *context, bool anyway);
void selection_free(struct hw_context *context);
/* The stage filter. */
bool filter(struct hw_context *context, struct candidate *candidate);
/* Orders the devices that were found, and moves those that the settings ask for from the
 * list of the unselected to the context's. */
enum hw_status select_devices(struct hw_context *context);

#endif
