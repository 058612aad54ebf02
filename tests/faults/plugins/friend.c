/* SPDX-License-Identifier: MIT */
/* A library in the directory of a plugin. */
int of_friend(void);
int of_friend(void)
{
    return 1;
}
