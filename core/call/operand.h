/* SPDX-License-Identifier: MIT */
/* operand.h - the check of one tensor that a device is to use. */
#ifndef HW_CALL_OPERAND_H
#define HW_CALL_OPERAND_H

#include "call/layout.h"
#include "core.h"

/* A device's use of a tensor. */
struct use {
    const struct hw_device *device;
    uint32_t dtypes; /* that it may have: see memory/dtype.h */
    bool reads_packed;
    bool writes;
    bool fills; /* may write to a read-only buffer */
};

/* True if the tensor cannot be used like that; `why` gets the reason. Otherwise `where` gets its
 * bytes. */
bool use_fault(const struct use *use, const struct hw_tensor *t, struct byte_range *where,
               char why[FAULT_SIZE]);

#endif
