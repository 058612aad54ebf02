/* SPDX-License-Identifier: MIT */
/* verdict_write.h - writes a verdict as bytes, and adds later results to one. */
#ifndef HW_PROBE_VERDICT_WRITE_H
#define HW_PROBE_VERDICT_WRITE_H

#include "load/verdict.h"

/* Writes the verdict to memory that the caller frees. False if memory runs out or if the verdict
 * exceeds a limit. */
bool verdict_encode(const struct verdict *verdict, unsigned char **bytes, size_t *size);

/* Marks skipped forms on the device as tested if they passed by the verdict before. */
void verdict_inherit(struct verdict *verdict, const struct verdict *before,
                     uint32_t device);

/* Writes the magic, the size and the checksum into an encoded verdict of at least VERDICT_FRAME
 * bytes. For verdict_encode(), and for a fuzzer, which could not guess them. */
void verdict_seal(unsigned char *bytes, size_t size);

#endif
