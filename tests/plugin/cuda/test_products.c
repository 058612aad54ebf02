/* SPDX-License-Identifier: MIT */
/* test_products.c - which kernel a product gets, by rows, types and precision, and how it is
 * divided among launches and groups. test_tuned.c tests products of one row. */
#include "tuned.h"

/* ---- products of many rows ---- */

/* The expected launches for a product of `rows` rows in `batches` that share one b. */
struct many {
    struct hw_device **device;
    int32_t a, b, c;
    int64_t rows, batches;
    const char *launches;
};

static void launch_many(const struct many *m)
{
    const int64_t a[] = { m->batches, m->rows, COLS }, c[] = { m->batches, m->rows, ROWS };
    struct hw_matmul op = { .b = tensor(*m->device, 0, m->b, ROWS, COLS),
                            .transpose_b = 1 };
    struct hw_queue *on;
    ok(hw_tensor_alloc(*m->device, 0, m->a, 3, a, &op.a));
    ok(hw_tensor_alloc(*m->device, 0, m->c, 3, c, &op.c));
    ok(hw_queue_open(*m->device, NULL, &on));
    count = 0;
    ok(hw_matmul(on, &op));
    assert_int_equal(seen[count - 1].early, strstr(m->launches, "wgmma_") != NULL);
    launched(m->launches);
    ok(hw_queue_wait(on));
}

static void products_of_many_rows(void **state)
{
    static const struct many all[] = {
        { &hopper, HW_BF16, HW_BF16, HW_BF16, 64, 1, "wgmma_bf16_" },
        { &hopper, HW_F16, HW_Q4_K, HW_F16, 64, 1, "convert_f16 wgmma_f16_" },
        { &hopper, HW_BF16, HW_BF16, HW_BF16, 64, 3,
          "wgmma_bf16_" }, /* rows of one matrix */
        { &hopper, HW_F32, HW_F32, HW_F32, 2, 1, "f32_16x32x8" },
        { &hopper, HW_F32, HW_F32, HW_F32, 64, 1, "f32_16x32x8" },
        { &hopper, HW_F32, HW_F32, HW_F32, 512, 1, "f32_32x64x4" },
        { &hopper, HW_F32, HW_F32, HW_F32, 1024, 1, "f32_64x64x4" },
        { &hopper, HW_F32, HW_F32, HW_F32, 8192, 1, "f32_128x128x1" },
        { &hopper, HW_F32, HW_Q8_0, HW_F32, 64, 1, "convert_f32 f32_16x32x8" },
        { &hopper, HW_F16, HW_F32, HW_F32, 64, 1, "convert_f32 f32_16x32x8" },
        { &hopper, HW_F16, HW_Q8_0, HW_F32, 64, 1, "convert_f32 convert_f32 f32_16x32x8" },
        { &ampere, HW_BF16, HW_BF16, HW_BF16, 64, 1, "mma_bf16_64x64" },
        { &ampere, HW_BF16, HW_BF16, HW_BF16, 8192, 1, "mma_bf16_128x128" },
        { &ampere, HW_F16, HW_Q8_0, HW_F16, 64, 1, "convert_f16 mma_f16_64x64" },
        { &ampere, HW_F32, HW_F32, HW_F32, 8192, 1, "f32_128x128x1" },
        { &ampere, HW_F32, HW_F32, HW_F32, 16, 1, "f32_16x32x8" },
        { &turing, HW_F32, HW_F32, HW_F32, 64, 1, "matmul" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        launch_many(&all[i]);
}

/* One launch per batch, where that pays off, each with its own b, which neighbours share. */
static void products_of_batches(void **state)
{
    static const int64_t a[] = { 4, 32, COLS }, b[] = { 2, ROWS, COLS },
                         c[] = { 4, 32, ROWS };
    struct hw_matmul op = { .transpose_b = 1 };
    struct hw_queue *on;
    (void)state;
    ok(hw_queue_open(ampere, NULL, &on));
    ok(hw_tensor_alloc(ampere, 0, HW_F16, 3, a, &op.a));
    ok(hw_tensor_alloc(ampere, 0, HW_F16, 3, b, &op.b));
    ok(hw_tensor_alloc(ampere, 0, HW_F16, 3, c, &op.c));
    ok(hw_matmul(on, &op));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(seen[i].ring.a, address_of(&op.a) + (uint64_t)(i * 32 * COLS * 2));
        assert_int_equal(seen[i].ring.b,
                         address_of(&op.b) + (uint64_t)(i / 2 * ROWS * COLS * 2));
        assert_int_equal(seen[i].ring.c, address_of(&op.c) + (uint64_t)(i * 32 * ROWS * 2));
    }
    launched("mma_f16_ mma_f16_ mma_f16_ mma_f16_");
    op.a.extent[1] = op.c.extent[1] = 31;
    ok(hw_matmul(on, &op));
    launched("matmul");
    ok(hw_queue_wait(on));
}

/* ---- precision and rows ---- */

static struct hw_matmul product(int32_t dtype, int64_t rows)
{
    return (struct hw_matmul){ .a = tensor(hopper, 0, HW_F32, rows, COLS),
                               .b = tensor(hopper, HW_BUFFER_READ_ONLY, dtype, ROWS, COLS),
                               .c = tensor(hopper, 0, HW_F32, rows, ROWS),
                               .transpose_b = 1 };
}

static void precision_type_and_rows_choose_the_kernel(void **state)
{
    static const struct {
        const char *precision;
        int32_t dtype;
        int64_t rows;
        const char *kernels;
    } cases[] = {
        { "fp32", HW_BF16, 1, "gemv_bf16" },
        { "fp32", HW_Q4_K, 1, "gemv_q4_K" },
        { "fp32", HW_Q4_K, 3, "gemv_q4_K gemv_q4_K gemv_q4_K" },
        { "fp32", HW_Q4_K, GEMV_TOKENS + 1, "convert_f32 f32_" },
        { "fp16", HW_Q8_0, 1, "gemv_q8_0" },
        { "fp16", HW_BF16, 2, "convert_round_bf16 wgmma_bf16_" },
        { "fp32", HW_F32, 65, "f32_" },
        { "fp16", HW_F32, 1, "gemv_f32" },
        { "fp16", HW_F32, 2, "wgmma_tf32_" },
        { "int8", HW_F32, 65, "wgmma_tf32_" },
        { "int8", HW_F16, 1, "gemv_f16" },
        { "int8", HW_Q8_0, 1, "gemv_int8_q8_0" },
        { "int8", HW_Q8_0, 2, "gemv_int8_few_q8_0" },
        { "int8", HW_Q8_0, 3, "tiles_round tiles_8_q8_0" },
        { "int8", HW_Q4_0, 3, "gemv_int8_few_q4_0" },
        { "int8", HW_Q4_0, 4, "tiles_round tiles_8_q4_0" },
        { "int8", HW_Q4_K, 4, "gemv_int8_few_q4_K" },
        { "int8", HW_Q4_K, 5, "tiles_round tiles_8_q4_K" },
        { "int8", HW_Q6_K, 9, "tiles_round tiles_16_q6_K" },
        { "int8", HW_Q4_0, 16, "tiles_round tiles_16_q4_0" },
        { "int8", HW_Q4_0, 17, "convert_round_mixed blocks_q4_0_64" },
        { "fp16", HW_Q8_0, 64, "convert_round_mixed blocks_q8_0_64" },
        { "fp16", HW_Q4_K, 2048, "convert_round_mixed blocks_q4_K_" },
        { "int8", HW_Q4_K, 2049, "convert_round_f16 convert_f16 wgmma_f16_" },
        { "fp32", HW_Q4_K, 64, "convert_f32 f32_" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        close_all(state);
        open_with(&(struct hw_options){ .size = sizeof(struct hw_options),
                                        .backends = "cuda",
                                        .fallback = "error",
                                        .precision = cases[i].precision });
        const struct hw_matmul op = product(cases[i].dtype, cases[i].rows);
        ok(hw_matmul(queue, &op));
        launched(cases[i].kernels);
    }
}

static void a_becomes_the_type_of_the_products(void **state)
{
    enum { TOKENS = 65 };
    static const struct {
        int32_t a, b;
        const char *kernels;
    } cases[] = {
        { HW_BF16, HW_BF16, "wgmma_bf16_" },
        { HW_F16, HW_BF16, "convert_round_bf16 wgmma_bf16_" },
        { HW_BF16, HW_F16, "convert_round_f16 wgmma_f16_" },
        { HW_F32, HW_F32, "wgmma_tf32_" },
        { HW_F16, HW_F32, "convert_f32 wgmma_tf32_" },
        { HW_BF16, HW_F32, "convert_f32 wgmma_tf32_" },
        { HW_F16, HW_Q4_K, "convert_round_mixed blocks_q4_K_" },
        { HW_BF16, HW_Q4_K, "convert_round_mixed blocks_q4_K_" },
    };
    close_all(state);
    open_with(&(struct hw_options){ .size = sizeof(struct hw_options),
                                    .backends = "cuda",
                                    .fallback = "error",
                                    .precision = "fp16" });
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw_matmul op = product(cases[i].b, TOKENS);
        op.a = tensor(hopper, 0, cases[i].a, TOKENS, COLS);
        count = 0;
        ok(hw_matmul(queue, &op));
        launched(cases[i].kernels);
    }
}

/* A lane multiplies two neighbouring blocks of these types. Without a second one, it would read
 * past the row. */
static void paired_blocks_are_even_in_number(void **state)
{
    static const int32_t dtypes[] = { HW_Q4_0, HW_Q5_0 };
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int64_t blocks = 1; blocks < 5; blocks++) {
            const int64_t k = blocks * 32;
            count = 0;
            ok(hw_matmul(queue, &(struct hw_matmul){
                                    .a = tensor(hopper, 0, HW_F32, 1, k),
                                    .b = tensor(hopper, 0, dtypes[i], 1, k),
                                    .c = tensor(hopper, 0, HW_F32, 1, 1),
                                    .transpose_b = 1,
                                }));
            launched(blocks % 2 ? "matmul_" : "gemv_");
        }
}

/* One launch for all rows, or one for each. */
static void rows_are_where_they_should_be(void **state)
{
    enum { TOKENS = 4 };
    const struct hw_matmul op = product(HW_Q8_0, TOKENS);
    (void)state;
    ok(hw_matmul(queue, &op));
    for (int i = 0; i < TOKENS; i++) {
        assert_int_equal(seen[i].gemv.tokens, 1);
        assert_int_equal(seen[i].gemv.a, address_of(&op.a) + (uint64_t)(i * COLS * 4));
        assert_int_equal(seen[i].gemv.part[0].c,
                         address_of(&op.c) + (uint64_t)(i * ROWS * 4));
    }
    close_all(state);
    open_with(&(struct hw_options){
        .size = sizeof(struct hw_options), .backends = "cuda", .precision = "int8" });
    const struct hw_matmul few = product(HW_Q4_K, TOKENS);
    ok(hw_matmul(queue, &few));
    assert_int_equal(seen[0].gemv.tokens, TOKENS);
    assert_int_equal(seen[0].gemv.a_stride, COLS * 4);
    assert_int_equal(seen[0].gemv.c_stride, ROWS * 4);
    struct hw_matmul more = product(HW_Q8_0, 2 * GEMV_TOKENS + 1);
    more.a.extent[1] = more.b.extent[1] = COLS - 32; /* which tiles do not take */
    count = 0;
    ok(hw_matmul(queue, &more));
    assert_int_equal(count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(seen[i].gemv.tokens, i < 2 ? 6 : 5);
        assert_int_equal(seen[i].gemv.a,
                         address_of(&more.a) + (uint64_t)(i * 6 * COLS * 4));
        assert_int_equal(seen[i].gemv.part[0].c,
                         address_of(&more.c) + (uint64_t)(i * 6 * ROWS * 4));
    }
}

/* ---- tiles of rows ---- */

/* `kernel`: the row to use; NULL: the default. */
static void open_rounding(void **state, const char *kernel)
{
    close_all(state);
    open_with(&(struct hw_options){ .size = sizeof(struct hw_options),
                                    .backends = "cuda",
                                    .fallback = "error",
                                    .kernel = kernel,
                                    .precision = "int8" });
}

/* First as many rows of a as a launch takes, then the rest. Each part is rounded first. */
static void tiles_take_rows_in_turn(void **state)
{
    enum { TOKENS = 40 };
    static const int tokens[] = { 32, 8 };
    open_rounding(state, "matmul=matmul_tiles_int8");
    const struct hw_matmul op = product(HW_Q4_0, TOKENS);
    ok(hw_matmul(queue, &op));
    assert_int_equal(count, 4);
    for (int i = 0; i < 4; i++) {
        const struct tiles_args *args = &seen[i].tiles;
        assert_int_equal(args->tokens, tokens[i / 2]);
        assert_int_equal(args->eights, tokens[i / 2] / 8);
        assert_int_equal(args->a, address_of(&op.a) + (uint64_t)(i / 2 * 32 * COLS * 4));
        assert_int_equal(args->c, address_of(&op.c) + (uint64_t)(i / 2 * 32 * ROWS * 4));
        assert_int_equal(args->b, address_of(&op.b));
        assert_int_equal(args->x, seen[0].tiles.x);
        assert_true(args->constant);
        assert_true(seen[i].early);
    }
    launched("tiles_round tiles_32_q4_0 tiles_round tiles_8_q4_0");
}

/* A group keeps the sums of a limited number of tiles. If b has more rows, several launches share
 * them. */
static void tiles_of_many_rows_are_several_launches(void **state)
{
    enum { UNITS = 132, ALL = UNITS * TILES_MOST * TILES_ROWS, TOKENS = 16 };
    open_rounding(state, NULL);
    struct hw_matmul op = product(HW_Q8_0, TOKENS);
    op.b = tensor(hopper, 0, HW_Q8_0, ALL + 17, 256);
    op.a = tensor(hopper, 0, HW_F16, TOKENS, 256);
    op.c = tensor(hopper, 0, HW_F16, TOKENS, ALL + 17);
    op.bias = hw_view_1d(tensor(hopper, 0, HW_F32, 1, ALL + 17).buffer, 0, HW_F32,
                         ALL + 17);
    ok(hw_matmul(queue, &op));
    const struct tiles_args *args = &seen[1].tiles, *rest = &seen[2].tiles;
    assert_int_equal(args->rows, ALL);
    assert_int_equal(seen[1].groups[0], UNITS);
    assert_false(args->constant);
    assert_int_equal(rest->rows, 17);
    assert_int_equal(seen[2].groups[0], 2);
    assert_int_equal(rest->b, args->b + (uint64_t)ALL * 272);
    assert_int_equal(rest->c, args->c + (uint64_t)ALL * 2);
    assert_int_equal(rest->bias, args->bias + (uint64_t)ALL * 4);
    assert_true(seen[1].shared <= 227 << 10 && seen[2].shared < seen[1].shared);
    launched("tiles_round tiles_16_q8_0 tiles_16_q8_0");
}

/* Products that tiles cannot compute use other rows. */
static void tiles_need_whole_cells_and_room(void **state)
{
    open_rounding(state, NULL);
    struct hw_matmul op = product(HW_Q8_0, 8);
    op.a.extent[1] = op.b.extent[1] = COLS - 32;
    ok(hw_matmul(queue, &op));
    launched("gemv_int8_few_q8_0");
    op = product(HW_Q8_0, 8);
    op.b.offset = 34; /* rows begin at even addresses */
    op.b.extent[0]--;
    op.c.extent[1]--;
    ok(hw_matmul(queue, &op));
    launched("gemv_int8_few_q8_0");
    struct hw_queue *small; /* 99 KB of shared memory */
    ok(hw_queue_open(blackwell, NULL, &small));
    op.a = tensor(blackwell, 0, HW_F32, 8, COLS);
    op.b = tensor(blackwell, 0, HW_Q8_0, ROWS, COLS);
    op.c = tensor(blackwell, 0, HW_F32, 8, ROWS);
    ok(hw_matmul(small, &op));
    launched("gemv_int8_few_q8_0");
    hw_queue_close(small);
}

/* Counts the tile launches for `rows` rows of a and the many of b. Each of them must have rings. */
static int tiles_of(struct hw_device *device, struct hw_queue *on,
                    const struct hw_tensor *b, int64_t rows)
{
    const struct hw_matmul op = { .a = tensor(device, 0, HW_F16, rows, b->extent[1]),
                                  .b = *b,
                                  .c = tensor(device, 0, HW_F16, rows, b->extent[0]),
                                  .transpose_b = 1 };
    int tiles = 0;
    count = 0;
    ok(hw_matmul(on, &op));
    assert_true(count > 0);
    for (int i = 0; i < count; i++)
        if (strncmp(seen[i].kernel, "tiles_", 6) == 0 &&
            strcmp(seen[i].kernel, "tiles_round") != 0) {
            assert_in_range(seen[i].tiles.stages, 2, TILES_STAGES);
            assert_true(seen[i].shared > 0);
            tiles++;
        }
    hw_buffer_free(op.a.buffer);
    hw_buffer_free(op.c.buffer);
    return tiles;
}

/* With 163 KB, some numbers of rows do not fit. With 33 to 64 rows, the second launch may need more
 * than the first. */
static void every_launch_of_tiles_has_rings(void **state)
{
    enum { MANY = 132 * TILES_MOST * TILES_ROWS, SIZES = 7 };
    static const int64_t rows[SIZES] = { 8, 16, 32, 33, 41, 48, 57 };
    static const struct {
        int32_t dtype;
        int tiles[SIZES];
    } cases[] = {
        { HW_Q8_0, { 0 } },
        { HW_Q6_K, { 0 } },
        { HW_Q5_1, { 0, 0, 1, 0, 0, 0, 2 } },
        { HW_Q4_1, { 1, 0, 1, 2, 0, 0, 2 } },
        { HW_Q5_0, { 1, 0, 1, 2, 0, 0, 2 } },
        { HW_Q5_K, { 1, 0, 1, 2, 0, 0, 2 } },
        { HW_Q4_0, { 1, 1, 1, 2, 2, 2, 2 } },
        { HW_Q4_K, { 1, 1, 1, 2, 2, 2, 2 } },
    };
    struct hw_queue *small, *large;
    const struct hw_queue_options tiles = { .size = sizeof tiles,
                                            .kernel = "matmul=matmul_tiles_int8" };
    open_rounding(state, NULL);
    ok(hw_queue_open(ampere, NULL, &small));
    ok(hw_queue_open(hopper, &tiles, &large));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct hw_tensor most = tensor(hopper, 0, cases[i].dtype, MANY, 256);
        const struct hw_tensor less = tensor(ampere, 0, cases[i].dtype, MANY, 256);
        for (int k = 0; k < SIZES; k++) {
            assert_int_equal(tiles_of(hopper, large, &most, rows[k]), k < 3 ? 1 : 2);
            assert_int_equal(tiles_of(ampere, small, &less, rows[k]), cases[i].tiles[k]);
        }
    }
    hw_queue_close(small);
    hw_queue_close(large);
}

/* ---- blocks ---- */

static int64_t pieces_of(int64_t of, int64_t size)
{
    return (of + size - 1) / size;
}

static uint64_t bytes_of(int32_t dtype, int64_t k)
{
    return (uint64_t)(k / hw_dtype_block(dtype) * hw_dtype_bytes(dtype));
}

/* Checks the division of a product of `rows` rows, and its shared memory. */
static void divides(int32_t dtype, int64_t rows, int64_t n)
{
    const int64_t k = dtype == HW_Q6_K ? 2 * COLS
                                       : COLS; /* rows of multiples of 16 bytes */
    const struct hw_tensor b = tensor(hopper, HW_BUFFER_READ_ONLY, dtype, n, k);
    const struct hw_matmul op = { .a = tensor(hopper, 0, HW_BF16, rows, k),
                                  .b = b,
                                  .c = tensor(hopper, 0, HW_F16, rows, n),
                                  .transpose_b = 1 };
    count = 0;
    ok(hw_matmul(queue, &op));
    const struct blocks_args *args = &seen[1].blocks;
    const int tokens = atoi(strrchr(seen[1].kernel, '_') + 1);
    const int64_t cells = pieces_of(n, BLOCKS_TILE) * args->cells;
    launched("convert_round_mixed blocks_");
    assert_true(seen[0].early && seen[1].early && args->constant);
    assert_int_equal(args->c, address_of(&op.c));
    assert_int_equal(args->b.opaque[FAKE_MAP_ADDRESS], address_of(&b));
    assert_int_equal(args->b.opaque[FAKE_MAP_ROW_BYTES], bytes_of(dtype, k));
    assert_int_equal(args->across, pieces_of(rows, tokens));
    assert_in_range(args->parts, 1, cells);
    assert_int_equal(seen[1].groups[0], BLOCKS_PAIR * args->across * args->parts);
    assert_true(seen[1].groups[0] <= 132 && seen[1].shared <= BLOCKS_SHARED);
    assert_true(BLOCKS_PAIR * args->a_rows <= tokens && args->a_rows % 8 == 0);
    assert_true(BLOCKS_PAIR * args->a_rows >= (rows < tokens ? rows : tokens));
    hw_buffer_free(op.a.buffer);
    hw_buffer_free(b.buffer);
    hw_buffer_free(op.c.buffer);
}

static void blocks_are_divided_among_all_groups(void **state)
{
    static const int32_t dtypes[] = { HW_Q8_0, HW_Q4_0, HW_Q4_1, HW_Q5_0,
                                      HW_Q5_1, HW_Q4_K, HW_Q5_K, HW_Q6_K };
    static const int64_t rows[] = { 17, 33, 64, 65, 128, 129, 257, 1000, 2048 };
    static const int64_t ns[] = { 2, 256, 1000, 4096, 28672 };
    open_rounding(state, NULL);
    for (size_t type = 0; type < sizeof dtypes / sizeof *dtypes; type++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t j = 0; j < sizeof ns / sizeof *ns; j++)
                divides(dtypes[type], rows[i], ns[j]);
}

/* The copy engine rounds f32 to TF32 if the maps of a and b request it; the matrix units would
 * truncate. c stays f32. */
static void copies_round_f32_to_tf32(void **state)
{
    static const struct {
        int32_t b;
        int operands;
    } cases[] = { { HW_F32, TENSOR_TF32 },
                  { HW_F16, TENSOR_F16 },
                  { HW_BF16, TENSOR_BF16 } };
    open_rounding(state, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct hw_matmul op = product(cases[i].b, 65);
        count = 0;
        ok(hw_matmul(queue, &op));
        const struct wgmma_args *args = &seen[count - 1].wgmma;
        assert_int_equal(args->a.opaque[FAKE_MAP_TYPE], cases[i].operands);
        assert_int_equal(args->b.opaque[FAKE_MAP_TYPE], cases[i].operands);
        assert_int_equal(args->c.opaque[FAKE_MAP_TYPE], TENSOR_F32);
    }
}

/* Products that the copy engine cannot read are exact, at any precision. */
static void f32_that_is_not_aligned_stays_f32(void **state)
{
    open_rounding(state, NULL);
    struct hw_matmul op = product(HW_F32, 65);
    op.a.offset = 4;
    op.a.extent[1] = op.b.extent[1] = COLS - 4;
    ok(hw_matmul(queue, &op));
    launched("matmul");
}

/* Blocks that the kernel cannot read are converted. */
static void blocks_need_whole_cells_and_aligned_rows(void **state)
{
    enum { TOKENS = 128 };
    open_rounding(state, NULL);
    struct hw_matmul op = product(HW_Q8_0, TOKENS);
    op.a.extent[1] = op.b.extent[1] = COLS - 32;
    ok(hw_matmul(queue, &op));
    launched("convert_round_f16 convert_f16 wgmma_f16_");
    op = product(HW_Q8_0, TOKENS);
    op.b.offset = 34;
    op.b.extent[0] -= 4;
    op.c.extent[1] -= 4;
    ok(hw_matmul(queue, &op));
    launched("convert_round_f16 convert_f16 wgmma_f16_");
    op = product(HW_Q6_K, TOKENS); /* rows of 4 * 210 bytes */
    ok(hw_matmul(queue, &op));
    launched("convert_round_f16 convert_f16 wgmma_f16_");
}

/* Columns of a 2048-wide matrix: rows of q6_K consist of whole words if their number of blocks is
 * even. Others are converted. */
static void blocks_of_a_view_are_whole_words(void **state)
{
    enum { TOKENS = 128, WIDE = 2048 };
    open_rounding(state, NULL);
    for (int64_t k = 256; k <= WIDE; k += 256) {
        const struct hw_tensor a = tensor(hopper, 0, HW_F32, TOKENS, k);
        struct hw_tensor b = tensor(hopper, HW_BUFFER_READ_ONLY, HW_Q6_K, ROWS, WIDE);
        const struct hw_tensor c = tensor(hopper, 0, HW_F32, TOKENS, ROWS);
        b.extent[1] = k;
        ok(hw_matmul(queue,
                     &(struct hw_matmul){ .a = a, .b = b, .c = c, .transpose_b = 1 }));
        if (k % 512 == 0)
            assert_int_equal(seen[1].blocks.b.opaque[FAKE_MAP_ROW_BYTES],
                             bytes_of(HW_Q6_K, k));
        launched(k % 512 ? "convert_round_f16 convert_f16 wgmma_f16_"
                         : "convert_round_mixed blocks_q6_K_");
    }
}

/* The copy engine takes no stride of 0, neither for a single row nor for a repeated one. */
static void blocks_of_one_row_are_left_to_others(void **state)
{
    enum { TOKENS = 128 };
    open_rounding(state, NULL);
    for (int64_t n = 1; n <= ROWS; n += ROWS - 1) {
        struct hw_matmul op = product(HW_Q8_0, TOKENS);
        op.b.extent[0] = op.c.extent[1] = n;
        op.b.stride[0] = 0;
        ok(hw_matmul(queue, &op));
        launched("convert_round_f16 convert_f16 wgmma_f16_");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(products_of_many_rows),
        TEST(products_of_batches),
        TEST(precision_type_and_rows_choose_the_kernel),
        TEST(a_becomes_the_type_of_the_products),
        TEST(paired_blocks_are_even_in_number),
        TEST(rows_are_where_they_should_be),
        TEST(tiles_take_rows_in_turn),
        TEST(tiles_of_many_rows_are_several_launches),
        TEST(tiles_need_whole_cells_and_room),
        TEST(every_launch_of_tiles_has_rings),
        TEST(blocks_are_divided_among_all_groups),
        TEST(copies_round_f32_to_tf32),
        TEST(f32_that_is_not_aligned_stays_f32),
        TEST(blocks_need_whole_cells_and_aligned_rows),
        TEST(blocks_of_a_view_are_whole_words),
        TEST(blocks_of_one_row_are_left_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
