/* SPDX-License-Identifier: MIT */
/* wgmma.h - what kernels ask of the matrix units and of the copy engine of compute capability 9.0.
 * Follows device.h. */
#ifndef CUDA_KERNELS_WGMMA_H
#define CUDA_KERNELS_WGMMA_H

/* A tensor in device memory, as the driver describes it to the copy engine. */
struct __attribute__((aligned(64))) tensor_map {
    u64 words[16];
};

/* The numbers of 16 registers each. */
#define R0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define R1 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define R2 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define R3 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define R4 "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define R5 "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define R6 "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111"
#define R7 "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

/* What is written to shared memory before is seen by copies and matrix units that begin after. */
FUNC void fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

FUNC void products_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

FUNC void products_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits for all but the last `LEFT` commits. */
template <int LEFT> FUNC void products_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

#endif
