/* SPDX-License-Identifier: MIT */
/* test_avx_vnni.c - the rows for AVX-VNNI on a processor without it: their compiled code runs here,
 * except for the dot products, which avx_vnni.c emulates. The emulation is tested first, then the
 * rows. */
#define _GNU_SOURCE
#include "avx_vnni.h"

#include <cpuid.h>
#include <hw/hw.h>
#include <hw/report.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verify.h>

#include <cmocka.h>

/* ---- the instructions ---- */

static struct {
    _Alignas(32) uint32_t sum[8], a[8], b[8];
} trial __asm__("avx_vnni_trial");

enum { BYTES, BYTES_SATURATED, WORDS, WORDS_SATURATED, KINDS };

/* Executes one instruction; r12 and r13 have `base` and `index`, registers 2 and 15 also have b. */
#define RUN(name, w, sum_at, a_at, operand, base, index)                                   \
    __asm__ volatile("mov %1, %%r12\n\t"                                                   \
                     "mov %2, %%r13\n\t"                                                   \
                     "vmovdqu (%0), %%ymm" sum_at "\n\t"                                   \
                     "vmovdqu 32(%0), %%ymm" a_at "\n\t"                                   \
                     "vmovdqu 64(%0), %%ymm2\n\t"                                          \
                     "vmovdqa %%ymm2, %%ymm15\n\t" name " " operand ", %%" w "mm" a_at     \
                     ", %%" w "mm" sum_at "\n\t"                                           \
                     "vmovdqu %%ymm" sum_at ", (%0)"                                       \
                     :                                                                     \
                     : "r"(&trial), "r"(base), "r"((uintptr_t)(index))                     \
                     : "memory", "r12", "r13", "xmm0", "xmm1", "xmm2", "xmm9", "xmm12",    \
                       "xmm15")

/* X(w, number, register of the sum, of a, operand b, base, index): every form of an address. */
#define FORMS(X, w)                                                                        \
    X(w, 0, "0", "1", "%%" w "mm2", trial.b, 0)                                            \
    X(w, 1, "9", "12", "%%" w "mm15", trial.b, 0)                                          \
    X(w, 2, "0", "12", "64(%0)", trial.b, 0)                                               \
    X(w, 3, "9", "1", "64+avx_vnni_trial(%%rip)", trial.b, 0)                              \
    X(w, 4, "0", "1", "(%%r12)", trial.b, 0)                                               \
    X(w, 5, "0", "1", "(%%r13)", trial.b, trial.b)                                         \
    X(w, 6, "9", "12", "(%%r12,%%r13,2)", trial.sum, 32)                                   \
    X(w, 7, "9", "12", "-64(%%r12,%%r13,8)", trial.sum, 16)                                \
    X(w, 8, "0", "1", "4096(%%r12)", (uintptr_t)trial.b - 4096, 0)                         \
    X(w, 9, "0", "1", "-4096(%%r12,%%r13)", trial.b, 4096)                                 \
    X(w, 10, "0", "1", "64(,%%r13,4)", trial.b, (uintptr_t)trial.sum / 4)
enum { COUNT_FORMS = 11 };

static void run(int kind, bool wide, int form)
{
#define FORM(w, number, ...)                                                               \
    case number *KINDS + BYTES:                                                            \
        RUN("%{vex%} vpdpbusd", w, __VA_ARGS__);                                           \
        break;                                                                             \
    case number *KINDS + BYTES_SATURATED:                                                  \
        RUN("%{vex%} vpdpbusds", w, __VA_ARGS__);                                          \
        break;                                                                             \
    case number *KINDS + WORDS:                                                            \
        RUN("%{vex%} vpdpwssd", w, __VA_ARGS__);                                           \
        break;                                                                             \
    case number *KINDS + WORDS_SATURATED:                                                  \
        RUN("%{vex%} vpdpwssds", w, __VA_ARGS__);                                          \
        break;
    if (wide)
        switch (form * KINDS + kind) {
            FORMS(FORM, "y")
        }
    else
        switch (form * KINDS + kind) {
            FORMS(FORM, "x")
        }
}

/* The AVX-512 VNNI version, which a processor without AVX-VNNI may have. */
static void run_evex(int kind)
{
    switch (kind) {
    case BYTES:
        RUN("%{evex%} vpdpbusd", "y", "0", "1", "%%ymm2", trial.b, 0);
        break;
    case BYTES_SATURATED:
        RUN("%{evex%} vpdpbusds", "y", "0", "1", "%%ymm2", trial.b, 0);
        break;
    case WORDS:
        RUN("%{evex%} vpdpwssd", "y", "0", "1", "%%ymm2", trial.b, 0);
        break;
    case WORDS_SATURATED:
        RUN("%{evex%} vpdpwssds", "y", "0", "1", "%%ymm2", trial.b, 0);
        break;
    }
}

/* ---- expected results ---- */

static uint32_t seed = 1;

static uint32_t random_word(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 16;
}

/* Every fourth sum is large enough to saturate. */
static void random_trial(void)
{
    for (int i = 0; i < 8; i++) {
        trial.sum[i] = random_word() << 16 | random_word();
        trial.a[i] = random_word() << 16 | random_word();
        trial.b[i] = random_word() << 16 | random_word();
        if (i % 4 == 0)
            trial.sum[i] = random_word() % 2 ? 0x7fffffff - random_word() % 9
                                             : 0x80000000 + random_word() % 9;
    }
}

static int byte_of(uint32_t word, int i)
{
    return (int)(word >> 8 * i & 255);
}

static int signed_byte_of(uint32_t word, int i)
{
    return byte_of(word, i) < 128 ? byte_of(word, i) : byte_of(word, i) - 256;
}

static int signed_half_of(uint32_t word, int i)
{
    return byte_of(word, 2 * i) + 256 * signed_byte_of(word, 2 * i + 1);
}

static uint32_t dot(int kind, uint32_t sum, uint32_t a, uint32_t b)
{
    long long total = (int32_t)sum;
    if (kind <= BYTES_SATURATED)
        for (int i = 0; i < 4; i++)
            total += byte_of(a, i) * signed_byte_of(b, i);
    else
        for (int i = 0; i < 2; i++)
            total += (long long)signed_half_of(a, i) * signed_half_of(b, i);
    if (kind == BYTES_SATURATED || kind == WORDS_SATURATED)
        total = total > INT32_MAX ? INT32_MAX : total < INT32_MIN ? INT32_MIN : total;
    return (uint32_t)total;
}

static void expect(int kind, bool wide, uint32_t result[8])
{
    memset(result, 0, 8 * sizeof *result);
    for (int i = 0; i < (wide ? 8 : 4); i++)
        result[i] = dot(kind, trial.sum[i], trial.a[i], trial.b[i]);
}

/* ---- the emulation ---- */

static void instructions_are_right(void **state)
{
    enum { TURNS = 100 };
    uint32_t expected[8];
    (void)state;
    avx_vnni_begin();
    for (int i = 0; i < TURNS * KINDS * 2 * COUNT_FORMS; i++) {
        const int kind = i % KINDS;
        const bool wide = i / KINDS % 2;
        const int form = i / KINDS / 2 % COUNT_FORMS;
        random_trial();
        expect(kind, wide, expected);
        const unsigned long before = avx_vnni_count;
        run(kind, wide, form);
        assert_int_equal(avx_vnni_count, before + 1);
        for (int lane = 0; lane < 8; lane++)
            if (trial.sum[lane] != expected[lane])
                fail_msg("kind %d, %d bits, form %d, lane %d: %x, not %x", kind,
                         wide ? 256 : 128, form, lane, trial.sum[lane], expected[lane]);
    }
}

static bool lacks_avx512_vnni(void)
{
    const bool lacks = !__builtin_cpu_supports("avx512vnni") ||
                       !__builtin_cpu_supports("avx512vl");
    if (lacks)
        print_message("# not applicable: the processor has no AVX-512 VNNI\n");
    return lacks;
}

/* Compares the expectation above with a real processor. */
static void expectations_are_right(void **state)
{
    uint32_t expected[8];
    (void)state;
    if (lacks_avx512_vnni())
        return;
    for (int i = 0; i < 1000 * KINDS; i++) {
        random_trial();
        expect(i % KINDS, true, expected);
        run_evex(i % KINDS);
        assert_memory_equal(trial.sum, expected, sizeof expected);
    }
}

/* Bits 256 to 511 of the sum's register are zeroed. */
static void upper_half_is_zeroed(void **state)
{
    uint32_t upper[8];
    (void)state;
    if (!__builtin_cpu_supports("avx512f")) {
        print_message("# not applicable: the processor has no AVX-512\n");
        return;
    }
    avx_vnni_begin();
    __asm__ volatile("vpternlogd $255, %%zmm1, %%zmm1, %%zmm1\n\t"
                     "%{vex%} vpdpbusd %%ymm1, %%ymm1, %%ymm1\n\t"
                     "vextracti64x4 $1, %%zmm1, (%0)"
                     :
                     : "r"(upper)
                     : "memory", "xmm1");
    for (int i = 0; i < 8; i++)
        assert_int_equal(upper[i], 0);
}

/* Registers that were never used are zero and missing from the frame. */
static void unused_registers_are_zeros(void **state)
{
    (void)state;
    avx_vnni_begin();
    random_trial();
    __asm__ volatile("vmovdqu (%0), %%ymm0\n\t"
                     "vmovdqu %%ymm0, 32(%0)\n\t"
                     "vzeroall\n\t"
                     "%{vex%} vpdpbusd (%0), %%ymm1, %%ymm0\n\t"
                     "vmovdqu %%ymm0, (%0)"
                     :
                     : "r"(&trial)
                     : "memory", "xmm0", "xmm1");
    for (int i = 0; i < 8; i++)
        assert_int_equal(trial.sum[i], 0);
}

static void other_instructions_end_the_process(void **state)
{
    int status;
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGILL, SIG_DFL);
        avx_vnni_begin();
        __asm__ volatile("ud2");
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGILL);
}

/* ---- the rows ---- */

static struct hw_context *context;
static struct hw_device *device;

static void need(enum hw_status status, const char *what)
{
    if (status)
        fail_msg("%s: %s", what, hw_message());
}

static void open_device(void)
{
    const struct hw_options options = { .size = sizeof options,
                                        .backends = "cpu",
                                        .fallback = "error",
                                        .plugin_path = getenv("CPU_WITH_AVX_VNNI"),
                                        .probe = "inproc",
                                        .threads = "2",
                                        .precision = "int8" };
    assert_non_null(options.plugin_path);
    need(hw_open(&options, &context), options.plugin_path);
    device = hw_device_default(context);
    assert_non_null(device);
}

struct row {
    uint32_t op;
    char name[64];
};

/* Calls fn for each row and returns their number. */
static int each_row(void (*fn)(const struct row *row))
{
    struct hw_kernel_info info = { .size = sizeof info };
    int rows = 0;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (uint32_t i = 0; !hw_device_kernel(device, op, i, &info); i++) {
            struct row row = { .op = op };
            if (!info.eligible || !strstr(info.name, "_avx_vnni"))
                continue;
            snprintf(row.name, sizeof row.name, "%s", info.name);
            fn(&row);
            rows++;
        }
    return rows;
}

/* Selects one of `of` cases, since a signal per dot product makes all of them too slow. */
static bool is_turn(int of)
{
    static int turn;
    return turn++ % of == 0;
}

/* Every seventh case: the registry lists cases by powers of two, so every eighth would be mostly of
 * one kind. */
static bool takes_part(void *user, uint32_t op, const char *test)
{
    (void)user, (void)op, (void)test;
    return is_turn(getenv("HW_TEST_QUICK") ? 7 : 1);
}

/* With a deliberate mistake, the first failure is enough. */
static bool judge(void *user, const struct verify_result *result)
{
    (void)user;
    if (result->verdict != VERIFY_FAILED)
        return true;
    if (!avx_vnni_mistaken)
        print_message("%s by %s: %s\n", result->test, result->kernel, result->text);
    return !avx_vnni_mistaken;
}

static struct verify_counts verify(const struct row *row)
{
    const struct verify_filter filter = {
        .op = hw_op_name(row->op), .kernel = row->name, .quick = true, .precision = "int8"
    };
    const struct verify_calls calls = { .begin = takes_part, .result = judge };
    struct verify_counts counts = { 0 };
    char error[VERIFY_ERROR_TEXT];
    if (verify_test(device, &filter, &calls, &counts, error))
        fail_msg("%s: %s", row->name, error);
    return counts;
}

static void conforms(const struct row *row)
{
    const unsigned long before = avx_vnni_count;
    const struct verify_counts counts = verify(row);
    print_message("%s: %llu cases, %lu instructions\n", row->name,
                  (unsigned long long)verify_reached(&counts), avx_vnni_count - before);
    assert_int_equal(counts.failed, 0);
    assert_true(verify_reached(&counts) > 10);
    assert_true(avx_vnni_count > before);
}

static void fails(const struct row *row)
{
    assert_true(verify(row).failed > 0);
}

static void rows_conform(void **state)
{
    (void)state;
    avx_vnni_begin();
    assert_true(each_row(conforms) > 0);
}

static void mistakes_are_found(void **state)
{
    (void)state;
    avx_vnni_begin();
    avx_vnni_mistaken = true;
    each_row(fails);
    avx_vnni_mistaken = false;
}

/* ---- the same bits ---- */

/* Queues of the AVX-VNNI row and of the AVX-512 VNNI row with the same source text. */
static struct hw_queue *queues[2];
static int compared;

/* With unpacked or packed weights; false if the row does not take the case. */
static bool compute(struct hw_queue *queue, const struct verify_host_call *call,
                    bool packed)
{
    union {
        struct hw_matmul matmul;
        struct hw_matmul_id matmul_id;
    } args;
    memcpy(&args, call->args, hw_op_size(call->op));
    if (packed && hw_tensor_pack(queue, &args.matmul.b, &args.matmul.b))
        return false;
    const enum hw_status status = hw_submit(queue, call->op, &args, hw_op_size(call->op));
    if (packed)
        hw_buffer_free(args.matmul.b.buffer);
    if (status != HW_UNSUPPORTED)
        need(status, "submit");
    return status == HW_OK;
}

static void compare(const struct verify_host_call *call, const char *test, bool packed)
{
    unsigned char *before = malloc(call->bytes), *first = malloc(call->bytes);
    assert_true(before && first);
    memcpy(before, call->memory, call->bytes);
    const bool taken = compute(queues[0], call, packed);
    memcpy(first, call->memory, call->bytes);
    memcpy(call->memory, before, call->bytes);
    if (taken && compute(queues[1], call, packed)) {
        if (memcmp(call->memory, first, call->bytes))
            fail_msg("%s: avx_vnni and vnni256 differ", test);
        compared++;
    }
    memcpy(call->memory, before, call->bytes);
    free(first);
    free(before);
}

static bool compare_case(void *user, const char *test, bool perf)
{
    struct verify_host_call *call;
    char error[VERIFY_ERROR_TEXT];
    (void)user;
    if (perf || !is_turn(getenv("HW_TEST_QUICK") ? 16 : 4))
        return true;
    if (verify_host_call(test, true, &call, error))
        fail_msg("%s: %s", test, error);
    compare(call, test, false);
    if (call->op == HW_OP_MATMUL)
        compare(call, test, true);
    verify_host_call_free(call);
    return true;
}

static void has_the_bits_of_vnni256(const struct row *row)
{
    const struct verify_filter filter = { .op = hw_op_name(row->op), .quick = true };
    char error[VERIFY_ERROR_TEXT], kernel[128];
    const int stem = (int)(strlen(row->name) - strlen("avx_vnni"));
    for (int i = 0; i < 2; i++) {
        const struct hw_queue_options options = { .size = sizeof options,
                                                  .kernel = kernel };
        snprintf(kernel, sizeof kernel, "%s=%.*s%s", hw_op_name(row->op), stem, row->name,
                 i == 0 ? "avx_vnni" : "vnni256");
        need(hw_queue_open(device, &options, &queues[i]), kernel);
    }
    compared = 0;
    need(verify_list(&filter, compare_case, NULL, error), "list");
    print_message("%s: %d cases\n", row->name, compared);
    assert_true(compared > 3);
    hw_queue_close(queues[0]);
    hw_queue_close(queues[1]);
}

static void bits_are_the_same(void **state)
{
    (void)state;
    if (lacks_avx512_vnni())
        return;
    avx_vnni_begin();
    each_row(has_the_bits_of_vnni256);
}

/* ---- where this has a meaning ---- */

static bool has_avx_vnni(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && eax >> 4 & 1;
}

static int begin(void **state)
{
    (void)state;
    open_device();
    return 0;
}

static int end(void **state)
{
    (void)state;
    hw_close(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expectations_are_right),
        cmocka_unit_test(instructions_are_right),
        cmocka_unit_test(upper_half_is_zeroed),
        cmocka_unit_test(unused_registers_are_zeros),
        cmocka_unit_test(other_instructions_end_the_process),
        cmocka_unit_test(rows_conform),
        cmocka_unit_test(mistakes_are_found),
        cmocka_unit_test(bits_are_the_same),
    };
    const char *why = !__builtin_cpu_supports("avx2") ? "it has no AVX2"
                      : has_avx_vnni() ? "it has AVX-VNNI: conformance runs it"
                                       : NULL;
    if (why) {
        printf("1..0 # SKIP not applicable to this processor: %s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, begin, end);
}
