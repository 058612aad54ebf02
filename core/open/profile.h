/* SPDX-License-Identifier: MIT */
/* profile.h - the file in which `hw tune` keeps the measurements of a device. It is text: a line,
 * the key, and a line for each row:
 *
 *   hw-profile 1 <checksum> <written> <key bytes> <row bytes>
 *   device ...
 *   matmul/f32/many <launch> <spread> <points> <work>:<ns> <work>:<ns> ...
 *
 * The checksum is FNV-1a (64 bits) of everything after it. `spread` is the distance between the
 * 10th and the 90th percentile, in thousandths of the 10th. The rows `up` and `down` are the
 * transfers, by bytes; the first number of `wait` is the time to wait for an idle queue. A row has
 * at most PROFILE_POINTS points. From point to point, work rises and times do not fall. Rows of
 * unknown ops and classes are skipped. */
#ifndef HW_OPEN_PROFILE_H
#define HW_OPEN_PROFILE_H

#include "measured.h"

#define PROFILE_PLACE     "profiles.d" /* below HW_CACHE_DIR */
#define PROFILE_BYTES_MAX (256u << 10)

/* Parses the bytes of a profile, which may be invalid, and changes them. Stores the measurements in
 * `profile`, which is zeroed first. Returns false, with the reason in profile->why, if the bytes
 * are not a profile of this format with this key. */
bool profile_parse(char *data, size_t size, const char *key, struct profile *profile);

/* profile_key() lists everything that the figures of a device depend on, one per line.
 * profile_path() is the path of its profile. The caller frees the result. NULL if memory runs out,
 * or if there is no place for a profile. */
char *profile_key(const struct hw_device *device);
char *profile_path(const struct hw_device *device);

#endif
