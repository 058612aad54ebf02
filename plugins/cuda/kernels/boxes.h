/* SPDX-License-Identifier: MIT */
/* boxes.h - boxes of matrices in device memory, on their way to shared memory and as operands of
 * the matrix units of compute capability 9.0. Follows wgmma.h. */
#ifndef CUDA_KERNELS_BOXES_H
#define CUDA_KERNELS_BOXES_H

FUNC void map_prefetch(const struct tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Begins to copy a box of a matrix to shared memory; its bytes count for `barrier`. */
FUNC void box_load(u32 to, const struct tensor_map *map, int col, int row, u32 barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(map), "r"(col), "r"(row), "r"(barrier)
        : "memory");
}

/* Rows of 128 bytes in shared memory, swizzled by 128 bytes: eight of them are 1024 bytes. */
FUNC u64 box_descriptor(u32 at)
{
    return (u64)(at >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#endif
