/* SPDX-License-Identifier: MIT */
/* elf_dynamic.h - the dynamic section of an ELF object, its symbols, versions and notes. */
#ifndef HW_OBJECT_ELF_DYNAMIC_H
#define HW_OBJECT_ELF_DYNAMIC_H

#include "object/reader.h"

/* To be called in this order, after the segments have been read. */
enum object_fault read_dynamic(struct reader *reader);
enum object_fault check_tables(struct reader *reader);
enum object_fault read_strings(struct reader *reader);
enum object_fault read_symbols(struct reader *reader);
enum object_fault find_entry(struct reader *reader);
enum object_fault check_symbols(struct reader *reader);
enum object_fault read_notes(struct reader *reader);
enum object_fault read_versions(struct reader *reader);

#endif
