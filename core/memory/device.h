/* SPDX-License-Identifier: MIT */
/* device.h - devices in use: opens them, and handles the statuses of their plugins. */
#ifndef HW_MEMORY_DEVICE_H
#define HW_MEMORY_DEVICE_H

#include "core.h"

/* Binds the plugin, opens its device and makes a pool, unless that has been done. */
enum hw_status device_wake(struct hw_device *device);
/* Destroys the pool, then closes the plugin's device. */
void device_sleep(struct hw_device *device);
/* Returns HW_OK, HW_FORKED or HW_LOST. */
enum hw_status device_usable(struct hw_device *device);
/* Like device_usable(), but also wakes the device, and returns HW_INVALID for NULL. The first line
 * of every function that uses a device. */
enum hw_status device_ready(struct hw_device *device, const char *function);
/* Takes the status that a plugin returned: sets the message, and marks the device if it is
 * lost. */
enum hw_status device_result(struct hw_device *device, int32_t status);
/* Makes queues check calls again that repeat earlier addresses: a buffer is about to be freed, or
 * the device is lost. */
static inline void device_changed(struct hw_device *device)
{
    atomic_fetch_add_explicit(&device->changes, 1, memory_order_release);
}
/* The device's position in the order of preference; found->order_count if it is not selected. */
uint32_t device_position(const struct catalog *found, const struct hw_device *device);

#endif
