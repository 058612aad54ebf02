/* SPDX-License-Identifier: MIT */
/* rescan.h - what one look at the directories found, and the next look: see struct catalog. */
#ifndef HW_OPEN_RESCAN_H
#define HW_OPEN_RESCAN_H

#include "core.h"

/* Nothing is found yet but what was found before; NULL if memory runs out. */
struct catalog *catalog_create(struct hw_context *context);
/* Closes all plugins and their devices. NULL: nothing. */
void catalog_free_all(struct catalog *found);

#endif
