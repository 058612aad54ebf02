/* SPDX-License-Identifier: MIT */
/* kernel_list.h - which entries of HW_KERNEL a device is given. */
#ifndef HW_RUN_KERNEL_LIST_H
#define HW_RUN_KERNEL_LIST_H

#include "core.h"

/* Sets `*kept` to the entries of a list (see base/text.h) without those whose row another device of
 * the context has and this one has not, or cannot run. What no device has stays, so that the plugin
 * says what there is instead. May load the plugins of other devices. The caller frees it. */
enum hw_status kernel_list_for(struct hw_device *device, const char *list, char **kept);

#endif
