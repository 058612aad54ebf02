/* SPDX-License-Identifier: MIT */
/* device.h - a device: waking it, whether it is usable, what its plugin answered. */
#ifndef HW_RUN_DEVICE_H
#define HW_RUN_DEVICE_H

#include "core.h"

/* Wakes the device if it sleeps. */
enum hw_status device_wake(struct hw_device *device);
/* Puts it to sleep: its pool goes, then the plugin's device. */
void device_sleep(struct hw_device *device);
/* HW_OK, or HW_FORKED, HW_LOST. */
enum hw_status device_usable(struct hw_device *device);
/* The same, awake, or HW_INVALID: the first line of every entry with a device that is used. */
enum hw_status device_ready(struct hw_device *device, const char *function);
/* What the plugin answered: notes that a device is lost. */
enum hw_status device_result(struct hw_device *device, int32_t status);
/* Position in the context's list. */
uint32_t device_position(const struct hw_device *device);

#endif
