/* SPDX-License-Identifier: MIT */
/* elf_relocate.h - whether the relocations of an ELF object can be carried out. */
#ifndef HW_OBJECT_ELF_RELOCATE_H
#define HW_OBJECT_ELF_RELOCATE_H

#include "object/reader.h"

/* After all of elf_dynamic.h. */
enum object_fault check_relocations(struct reader *reader);

#endif
