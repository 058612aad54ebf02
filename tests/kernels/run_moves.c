/* SPDX-License-Identifier: MIT */
/* run_moves.c - the kernels that move and convert data: get_rows, set_rows, copy. */
#include "run.h"

/* ---- rows of a table ---- */

enum { PICKED = 5, TABLE_ROWS = 7 };
/* Two of them are outside the table. */
static const int picked[PICKED] = { 6, 0, -1, 7, 3 };

static struct rows_args rows_args(int to, int from, i64 cols)
{
    return (struct rows_args){ .to = packed(to, 1, 1, cols),
                               .from = packed(from, 1, 1, cols),
                               .rows.stride[2] = sizeof *picked,
                               .from_extents = { { 1, 1, TABLE_ROWS } },
                               .rows_extents = { { 1, 1, PICKED } },
                               .batch1 = 1,
                               .count = PICKED,
                               .table_rows = TABLE_ROWS,
                               .cols = cols,
                               .to_type = to,
                               .from_type = from,
                               .rows_type = STORAGE_I32 };
}

static void get_rows_case(int to, int from, i64 cols)
{
    struct array table = random_array(from, TABLE_ROWS * cols, 1);
    struct array y = new_array(to, PICKED * cols);
    double *want = numbers(PICKED * cols);
    for (int r = 0; r < PICKED; r++)
        for (i64 i = 0; i < cols; i++)
            want[r * cols + i] = picked[r] < 0 || picked[r] >= TABLE_ROWS
                                     ? 0
                                     : get(table, picked[r] * cols + i);
    const struct rows_args a = rows_args(to, from, cols);
    LAUNCH(&portable_mixed_base, get_rows, PICKED, &a, y.at, table.at, picked);
    check("get_rows", y, want, 0);
    release();
}

/* Batches 2 x 4 of y read batches 2 x 2 of the table, with numbers for batches 1 x 2. All bits of
 * i64 numbers count. */
static void get_rows_of_batches(void)
{
    enum { COLS = 3, WIDE = 2 };
    static const i64 numbers64[2][WIDE] = { { 6, (i64)1 << 32 }, { 2, 1 } };
    struct array table = random_array(STORAGE_F32, 4 * TABLE_ROWS * COLS, 1);
    struct array y = new_array(STORAGE_F32, 8 * WIDE * COLS);
    double *want = numbers(8 * WIDE * COLS);
    const i64 row = bytes_of(STORAGE_F32, COLS);
    const struct rows_args a = {
        .to = packed(STORAGE_F32, 4, WIDE, COLS),
        .from = packed(STORAGE_F32, 2, TABLE_ROWS, COLS),
        .rows.stride = { 0, sizeof *numbers64, sizeof **numbers64 },
        .from_extents = { { 2, 2, TABLE_ROWS } },
        .rows_extents = { { 1, 2, WIDE } },
        .batch1 = 4,
        .count = WIDE,
        .table_rows = TABLE_ROWS,
        .cols = COLS,
        .to_type = STORAGE_F32,
        .from_type = STORAGE_F32,
        .rows_type = STORAGE_I64,
    };
    assert_int_equal(a.from.stride[1], TABLE_ROWS * row);
    for (int b = 0; b < 8; b++)
        for (int i = 0; i < WIDE; i++)
            for (int c = 0; c < COLS; c++) {
                const i64 from = (b / 4 * 2 + b % 2) * TABLE_ROWS + numbers64[b % 2][i];
                want[(b * WIDE + i) * COLS + c] = numbers64[b % 2][i] < TABLE_ROWS
                                                      ? get(table, from * COLS + c)
                                                      : 0;
            }
    LAUNCH(&portable_mixed_base, get_rows, 8 * WIDE, &a, y.at, table.at, numbers64);
    check("get_rows of batches", y, want, 0);
    release();
}

static void test_get_rows(void **state)
{
    (void)state;
    for (int from = STORAGE_F32; from <= STORAGE_Q5_1; from++) {
        const i64 block = hw_dtype_block(from);
        if (from > STORAGE_BF16 && from < STORAGE_Q8_0)
            continue;
        for (int to = STORAGE_F32; to <= STORAGE_BF16; to++) {
            get_rows_case(to, from, block > 1 ? 3 * block : 37);
            get_rows_case(to, from, block > 1 ? block : 261);
        }
    }
    get_rows_of_batches();
}

/* The picked row that table row r becomes; -1: unchanged. */
static int source_of(int r)
{
    for (int i = 0; i < PICKED; i++)
        if (picked[i] == r)
            return i;
    return -1;
}

/* The error of quantising numbers from -1 to 1: half a step, and in the K types the rounding of the
 * scale or the minimum. */
static double coarseness(int type)
{
    switch (type) {
    case STORAGE_F32:
        return 0;
    case STORAGE_Q4_0:
    case STORAGE_Q4_K:
        return 0.13;
    case STORAGE_Q4_1:
    case STORAGE_Q5_0:
    case STORAGE_Q5_K:
        return 0.07;
    case STORAGE_Q5_1:
    case STORAGE_Q6_K:
        return 0.04;
    default:
        return 1.0 / 200;
    }
}

static void set_rows_case(int to, int from)
{
    const i64 cols = 256;
    struct array x = random_array(from, PICKED * cols, 1);
    struct array table = random_array(to, TABLE_ROWS * cols, 1);
    struct array before = new_array(to, TABLE_ROWS * cols);
    memcpy(before.at, table.at, (size_t)bytes_of(to, TABLE_ROWS * cols));
    const struct rows_args a = rows_args(to, from, cols);
    LAUNCH(&portable_mixed_base, set_rows, PICKED, &a, table.at, x.at, picked);
    for (int r = 0; r < TABLE_ROWS; r++)
        for (i64 i = 0; i < cols; i++) {
            const double got = get(table, r * cols + i);
            if (source_of(r) < 0)
                assert_true(got == get(before, r * cols + i));
            else if (fabs(got - get(x, source_of(r) * cols + i)) > coarseness(to))
                fail_msg("set_rows: %d to %d, row %d", from, to, r);
        }
    release();
}

static void test_set_rows(void **state)
{
    (void)state;
    for (int from = STORAGE_F32; from <= STORAGE_BF16; from++)
        for (int to = STORAGE_F32; to <= STORAGE_Q5_1; to++)
            if (to <= STORAGE_BF16 || to >= STORAGE_Q8_0)
                set_rows_case(to, from);
}

/* ---- copy ---- */

static void copy_transposed(int to, int from)
{
    const i64 rows = 41, cols = 29;
    struct array src = random_array(from, cols * rows, 1), dst = new_array(to, rows * cols);
    double *want = numbers(rows * cols);
    const struct copy_args a = { .dst = packed(to, 1, rows, cols),
                                 .src.stride[2] = bytes_of(from, 1),
                                 .n1 = 1,
                                 .n2 = rows,
                                 .cols = cols,
                                 .dst_step = bytes_of(to, 1),
                                 .src_step = bytes_of(from, rows),
                                 .dst_type = to,
                                 .src_type = from };
    for (i64 i = 0; i < rows * cols; i++)
        want[i] = get(src, i % cols * rows + i / cols);
    LAUNCH(&portable_mixed_base, copy, rows, &a, dst.at, src.at);
    check("copy", dst, want, 0);
    release();
}

/* To blocks, with an error of up to half a step between two codes, and back. */
static void copy_blocks(int block, int type)
{
    const i64 cols = 2 * ELEMENT_SPAN + 3 * hw_dtype_block(block);
    struct array x = random_array(type, cols, 1), y = new_array(type, cols);
    struct array q = new_array(block, cols);
    double *want = numbers(cols);
    const struct copy_args to = { .n1 = 1,
                                  .n2 = 1,
                                  .cols = cols,
                                  .dst_type = block,
                                  .src_type = type,
                                  .src_step = bytes_of(type, 1) };
    const struct copy_args back = { .n1 = 1,
                                    .n2 = 1,
                                    .cols = cols,
                                    .dst_type = type,
                                    .src_type = block,
                                    .dst_step = bytes_of(type, 1) };
    LAUNCH(&portable_mixed_base, copy, pieces(cols, ELEMENT_SPAN), &to, q.at, x.at);
    LAUNCH(&portable_mixed_base, copy, pieces(cols, ELEMENT_SPAN), &back, y.at, q.at);
    for (i64 i = 0; i < cols; i++) {
        want[i] = get(q, i);
        if (fabs(want[i] - get(x, i)) > coarseness(block))
            fail_msg("quantising copy: %g became %g", get(x, i), want[i]);
    }
    check("dequantising copy", y, want, 0);
    release();
}

/* Equal types of 1, 2, 4 and 8 bytes move as bits, here transposed. */
static void copy_bits(int type, int size)
{
    enum { ROWS = 3, COLS = 5, LARGEST = 8 };
    u8 src[LARGEST * ROWS * COLS], dst[sizeof src], want[sizeof src];
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (u8)(i * 37 + 255);
    for (int i = 0; i < ROWS * COLS; i++)
        memcpy(want + i * size, src + (i % COLS * ROWS + i / COLS) * size, (size_t)size);
    const struct copy_args a = { .dst.stride[2] = COLS * size,
                                 .src.stride[2] = size,
                                 .n1 = 1,
                                 .n2 = ROWS,
                                 .cols = COLS,
                                 .dst_step = size,
                                 .src_step = ROWS * size,
                                 .dst_type = type,
                                 .src_type = type };
    LAUNCH(&portable_mixed_base, copy, ROWS, &a, dst, src);
    assert_memory_equal(dst, want, (size_t)(ROWS * COLS * size));
}

static void test_copy(void **state)
{
    static const int bits[] = { STORAGE_I8, STORAGE_I16, STORAGE_I32, STORAGE_I64 };
    (void)state;
    for (int from = STORAGE_F32; from <= STORAGE_BF16; from++)
        for (int to = STORAGE_F32; to <= STORAGE_BF16; to++)
            copy_transposed(to, from);
    for (int block = STORAGE_Q8_0; block <= STORAGE_Q5_1; block++)
        for (int type = STORAGE_F32; type <= STORAGE_BF16; type++)
            copy_blocks(block, type);
    for (size_t i = 0; i < COUNT(bits); i++)
        copy_bits(bits[i], 1 << i);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_get_rows),
    cmocka_unit_test(test_set_rows),
    cmocka_unit_test(test_copy),
};
const struct family moves_family = { tests, COUNT(tests) };
