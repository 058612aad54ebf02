/* SPDX-License-Identifier: MIT */
/* objects.h - the objects that a stand-in has made and that were not freed yet. */
#ifndef STANDIN_OBJECTS_H
#define STANDIN_OBJECTS_H

#include <stdbool.h>

void objects_add(const void *object);
/* False: there is no such object. */
bool objects_remove(const void *object);
int objects_count(void);

#endif
