/* SPDX-License-Identifier: MIT */
/* faults.h - counts the calls of a stand-in's functions, and makes chosen ones fail.
 *
 * The environment chooses at start, STANDIN_FAIL="memory_alloc:3:2,init:1:100": the third call of
 * memory_alloc returns 2, and so on; "memory_alloc:0:2": every call. A test that is linked with the
 * stand-in calls the functions below instead. Any thread may call any function. */
#ifndef STANDIN_FAULTS_H
#define STANDIN_FAULTS_H

#include <stdbool.h>

/* The functions' names in the plugin's .def; NULL ends the list. Written by calls.py. */
extern const char *const faults_names[];

/* Counts a call. Returns the result that it fails with, or 0. */
int faults_enter(int call);

/* Sets all counts to 0; nothing fails. */
void faults_reset(void);
/* Makes the nth call after the last reset fail with `result`; 0: every call. */
void faults_arm(const char *name, unsigned nth, int result);
/* Calls since the last reset. */
unsigned faults_count(const char *name);
/* Whether a chosen call has failed since the last reset. */
bool faults_happened(void);

#endif
