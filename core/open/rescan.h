/* SPDX-License-Identifier: MIT */
/* rescan.h - makes and frees catalogs: see struct catalog. */
#ifndef HW_OPEN_RESCAN_H
#define HW_OPEN_RESCAN_H

#include "core.h"

/* Makes a catalog that has only the plugins of the older catalog. NULL if memory runs out. */
struct catalog *catalog_create(struct hw_context *context);
/* Closes all plugins and their devices, and frees all catalogs. NULL is allowed. */
void catalog_free_all(struct catalog *found);

#endif
