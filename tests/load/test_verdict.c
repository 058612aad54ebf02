/* SPDX-License-Identifier: MIT */
/* test_verdict.c - what a probe found, as bytes and back. With arguments, writes the verdicts
 * to files instead: the corpus of tests/fuzz. */
#include "load/verdict.h"
#include "probe/verdict_write.h"

#include "open/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct hw_device_info info_named(const char *name)
{
    struct hw_device_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    info.kind = HW_DEVICE_DISCRETE;
    snprintf(info.name, sizeof info.name, "%s", name);
    strcpy(info.driver, "580.1");
    info.memory_total = UINT64_C(8) << 30;
    info.memory_free = UINT64_C(7) << 30;
    info.pci_domain = 0;
    info.pci_bus = 0x3b;
    info.has_uuid = 1;
    memset(info.uuid, 0xee, sizeof info.uuid);
    info.buffer_alignment = 512;
    return info;
}

static char no_driver[] = "libmine.so.1 was not found", install[] = "Install it",
            version[] = "1.2", wrong[] = "relative error 0.5 (at most 1e-6)",
            busy[] = "the device is used by another process", old[] = "it is too old",
            third[] = "third";

static struct left_out left_out[LEFT_OUT_MAX + 1] = { { third, old }, { old, third } };
static const struct verdict stopped = { .reason = REASON_NO_DRIVER,
                                        .message = no_driver,
                                        .remedy = install,
                                        .microseconds = 9,
                                        .left_out_count = 2,
                                        .left_out = left_out };

static struct verdict_device devices[2];
static struct withdrawn withdrawn[] = {
    { .device = 1, .op = HW_OP_SILU, .slow = 1, .why = wrong },
    { .device = 0, .op = HW_OP_MATMUL, .dtype = { HW_F32, HW_Q4_0 }, .why = wrong },
};
static struct op_form forms[] = {
    { .op = HW_OP_SILU, .dtype = { HW_F32, HW_F32 } },
    { .op = HW_OP_MATMUL, .dtype = { HW_F32, HW_Q4_0, HW_NONE, HW_F32 } },
    { .op = HW_OP_SILU, .dtype = { HW_BF16, HW_BF16 } },
};
enum { FORMS = sizeof forms / sizeof *forms };
static uint8_t left[] = { 0, 4, 1, 2, 0, 0 }; /* of two devices */
static const struct verdict good = { .version = version,
                                     .ops = 1u << HW_OP_MATMUL | 1u << HW_OP_SILU,
                                     .tested = 55,
                                     .untested = 7,
                                     .microseconds = UINT64_MAX,
                                     .device_count = 2,
                                     .devices = devices,
                                     .withdrawn_count = 2,
                                     .form_count = FORMS,
                                     .left_out_count = 1,
                                     .withdrawn = withdrawn,
                                     .forms = forms,
                                     .left = left,
                                     .left_out = left_out };

static void make_devices(void)
{
    devices[0] = (struct verdict_device){ info_named("first"), NULL };
    devices[1] = (struct verdict_device){ info_named("second"), busy };
}

/* ---- there and back ---- */

static void same_text(const char *a, const char *b)
{
    if (!a || !b)
        assert_ptr_equal(a, b);
    else
        assert_string_equal(a, b);
}

static void same_verdict(const struct verdict *a, const struct verdict *b)
{
    assert_int_equal(a->reason, b->reason);
    same_text(a->message, b->message);
    same_text(a->remedy, b->remedy);
    same_text(a->version, b->version);
    assert_int_equal(a->ops, b->ops);
    assert_int_equal(a->tested, b->tested);
    assert_int_equal(a->untested, b->untested);
    assert_true(a->microseconds == b->microseconds);
    assert_int_equal(a->device_count, b->device_count);
    for (uint32_t i = 0; i < a->device_count; i++) {
        assert_memory_equal(&a->devices[i].info, &b->devices[i].info,
                            sizeof a->devices[i].info);
        same_text(a->devices[i].fault, b->devices[i].fault);
    }
    assert_int_equal(a->withdrawn_count, b->withdrawn_count);
    for (uint32_t i = 0; i < a->withdrawn_count; i++) {
        const struct withdrawn *x = &a->withdrawn[i], *y = &b->withdrawn[i];
        assert_int_equal(x->device, y->device);
        assert_int_equal(x->op, y->op);
        assert_memory_equal(x->dtype, y->dtype, sizeof x->dtype);
        same_text(x->why, y->why);
    }
    assert_int_equal(a->form_count, b->form_count);
    if (a->form_count) {
        assert_memory_equal(a->forms, b->forms, a->form_count * sizeof *a->forms);
        assert_memory_equal(a->left, b->left, (size_t)a->device_count * a->form_count);
    }
    assert_int_equal(a->left_out_count, b->left_out_count);
    for (uint32_t i = 0; i < a->left_out_count; i++) {
        same_text(a->left_out[i].name, b->left_out[i].name);
        same_text(a->left_out[i].why, b->left_out[i].why);
    }
}

static void there_and_back(void **state)
{
    const struct verdict *const verdicts[] = { &good, &stopped };
    (void)state;
    for (int i = 0; i < 2; i++) {
        unsigned char *bytes;
        size_t size;
        struct verdict back;
        assert_true(verdict_encode(verdicts[i], &bytes, &size));
        assert_true(verdict_decode(&back, bytes, size));
        same_verdict(verdicts[i], &back);
        verdict_free(&back);
        free(bytes);
    }
}

/* ---- refused ---- */

static bool refused(const unsigned char *bytes, size_t size)
{
    struct verdict verdict;
    /* A copy of exactly its size, so that a sanitizer sees a byte too far. */
    unsigned char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    const bool accepted = verdict_decode(&verdict, exact, size);
    if (accepted)
        verdict_free(&verdict);
    free(exact);
    return !accepted;
}

/* Every length but the whole one, and every byte changed; the former also with a frame. */
static void cuts_and_changes(void **state)
{
    unsigned char *bytes;
    size_t size;
    (void)state;
    assert_true(verdict_encode(&good, &bytes, &size));
    for (size_t i = 0; i < size; i++) {
        assert_true(refused(bytes, i));
        bytes[i] ^= 0x10;
        assert_true(refused(bytes, size));
        bytes[i] ^= 0x10;
    }
    for (size_t i = VERDICT_FRAME; i < size; i++) {
        unsigned char *cut = malloc(i);
        assert_non_null(cut);
        memcpy(cut, bytes, i);
        verdict_seal(cut, i);
        assert_true(refused(cut, i));
        free(cut);
    }
    assert_false(refused(bytes, size));
    free(bytes);
}

/* Verdicts that the writer lets pass, because only a broken probe can send them. */
static void nonsense(void **state)
{
    struct verdict_device nameless = { info_named(""), NULL };
    struct withdrawn nowhere = { .device = 2, .op = 0, .why = wrong },
                     unknown_op = { .op = HW_OP_COUNT, .why = wrong },
                     unknown_dtype = { .dtype = { HW_DTYPE_END }, .why = wrong },
                     silent = { 0 };
    struct left_out nobody = { NULL, old }, groundless = { old, NULL };
    struct op_form no_op = { .op = HW_OP_COUNT }, no_dtype = { .dtype = { 0, -1 } };
    struct verdict wrongs[] = { good, good, good,    good,    good, good, good,
                                good, good, stopped, stopped, good, good };
    (void)state;
    wrongs[0].device_count = 0;
    wrongs[1].devices = &nameless, wrongs[1].device_count = 1;
    wrongs[2].withdrawn = &nowhere, wrongs[2].withdrawn_count = 1;
    wrongs[3].withdrawn = &unknown_op, wrongs[3].withdrawn_count = 1;
    wrongs[4].withdrawn = &unknown_dtype, wrongs[4].withdrawn_count = 1;
    wrongs[5].withdrawn = &silent, wrongs[5].withdrawn_count = 1;
    wrongs[6].version = NULL;
    wrongs[7].left_out = &nobody;
    wrongs[8].untested = 6; /* seven cases of forms */
    wrongs[9].ops = UINT64_C(1) << HW_OP_COUNT;
    wrongs[10].left_out = &groundless, wrongs[10].left_out_count = 1;
    wrongs[11].forms = &no_op, wrongs[11].form_count = 1;
    wrongs[12].forms = &no_dtype, wrongs[12].form_count = 1;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        unsigned char *bytes;
        size_t size;
        assert_true(verdict_encode(&wrongs[i], &bytes, &size));
        if (!refused(bytes, size))
            fail_msg("accepted: %zu", i);
        free(bytes);
    }
}

/* ---- limits ---- */

static void limits(void **state)
{
    static struct withdrawn many[VERDICT_WITHDRAWN + 1];
    static struct verdict_device most[MAX_DEVICES + 1];
    static char text[VERDICT_TEXT + 1];
    static struct op_form all[VERDICT_FORMS + 1];
    static uint8_t none[(MAX_DEVICES + 1) * (VERDICT_FORMS + 1)];
    struct verdict verdict = { .version = version,
                               .device_count = MAX_DEVICES,
                               .devices = most,
                               .withdrawn_count = VERDICT_WITHDRAWN,
                               .form_count = VERDICT_FORMS,
                               .withdrawn = many,
                               .forms = all,
                               .left = none },
                   back;
    unsigned char *bytes;
    size_t size;
    (void)state;
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i <= MAX_DEVICES; i++)
        most[i] = (struct verdict_device){ info_named("one of many"), NULL };
    for (int i = 0; i <= VERDICT_WITHDRAWN; i++)
        many[i].why = version;
    many[0].why = text;
    assert_true(verdict_encode(&verdict, &bytes, &size));
    assert_true(verdict_decode(&back, bytes, size));
    assert_int_equal(back.device_count, MAX_DEVICES);
    assert_int_equal(strlen(back.withdrawn[0].why), VERDICT_TEXT - 1);
    verdict_free(&back);
    free(bytes);
    verdict.withdrawn_count++;
    assert_false(verdict_encode(&verdict, &bytes, &size));
    verdict.withdrawn_count = 0;
    verdict.form_count++;
    assert_false(verdict_encode(&verdict, &bytes, &size));
    verdict.form_count = 0;
    verdict.device_count++;
    assert_false(verdict_encode(&verdict, &bytes, &size));
    verdict.device_count = 1;
    verdict.left_out = left_out;
    verdict.left_out_count = LEFT_OUT_MAX + 1;
    assert_false(verdict_encode(&verdict, &bytes, &size));
    verdict.left_out_count = 0;
    verdict.withdrawn_count = VERDICT_WITHDRAWN;
    for (int i = 0; i < VERDICT_WITHDRAWN; i++)
        many[i].why = text;
    assert_false(verdict_encode(&verdict, &bytes, &size)); /* too large in all */
}

/* ---- more of it ---- */

static void add_to_it(struct verdict *verdict, const struct op_form *form,
                      const struct verdict *found)
{
    if (!verdict_add(verdict, 0, form, found))
        fail_msg("nothing is added");
}

/* It includes the findings of a later test, and each failure once. */
static void later_findings(void **state)
{
    struct withdrawn bad = { .op = HW_OP_MATMUL,
                             .dtype = { HW_F32, HW_F32 },
                             .why = wrong };
    const struct verdict right = { .tested = 6, .microseconds = 5 },
                         failed = { .tested = 1, .withdrawn_count = 1, .withdrawn = &bad },
                         cramped = { .tested = 1, .untested = 1 }; /* for lack of memory */
    struct verdict verdict;
    unsigned char *bytes;
    size_t size;
    (void)state;
    assert_true(verdict_encode(&good, &bytes, &size));
    assert_true(verdict_decode(&verdict, bytes, size));
    free(bytes);
    add_to_it(&verdict, &forms[1], &right);
    assert_int_equal(verdict.untested, good.untested - 4);
    assert_int_equal(verdict.tested, good.tested + 4); /* two of these were not left out */
    assert_int_equal(verdict.left[1], 0);
    assert_int_equal(verdict.left[2], 1); /* another form, ... */
    assert_int_equal(verdict.left[3], 2); /* and another device */
    assert_true(verdict.microseconds == good.microseconds + 5);
    for (int i = 0; i < 2; i++)
        add_to_it(&verdict, &forms[2], &failed);
    assert_int_equal(verdict.withdrawn_count, good.withdrawn_count + 1);
    assert_int_equal(verdict.untested, good.untested - 5);
    if (!verdict_add(&verdict, 1, &forms[0], &cramped))
        fail_msg("nothing is added");
    assert_int_equal(verdict.untested, good.untested - 6);
    assert_int_equal(verdict.left[3], 1);
    assert_false(verdict_add(&verdict, 2, &forms[0], &right)); /* there is no such device */
    assert_true(verdict_encode(&verdict, &bytes, &size));
    assert_false(refused(bytes, size));
    free(bytes);
    verdict_free(&verdict);
}

/* Only forms that failed, or were left out, are left out again. */
static void earlier_findings(void **state)
{
    uint8_t before_left[] = { 0, 0, 1, 0, 0, 0 }, now_left[] = { 3, 4, 1, 2, 0, 1 };
    struct op_form now_forms[] = { forms[0], forms[1], forms[2] };
    struct withdrawn bad = { .device = 1, .op = HW_OP_SILU, .why = wrong };
    struct verdict before = good, now = good;
    (void)state;
    before.left = before_left;
    before.withdrawn_count = 1;
    before.withdrawn = &bad;
    now_forms[0].dtype[0] = HW_F16; /* a form that it does not have */
    now.forms = now_forms;
    now.left = now_left;
    now.untested = 11;
    verdict_inherit(&now, &before, 0);
    verdict_inherit(&now, &before, 1);
    assert_int_equal(now_left[0], 3);
    assert_int_equal(now_left[1], 0);
    assert_int_equal(now_left[2], 1);
    assert_int_equal(now_left[3], 2);
    assert_int_equal(now_left[5], 1);
    assert_int_equal(now.untested, 7);
    assert_int_equal(now.tested, good.tested + 4);
}

/* A message is one line and controls no terminal. */
static void one_line(void **state)
{
    char text[] = "a\nb\x1b[31m\x7f";
    struct verdict verdict = { .reason = REASON_OPEN_FAILED, .message = text }, back;
    unsigned char *bytes;
    size_t size;
    (void)state;
    assert_true(verdict_encode(&verdict, &bytes, &size));
    assert_true(verdict_decode(&back, bytes, size));
    assert_string_equal(back.message, "a b [31m ");
    verdict_free(&back);
    free(bytes);
}

static int write_corpus(char **paths)
{
    const struct verdict *const verdicts[] = { &good, &stopped };
    for (int i = 0; i < 2; i++) {
        unsigned char *bytes;
        size_t size;
        FILE *file = fopen(paths[i], "wb");
        if (!file || !verdict_encode(verdicts[i], &bytes, &size) ||
            fwrite(bytes, 1, size, file) != size || fclose(file))
            return 1;
        free(bytes);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),   cmocka_unit_test(cuts_and_changes),
        cmocka_unit_test(nonsense),         cmocka_unit_test(limits),
        cmocka_unit_test(one_line),         cmocka_unit_test(later_findings),
        cmocka_unit_test(earlier_findings),
    };
    make_devices();
    return argc == 3 ? write_corpus(argv + 1) : cmocka_run_group_tests(tests, NULL, NULL);
}
