/* SPDX-License-Identifier: MIT */
/* no_foreign.c - hw-probe does not read objects of other systems: the library refuses them. */
#include "probe/object/reader.h"

enum object_fault foreign_read(struct reader *reader, const uint8_t *start)
{
    (void)start;
    return because(reader, OBJECT_WRONG_FORMAT, "built for %s",
                   format_system(reader->object->format));
}
