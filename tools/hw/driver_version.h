/* SPDX-License-Identifier: MIT */
/* driver_version.h - the two parts of a driver: a kernel module and the libraries that talk to it,
 * which have to be of one version. After an update without a restart they are not. */
#ifndef HW_TOOL_DRIVER_VERSION_H
#define HW_TOOL_DRIVER_VERSION_H

#include <limits.h>

enum driver_state {
    DRIVER_UNKNOWN, /* one of the parts is missing, or does not tell its version */
    DRIVER_WHOLE,   /* both have the same version */
    DRIVER_MIXED    /* they have different ones */
};

struct driver_version {
    char kernel[64];     /* "580.159.04" */
    char user[64];       /* of the library in user space: the same */
    char path[PATH_MAX]; /* of the library, without its links */
};

/* NVIDIA's: what the loaded kernel module says, and what the name of the library says, in the
 * directories that systems have it in. All below `root`, "" for the system itself. */
enum driver_state driver_version_nvidia(const char *root, struct driver_version *version);

#endif
