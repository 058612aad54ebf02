/* SPDX-License-Identifier: MIT */
/* Packing: rows of floats or of GGML's blocks become panels; pack.h describes them. */
#include "pack.h"

#include "cpu.h"

/* ---- parts of a unit: each is written for all 16 rows and returns where the next begins ---- */

/* The same block of each row. */
struct blocks {
    const uint8_t *row[PACKED_ROWS];
};

static uint32_t word_at(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static uint8_t *put_word(uint8_t *to, uint32_t word)
{
    memcpy(to, &word, sizeof word);
    return to + sizeof word;
}

static uint8_t *put_scales(uint8_t *to, const struct blocks *b, int at)
{
    for (int r = 0; r < PACKED_ROWS; r++, to += 2)
        memcpy(to, b->row[r] + at, 2);
    return to;
}

/* Words of codes that need no change. */
static uint8_t *put_words(uint8_t *to, const struct blocks *b, int at, int lines)
{
    for (int g = 0; g < lines; g++)
        for (int r = 0; r < PACKED_ROWS; r++)
            to = put_word(to, word_at(b->row[r] + at + g * PACKED_WORDS));
    return to;
}

/* Bits 0, 4, 8 .. 28 of `word`, next to each other. */
static uint32_t every_fourth(uint32_t word)
{
    word &= 0x11111111u;
    word = (word | word >> 3) & 0x03030303u;
    word = (word | word >> 6) & 0x000f000fu;
    return (word | word >> 12) & 0xffu;
}

/* Reads a 32-bit number with one bit per element. */
static uint8_t *put_fifths(uint8_t *to, const struct blocks *b, int at)
{
    for (int r = 0; r < PACKED_ROWS; r++) {
        const uint32_t bits = word_at(b->row[r] + at);
        for (int j = 0; j < PACKED_WORDS; j++)
            *to++ = (uint8_t)every_fourth(bits >> j);
    }
    return to;
}

/* ---- runs of K types: their codes lie beside those of other runs ---- */

/* The position of a run's 4-bit codes: the byte in a block, and the bit in a byte. */
struct bits {
    int at, shift;
};

static uint8_t *put_halves(uint8_t *to, const struct blocks *b, struct bits low)
{
    const uint32_t mask = 0x0f0f0f0fu;
    for (int g = 0; g < 4; g++)
        for (int r = 0; r < PACKED_ROWS; r++) {
            const uint8_t *q = b->row[r] + low.at + g * PACKED_WORDS;
            const uint32_t first = word_at(q) >> low.shift & mask,
                           second = word_at(q + 16) >> low.shift & mask;
            to = put_word(to, first | second << 4);
        }
    return to;
}

/* Writes a line: each byte has `width` bits of each of 8 / width elements, from `first` on. */
static uint8_t *put_high_bits(uint8_t *to, const struct blocks *b, struct bits high,
                              int width, int first)
{
    const uint32_t mask = 0x01010101u * ((1u << width) - 1);
    for (int r = 0; r < PACKED_ROWS; r++) {
        uint32_t word = 0;
        for (int f = 0; f < 8 / width; f++)
            word |= (word_at(b->row[r] + high.at + (first + f) * PACKED_WORDS) >>
                         high.shift &
                     mask)
                    << f * width;
        to = put_word(to, word);
    }
    return to;
}

/* The 6-bit shares of run 0..7 of a q4_K or q5_K block in its scale and in its minimum,
 * unpacked. */
static uint8_t *put_shares(uint8_t *to, const struct blocks *b, int run)
{
    for (int r = 0; r < PACKED_ROWS; r++) {
        const uint8_t *s = b->row[r] + 4;
        const int scale = run < 4 ? s[run] & 63 : (s[run + 4] & 15) | s[run - 4] >> 6 << 4;
        const int least = run < 4 ? s[run + 4] & 63 : s[run + 4] >> 4 | s[run] >> 6 << 4;
        to[r] = (uint8_t)scale;
        to[PACKED_SHARES + r] = (uint8_t)least;
    }
    return to + 2 * PACKED_SHARES;
}

static uint8_t *put_bytes(uint8_t *to, const struct blocks *b, int at)
{
    for (int r = 0; r < PACKED_ROWS; r++)
        *to++ = b->row[r][at];
    return to;
}

/* ---- units ---- */

static void put_q8_0(uint8_t *to, const struct blocks *b)
{
    uint8_t *codes = put_scales(to, b, 0), *end = put_words(codes, b, 2, 8);
    for (; codes < end; codes++)
        *codes ^= PACKED_FLIP;
}

static void put_q4_0(uint8_t *to, const struct blocks *b)
{
    put_words(put_scales(to, b, 0), b, 2, 4);
}

static void put_q4_1(uint8_t *to, const struct blocks *b)
{
    put_words(put_scales(put_scales(to, b, 0), b, 2), b, 4, 4);
}

static void put_q5_0(uint8_t *to, const struct blocks *b)
{
    put_words(put_fifths(put_scales(to, b, 0), b, 2), b, 6, 4);
}

static void put_q5_1(uint8_t *to, const struct blocks *b)
{
    put_words(put_fifths(put_scales(put_scales(to, b, 0), b, 2), b, 4), b, 8, 4);
}

static void put_q4_K(uint8_t *to, const struct blocks *b)
{
    to = put_scales(put_scales(to, b, 0), b, 2);
    for (int run = 0; run < 8; run++)
        to = put_halves(put_shares(to, b, run), b,
                        (struct bits){ 16 + run / 2 * 32, run % 2 * 4 });
}

static void put_q5_K(uint8_t *to, const struct blocks *b)
{
    to = put_scales(put_scales(to, b, 0), b, 2);
    for (int run = 0; run < 8; run++) {
        to = put_shares(to, b, run);
        to = put_high_bits(to, b, (struct bits){ 16, run }, 1, 0);
        to = put_halves(to, b, (struct bits){ 48 + run / 2 * 32, run % 2 * 4 });
    }
}

static void put_q6_K(uint8_t *to, const struct blocks *b)
{
    to = put_scales(to, b, 208);
    for (int run = 0; run < 8; run++) {
        const struct bits high = { 128 + run / 4 * 32, run % 4 * 2 };
        to = put_bytes(put_bytes(to, b, 192 + 2 * run), b, 193 + 2 * run);
        to = put_high_bits(put_high_bits(to, b, high, 2, 0), b, high, 2, 4);
        to = put_halves(to, b,
                        (struct bits){ run / 4 * 64 + run % 2 * 32, run % 4 / 2 * 4 });
    }
}

/* ---- panels ---- */

struct form {
    int64_t elements, bytes;
    void (*put)(uint8_t *to, const struct blocks *b);
};

/* elements 0: not packed */
static struct form form_of(int32_t dtype)
{
    switch (dtype) {
#define X(NAME, name, elements, head, run)                                                 \
    case HW_##NAME:                                                                        \
        return (struct form){ elements, (head) + (elements) / PACKED_RUN * (run),          \
                              put_##name };
        PACKED_TYPES(X)
#undef X
    default:
        return (struct form){ 0 };
    }
}

/* For floats, the bytes of an element and the number of neighbours in a row that stay together; 0
 * for other types. */
static int64_t float_bytes(int32_t dtype)
{
    return dtype == HW_F32 ? 4 : dtype == HW_F16 || dtype == HW_BF16 ? 2 : 0;
}

static int64_t float_run(int32_t dtype)
{
    return dtype == HW_BF16 ? 2 : 1;
}

uint64_t packed_panel_bytes(int32_t dtype, int64_t k)
{
    const struct form form = form_of(dtype);
    const int64_t element = float_bytes(dtype), run = float_run(dtype);
    const int64_t unit = element ? PACKED_ROWS * element * run : form.bytes;
    int64_t bytes;
    if (!unit || __builtin_mul_overflow(element ? k / run + k % run : k / form.elements,
                                        unit, &bytes))
        return 0;
    return (uint64_t)bytes;
}

struct packed_parts packed_parts_of(int32_t dtype, int64_t k, int64_t panels, bool cut)
{
    const struct form form = form_of(dtype);
    const int64_t all = k / form.elements, units = cut ? PACKED_PART / form.elements : all,
                  count = cut ? (all + units - 1) / units : 1;
    return (struct packed_parts){ .panels = panels,
                                  .count = count,
                                  .units = units,
                                  .last_units = all - (count - 1) * units,
                                  .unit_bytes = form.bytes };
}

enum { NEAR = 16 }; /* words of one row that are moved before the next row's */

/* Words first .. first + count - 1 of each row. `size` is 2 or 4 bytes, a constant. */
static inline void turn_words(const struct packed_rows *from, uint8_t *panel, int64_t first,
                              int64_t count, size_t size)
{
    for (int r = 0; r < PACKED_ROWS; r++) {
        const char *row = (const char *)from->rows +
                          (r < from->count ? r : 0) * from->stride;
        uint8_t *to = panel + (size_t)(first * PACKED_ROWS + r) * size;
        for (int64_t i = 0; i < count; i++, to += PACKED_ROWS * size)
            if (r < from->count)
                memcpy(to, row + (size_t)(first + i) * size, size);
            else
                memset(to, 0, size);
    }
}

static void write_words(const struct packed_rows *from, uint8_t *panel, int64_t words)
{
    int64_t i = 0;
    for (; i + NEAR <= words; i += NEAR)
        turn_words(from, panel, i, NEAR, 4);
    turn_words(from, panel, i, words - i, 4);
}

static void write_halves(const struct packed_rows *from, uint8_t *panel)
{
    int64_t i = 0;
    for (; i + NEAR <= from->k; i += NEAR)
        turn_words(from, panel, i, NEAR, 2);
    turn_words(from, panel, i, from->k - i, 2);
}

/* Writes the last element of bf16 rows with an odd length, and a zero after it. */
static void write_last(const struct packed_rows *from, uint8_t *panel)
{
    uint8_t *to = panel + from->k / 2 * PACKED_ROWS * PACKED_WORDS;
    memset(to, 0, PACKED_ROWS * PACKED_WORDS);
    for (int r = 0; r < from->count; r++, to += PACKED_WORDS)
        memcpy(to, (const char *)from->rows + r * from->stride + (from->k - 1) * 2, 2);
}

static void write_blocks(const struct packed_rows *from, uint8_t *panel)
{
    static const uint8_t zeros[256]; /* more than any block has */
    const struct form form = form_of(from->dtype);
    const int64_t block = hw_dtype_bytes(from->dtype), units = from->k / form.elements;
    struct blocks b;
    for (int64_t u = 0; u < units; u++) {
        for (int r = 0; r < PACKED_ROWS; r++)
            b.row[r] = r < from->count
                           ? (const uint8_t *)from->rows + r * from->stride + u * block
                           : zeros;
        form.put(panel + u * form.bytes, &b);
    }
}

void packed_write(const struct packed_rows *from, void *panel)
{
    switch (from->dtype) {
    case HW_F32:
        write_words(from, panel, from->k);
        break;
    case HW_F16:
        write_halves(from, panel);
        break;
    case HW_BF16:
        write_words(from, panel, from->k / 2);
        if (from->k % 2)
            write_last(from, panel);
        break;
    default:
        write_blocks(from, panel);
    }
}

/* ---- the plugin's functions ---- */

static int64_t panels_of(const struct hw_tensor *weights)
{
    return weights->extent[0] / PACKED_ROWS + (weights->extent[0] % PACKED_ROWS != 0);
}

/* Whether matmul takes `weights` once they are packed. This depends on the rows: on the processor,
 * HW_PRECISION and HW_KERNEL. Returns NULL, or the reason why not. */
static const char *refusal(const struct kernel_choice *choice,
                           const struct hw_tensor *weights)
{
    const int64_t n = weights->extent[0], k = weights->extent[1];
    struct hw_matmul op = {
        .a = { .dtype = HW_F32, .rank = 2, .extent = { 1, k }, .stride = { 4 * k, 4 } },
        .b = *weights,
        .c = { .dtype = HW_F32, .rank = 2, .extent = { 1, n }, .stride = { 4 * n, 4 } },
        .transpose_b = 1,
    };
    struct plan plan;
    op.b.layout = PACKED_LAYOUT;
    return kernel_plan(choice, HW_OP_MATMUL, &op, &plan);
}

int32_t pack_size(void *device, const struct hw_tensor *src, uint64_t *bytes,
                  uint32_t *layout)
{
    const struct device *dev = device;
    if (src->rank != 2)
        return hw_fail(dev->host, HW_UNSUPPORTED, "only matrices are packed, of rank 2");
    if (src->stride[1] != hw_dtype_bytes(src->dtype))
        return hw_fail(dev->host, HW_UNSUPPORTED,
                       "only matrices whose rows are contiguous are packed");
    const uint64_t panel = packed_panel_bytes(src->dtype, src->extent[1]);
    if (!panel || !src->extent[0])
        return hw_fail(
            dev->host, HW_UNSUPPORTED,
            "only weights of floats or block types, of at least one block, are packed");
    if (__builtin_mul_overflow(panel, (uint64_t)panels_of(src), bytes))
        return hw_fail(dev->host, HW_NO_MEMORY, "the packed weights exceed 64 bits");
    const char *why = refusal(&dev->choice, src);
    if (why)
        return hw_fail(dev->host, HW_UNSUPPORTED,
                       "no row of matmul takes packed weights here: %s", why);
    *layout = PACKED_LAYOUT;
    return HW_OK;
}

struct packing {
    struct packed_rows all; /* of the whole matrix */
    char *to;
    int64_t panels, panel_bytes;
};

/* Panel `number` of a group of blocks. */
static void pack_parts(const struct packed_rows *from, char *group,
                       const struct packed_parts *parts, int64_t number)
{
    const int64_t block = hw_dtype_bytes(from->dtype);
    for (int64_t part = 0; part < parts->count; part++) {
        struct packed_rows some = *from;
        some.rows = (const char *)from->rows + part * parts->units * block;
        some.k = packed_units(parts, part) * hw_dtype_block(from->dtype);
        packed_write(&some, group + packed_at(parts, part, number));
    }
}

static void pack_panel(const struct packing *packing, const struct packed_rows *from,
                       int64_t i)
{
    const int64_t number = i % PACKED_GROUP, left = packing->panels - (i - number);
    if (float_bytes(from->dtype)) {
        packed_write(from, packing->to + i * packing->panel_bytes);
        return;
    }
    const struct packed_parts parts =
        packed_parts_of(from->dtype, from->k, left < PACKED_GROUP ? left : PACKED_GROUP,
                        packed_in_parts(from->dtype));
    pack_parts(from, packing->to + (i - number) * packing->panel_bytes, &parts, number);
}

static void pack_panels(void *user, int64_t first, int64_t end, uint32_t thread)
{
    const struct packing *packing = user;
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        struct packed_rows some = packing->all;
        const int64_t left = some.count - i * PACKED_ROWS;
        some.rows = (const char *)some.rows + i * PACKED_ROWS * some.stride;
        some.count = left < PACKED_ROWS ? left : PACKED_ROWS;
        pack_panel(packing, &some, i);
    }
}

int32_t pack_weights(void *queue, const struct hw_tensor *dst, const struct hw_tensor *src)
{
    const struct queue *q = queue;
    struct team *team = q->device->team;
    const char *why = refusal(&q->choice, src); /* a queue may have its own rows */
    if (why)
        return hw_fail(q->device->host, HW_UNSUPPORTED,
                       "no row of matmul takes packed weights on this queue: %s", why);
    struct packing packing = {
        .all = { .rows = hw_tensor_address(src),
                 .stride = src->extent[0] > 1 ? src->stride[0] : 0,
                 .count = src->extent[0],
                 .k = src->extent[1],
                 .dtype = src->dtype },
        .to = hw_tensor_address(dst),
        .panels = panels_of(src),
        .panel_bytes = (int64_t)packed_panel_bytes(src->dtype, src->extent[1]),
    };
    const struct team_work work = {
        .fn = pack_panels, .user = &packing, .count = packing.panels, .grain = 4
    };
    team_run(team, &work);
    return HW_OK;
}
