/* SPDX-License-Identifier: MIT */
/* gates.h - what fork.c does at points that are reached for certain. */
#ifndef GATES_H
#define GATES_H

/* Forks so many times, at one point after the other. Returns how many points there are. */
int fork_at_gates(long count);

#endif
