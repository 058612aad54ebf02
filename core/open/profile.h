/* SPDX-License-Identifier: MIT */
/* profile.h - the file in which `hw tune` keeps what it has measured of a device. */
#ifndef HW_OPEN_PROFILE_H
#define HW_OPEN_PROFILE_H

#include "measured.h"

#define PROFILE_PLACE     "profiles.d" /* below HW_CACHE_DIR */
#define PROFILE_BYTES_MAX (256u << 10)

/* Reads the bytes of a profile, which may be anything; they are changed. `profile` is zeroed, and
 * then has what was measured. False, with profile->why, unless they are a profile of this format
 * whose key is `key`. */
bool profile_parse(char *data, size_t size, const char *key, struct profile *profile);

/* What the figures of a device depend on, a line for each thing; and the path of its profile. The
 * caller frees both. NULL if there is no memory, or nowhere to keep a profile. */
char *profile_key(const struct hw_device *device);
char *profile_path(const struct hw_device *device);

#endif
