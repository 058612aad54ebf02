/* SPDX-License-Identifier: MIT */
/* profile.h - the file in which `hw tune` keeps what it has measured of a device. It is text: a
 * line, the key, and a line for each row:
 *
 *   hw-profile 1 <checksum> <written> <key bytes> <row bytes>
 *   device ...
 *   matmul/f32/many <launch> <spread> <points> <work>:<ns> <work>:<ns> ...
 *
 * The checksum is FNV-1a (64 bits) of all that follows it. `spread` is the distance of the 10th and
 * the 90th percentile in thousandths of the 10th. The rows `up` and `down` are the transfers, by
 * bytes; the first number of `wait` is the time to wait for an idle queue. A row has at most
 * PROFILE_POINTS points, whose work rises and whose times do not fall. Rows of unknown ops and
 * classes are skipped. */
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
