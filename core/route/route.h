/* SPDX-License-Identifier: MIT */
/* route.h - the cold path of a call: operands that the plugin cannot take as they are. */
#ifndef HW_ROUTE_ROUTE_H
#define HW_ROUTE_ROUTE_H

#include "core.h"

/* Submits an op with `traits` that need the cold path on this queue. */
enum hw_status route(struct hw_queue *queue, uint32_t op, const void *args,
                     uint32_t traits);

#endif
