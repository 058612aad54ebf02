/* SPDX-License-Identifier: MIT */
/* graph.h - recorded work. */
#ifndef HW_CALL_GRAPH_H
#define HW_CALL_GRAPH_H

#include "core.h"

enum hw_status graph_add(struct hw_queue *queue, uint32_t op, const void *args,
                         uint32_t traits);
void graph_drop(struct hw_graph *graph);

#endif
