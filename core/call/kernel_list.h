/* SPDX-License-Identifier: MIT */
/* kernel_list.h - selects the entries of HW_KERNEL that a device gets. */
#ifndef HW_CALL_KERNEL_LIST_H
#define HW_CALL_KERNEL_LIST_H

#include "core.h"

/* Sets `*kept` to the list (see base/text.h) without entries for other devices: rows that another
 * device of the context has, and that this device lacks or cannot run. An entry that no device has
 * stays, so that the plugin reports it. May load the plugins of other devices. The caller frees
 * `*kept`. */
enum hw_status kernel_list_for(struct hw_device *device, const char *list, char **kept);

#endif
