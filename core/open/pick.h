/* SPDX-License-Identifier: MIT */
/* pick.h - which of the devices that were found are selected, in which order. */
#ifndef HW_OPEN_PICK_H
#define HW_OPEN_PICK_H

#include "open/select.h"

/* Begins with all devices that there are, and none of them selected. */
enum hw_status pick_begin(struct catalog *found);
/* Selects the devices that match. Returns how many match, selected now or before. */
uint32_t pick(struct catalog *found, const struct selector *selector);
/* Gives the devices that are selected for the first time an index each. */
void pick_end(struct catalog *found);
void pick_free(struct catalog *found);

#endif
