/* SPDX-License-Identifier: MIT */
/* A library that lies beside a plugin. */
int of_friend(void);
int of_friend(void)
{
    return 1;
}
