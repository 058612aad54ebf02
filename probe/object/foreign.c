/* SPDX-License-Identifier: MIT */
/* foreign.c - objects of Windows and macOS, which only the command reads. */
#include "probe/object/reader.h"

enum object_fault foreign_read(struct reader *reader, const uint8_t *start)
{
    const bool universal = start[0] == 0xca && start[1] == 0xfe;
    return reader->object->format == OBJECT_PE ? pe_read(reader)
           : universal                         ? universal_read(reader)
                                               : macho_read(reader);
}
