/* SPDX-License-Identifier: MIT */
/* argument.h - checks of arguments that public functions share. */
#ifndef HW_BASE_ARGUMENT_H
#define HW_BASE_ARGUMENT_H

#include <hw/hw.h>

/* HW_INVALID: `argument` is NULL. */
enum hw_status fail_null(const char *function, const char *argument) __attribute__((cold));

/* Makes the calling public function return HW_INVALID if the argument is NULL. */
#define REQUIRE(argument)                                                                  \
    do {                                                                                   \
        if (!(argument))                                                                   \
            return fail_null(__func__, #argument);                                         \
    } while (0)

/* HW_OK if the struct, whose first field is its size, has at least `least` bytes or is NULL. */
enum hw_status check_size(const char *function, const char *argument, const void *given,
                          size_t least);
/* The answer of a function to the struct `to`, which begins with its size and may be shorter than
 * the library's: copies the first bytes of `from` and sets to->size to their number. Returns
 * HW_OK. */
enum hw_status answer_struct(void *to, const void *from, size_t size);
/* Like check_size(); also requires that all bytes beyond the `known` first ones are zero. */
enum hw_status check_fields(const char *function, const char *argument, const void *given,
                            size_t least, size_t known);

#endif
