/* SPDX-License-Identifier: MIT */
/* pick.h - selects devices and orders them. */
#ifndef HW_OPEN_PICK_H
#define HW_OPEN_PICK_H

#include "open/select.h"

/* Begins with all devices unselected. */
enum hw_status pick_begin(struct catalog *found);
/* Selects the devices that match. Returns how many match, selected now or before. */
uint32_t pick(struct catalog *found, const struct selector *selector);
/* Gives each device that is selected for the first time an index. */
void pick_end(struct catalog *found);
void pick_free(struct catalog *found);

static inline bool is_among(struct hw_device *const *list, uint32_t count,
                            const struct hw_device *device)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == device)
            return true;
    return false;
}

#endif
