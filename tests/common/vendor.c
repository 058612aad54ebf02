/* SPDX-License-Identifier: MIT */
/* vendor.c - an invented vendor library. VERSION 1 lacks a function that a plugin requires, 2 has
 * all required ones, 3 also has an optional one and a new version of another. */
#include <hw/types.h>

HW_EXPORT int vendorVersion(void);
HW_EXPORT int vendorTwice(int value);
HW_EXPORT int vendorTwice_v2(int value);
HW_EXPORT int vendorThrice(int value);

int vendorVersion(void)
{
    return VERSION;
}

#if VERSION >= 2
int vendorTwice(int value)
{
    return VERSION == 2 ? 2 * value : -1;
}
#endif

#if VERSION >= 3
int vendorTwice_v2(int value)
{
    return 2 * value;
}

int vendorThrice(int value)
{
    return 3 * value;
}
#endif
