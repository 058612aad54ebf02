/* SPDX-License-Identifier: MIT */
/* elf_relocate.h - the relocations of an ELF object. */
#ifndef HW_OBJECT_ELF_RELOCATE_H
#define HW_OBJECT_ELF_RELOCATE_H

#include "object/reader.h"

/* To be called after all functions of elf_dynamic.h. */
enum object_fault check_relocations(struct reader *reader);

#endif
