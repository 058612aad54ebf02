/* SPDX-License-Identifier: MIT */
/* gates.h - the forks of fork.c at known points. */
#ifndef GATES_H
#define GATES_H

/* Forks this many times, at one point after the other. Returns the number of points. */
int fork_at_gates(long count);

#endif
