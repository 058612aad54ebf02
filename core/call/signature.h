/* SPDX-License-Identifier: MIT */
/* signature.h - checks the arguments of extension ops and user kernels against a signature. */
#ifndef HW_CALL_SIGNATURE_H
#define HW_CALL_SIGNATURE_H

#include "core.h"

#define MAX_ARGUMENTS 64

/* HW_OK if the arguments match the signature of `name`. */
enum hw_status check_arguments(struct hw_queue *queue, const char *name,
                               const char *signature, const struct hw_arg *args,
                               uint32_t count);
/* HW_OK if the plugin can take the tensor, argument `i` of `name`, as it is. */
enum hw_status check_tensor(struct hw_queue *queue, const char *name, uint32_t i,
                            const struct hw_tensor *t, bool writes);

#endif
