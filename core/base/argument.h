/* SPDX-License-Identifier: MIT */
/* argument.h - what public functions check about their arguments. */
#ifndef HW_BASE_ARGUMENT_H
#define HW_BASE_ARGUMENT_H

#include <hw/hw.h>

/* HW_INVALID: `argument` is NULL. */
enum hw_status fail_null(const char *function, const char *argument) __attribute__((cold));

/* Returns from the public function in which it stands if the argument is NULL. */
#define REQUIRE(argument)                                                                  \
    do {                                                                                   \
        if (!(argument))                                                                   \
            return fail_null(__func__, #argument);                                         \
    } while (0)

/* HW_OK if the struct, which begins with its size, has at least `least` bytes, or is NULL. */
enum hw_status check_size(const char *function, const char *argument, const void *given,
                          size_t least);
/* The same, and no field is set beyond the `known` bytes that this library knows. */
enum hw_status check_fields(const char *function, const char *argument, const void *given,
                            size_t least, size_t known);

#endif
