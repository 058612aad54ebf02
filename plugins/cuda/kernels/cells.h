/* SPDX-License-Identifier: MIT */
/* cells.h - cells of b: 256 numbers of a row, whole blocks as GGML stores them, which kernels and
 * the plans of their launches bring to shared memory at a time. Follows args.h. `type`: enum
 * storage. */
#ifndef CUDA_KERNELS_CELLS_H
#define CUDA_KERNELS_CELLS_H

#define CELL_ROW_BYTES(type)                                                               \
    ((type) == STORAGE_Q8_0                             ? 272                              \
     : (type) == STORAGE_Q4_0 || (type) == STORAGE_Q4_K ? 144                              \
     : (type) == STORAGE_Q4_1                           ? 160                              \
     : (type) == STORAGE_Q5_0 || (type) == STORAGE_Q5_K ? 176                              \
     : (type) == STORAGE_Q5_1                           ? 192                              \
                                                        : 210)

#endif
