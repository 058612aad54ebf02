/* SPDX-License-Identifier: MIT */
/* avx_vnni.h - executes the instructions of AVX-VNNI on processors that lack them: each of them is
 * an invalid instruction there, whose signal is handled by computing it in C. */
#ifndef AVX_VNNI_H
#define AVX_VNNI_H

#include <stdatomic.h>
#include <stdbool.h>

/* From now on, vpdpbusd, vpdpbusds, vpdpwssd and vpdpwssds as VEX encodes them work in this
 * process, on 128 and 256 bits. Anything else that is invalid ends it, as before. */
void avx_vnni_begin(void);

/* How many instructions were computed. */
extern atomic_ulong avx_vnni_count;
/* Makes a mistake: the last product of each sum is left out. */
extern atomic_bool avx_vnni_mistaken;

#endif
