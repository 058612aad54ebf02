/* SPDX-License-Identifier: MIT */
/* pack.h - packed weights: the rows of a matrix interleaved, so that one load has the operands for
 * many rows.
 *
 * Sixteen rows of [N,K] are a panel; the last panel of a matrix is filled up with rows of zeros.
 *
 * A panel of f32 or f16 is [K][16]. A panel of bf16 is [K/2][16][2]: a word of 4 bytes has two
 * neighbours along K, as the bf16 instructions take them. An odd K is padded with zeros.
 *
 * Panels of a block type are cut along K into parts of PACKED_PART elements, and PACKED_GROUP
 * neighbouring panels are a group: first part 0 of every panel, then part 1, and so on. The last
 * part may be shorter, and the last group may have fewer panels. A core that reads a group reads
 * one stream, and uses its first-level cache's part of each row of a for all panels. Panels of q8_0
 * are not cut: with few rows of a, a core reads four of them at once, as four streams.
 *
 * A part of a panel is a sequence of units along K. A unit is a GGML block of 32 elements, or of
 * 256 elements in 8 runs of 32. It has a head and its runs. Values of all rows are always
 * neighbours:
 *
 *   head  16 scales (f16); where the type has minima, 16 of these
 *   run   of q4_K, q5_K: 16 shares of the scale, 16 of the minimum, a byte each; of q6_K: 16
 *         shares of the scale for the first half of the run, 16 for the second
 *         the codes
 *
 * Codes are words of 4 bytes, row after row. A line is 16 such words, one per row. Byte j of a word
 * is element 4 g + j of the run, where g counts the lines:
 *
 *   8 bits (q8_0)   lines 0..7; with PACKED_FLIP, the highest bit is inverted: code + 128
 *   4 bits          lines 0..3: elements 4 g + j in the low half, 16 + 4 g + j in the high half
 *   a fifth bit     a line before these: bit g is that of element 4 g + j
 *   6 bits (q6_K)   two lines v before these: bits 2 f and 2 f + 1 are those of element
 *                   4 (4 v + f) + j, the 4 lowest of its code are in the lines of 4 bits
 *
 * Packed weights have GGML's size, except q4_K and q5_K, which grow by 2 and 3 %. */
#ifndef CPU_PACK_H
#define CPU_PACK_H

#include <hw/plugin.h>

#include <stdbool.h>

enum {
    PACKED_ROWS = 16,           /* of a panel */
    PACKED_RUN = 32,            /* elements of a run along K */
    PACKED_MOST_ELEMENTS = 256, /* of a unit */
    PACKED_PART = 512,          /* elements of a part along K: whole units of each type */
    PACKED_GROUP = 8,           /* panels whose parts are stored together */
    PACKED_WORDS = 4,           /* bytes of a word */
    PACKED_LINE = 64,           /* bytes of a line */
    PACKED_SCALES = 32,         /* bytes of 16 scales */
    PACKED_SHARES = PACKED_ROWS /* bytes of 16 shares */
};

/* x86 multiplies unsigned bytes by signed ones. */
#if defined(__x86_64__)
#define PACKED_FLIP 0x80
#else
#define PACKED_FLIP 0
#endif

/* X(NAME, name, elements of a unit, bytes of its head, bytes of a run) */
#define PACKED_TYPES(X)                                                                    \
    X(Q8_0, q8_0, 32, 32, 512)                                                             \
    X(Q4_0, q4_0, 32, 32, 256)                                                             \
    X(Q4_1, q4_1, 32, 64, 256)                                                             \
    X(Q5_0, q5_0, 32, 32, 320)                                                             \
    X(Q5_1, q5_1, 32, 64, 320)                                                             \
    X(Q4_K, q4_K, 256, 64, 288)                                                            \
    X(Q5_K, q5_K, 256, 64, 352)                                                            \
    X(Q6_K, q6_K, 256, 32, 416)

/* The bytes of a panel of k elements along K; k is a multiple of the block. 0: a type that is not
 * packed, or 2^63 bytes or more. */
uint64_t packed_panel_bytes(int32_t dtype, int64_t k);

/* Whether panels of a block type are cut into parts. */
static inline bool packed_in_parts(int32_t dtype)
{
    return dtype != HW_Q8_0;
}

/* The parts of panels of a block type that are stored together: `count` per panel, of `units` units
 * of `unit_bytes` bytes. Only the last part may be shorter. */
struct packed_parts {
    int64_t panels, count, units, last_units;
    int64_t unit_bytes;
};
/* The parts of panels of k elements along K; k is a multiple of the block. Panels that are not
 * `cut` have a single part. */
struct packed_parts packed_parts_of(int32_t dtype, int64_t k, int64_t panels, bool cut);

static inline int64_t packed_units(const struct packed_parts *parts, int64_t part)
{
    return part + 1 < parts->count ? parts->units : parts->last_units;
}

/* The start of a part of panel `number`, in bytes from the start of the group. */
static inline int64_t packed_at(const struct packed_parts *parts, int64_t part,
                                int64_t number)
{
    return (part * parts->units * parts->panels + number * packed_units(parts, part)) *
           parts->unit_bytes;
}

/* The layout id of hw_tensor.layout. */
#define PACKED_LAYOUT 2

/* The source of a panel or of a part of one: `count` rows (1 to 16), `stride` bytes apart. */
struct packed_rows {
    const void *rows;
    int64_t stride, count, k;
    int32_t dtype;
};
void packed_write(const struct packed_rows *from, void *panel);

/* hw_plugin.pack_size and hw_plugin.pack. */
int32_t pack_size(void *device, const struct hw_tensor *src, uint64_t *bytes,
                  uint32_t *layout);
int32_t pack_weights(void *queue, const struct hw_tensor *dst, const struct hw_tensor *src);

#endif
