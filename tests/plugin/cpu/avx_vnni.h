/* SPDX-License-Identifier: MIT */
/* avx_vnni.h - emulates the instructions of AVX-VNNI on processors that lack them: a handler of the
 * invalid-instruction signal computes each of them in C. */
#ifndef AVX_VNNI_H
#define AVX_VNNI_H

#include <stdatomic.h>
#include <stdbool.h>

/* From now on, VEX-encoded vpdpbusd, vpdpbusds, vpdpwssd and vpdpwssds work in this process, on 128
 * and 256 bits. Other invalid instructions still end the process. */
void avx_vnni_begin(void);

/* How many instructions were computed. */
extern atomic_ulong avx_vnni_count;
/* Omits the last product of each sum, to test that this mistake is found. */
extern atomic_bool avx_vnni_mistaken;

#endif
