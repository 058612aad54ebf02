/* SPDX-License-Identifier: MIT */
/* driver_version.h - the versions of a driver's kernel module and of its libraries, which must be
 * the same. After an update without a restart they differ. */
#ifndef HW_TOOL_DRIVER_VERSION_H
#define HW_TOOL_DRIVER_VERSION_H

#include <limits.h>

enum driver_state {
    DRIVER_UNKNOWN, /* one of the parts is missing, or its version is unknown */
    DRIVER_WHOLE,   /* both have the same version */
    DRIVER_MIXED    /* they have different ones */
};

struct driver_version {
    char kernel[64];     /* "580.159.04" */
    char user[64];       /* of the library in user space: the same */
    char path[PATH_MAX]; /* of the library, without its links */
};

/* NVIDIA's driver: compares the version of the loaded module with the one in the library's file
 * name, in the usual directories. All paths are below `root`; "" is the system itself. */
enum driver_state driver_version_nvidia(const char *root, struct driver_version *version);

#endif
