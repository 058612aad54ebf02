/* SPDX-License-Identifier: MIT */
/* test_nomem.c - each public function while memory runs out: its first allocation fails, then its
 * second, and so on until none fails. The function returns HW_NO_MEMORY with a message, or works
 * nevertheless. It never crashes, hangs or leaks (LeakSanitizer checks leaks), and a repeated call
 * works once memory is available. A public function without a trial is an error. HW_TEST_NOMEM=1
 * runs long trials in full. */
#include "nomem.h"
#include "shortage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST 20000 /* allocations of one call */

void ok(enum hw_status status)
{
    if (status)
        fail_msg("%s: %s", hw_status_name((int32_t)status), hw_message());
}

/* Whether an allocation failed during the call. */
static bool fails_at(const struct trial *trial, unsigned n, bool alone, unsigned *errors)
{
    if (!alone)
        scene_open();
    if (trial->prepare)
        trial->prepare();
    shortage_begin(n);
    const enum hw_status status = trial->call();
    const bool failed = shortage_end();
    if (status && (!failed || status != HW_NO_MEMORY || !*hw_message()))
        fail_msg("%s, allocation %u%s: %s: %s", trial->function, n,
                 failed ? "" : " of fewer", hw_status_name((int32_t)status), hw_message());
    if (status) {
        ok(trial->call());
        ++*errors;
    }
    if (!alone)
        scene_close();
    return failed;
}

/* Emulators and sanitizers test fewer allocations. */
static unsigned stride_of(const struct trial *trial)
{
    if (getenv("HW_TEST_NOMEM") || !trial->stride)
        return 1;
    return getenv("HW_TEST_QUICK") ? 5 * trial->stride : trial->stride;
}

static void try_each(const struct trial *trial, bool alone)
{
    const unsigned stride = stride_of(trial);
    unsigned n = 1, errors = 0;
    while (fails_at(trial, n, alone, &errors))
        assert_true((n += stride) < MOST);
    print_message("# %s: of %u allocations, one of %u failed: %u errors\n", trial->function,
                  n - stride, stride, errors);
}

static void try_all(const struct trial *trials, bool alone)
{
    for (; trials->function; trials++)
        try_each(trials, alone);
}

static void opening_a_context(void **state)
{
    (void)state;
    try_all(opening, true);
}

static void making_objects(void **state)
{
    (void)state;
    try_all(objects, false);
}

static void asking(void **state)
{
    (void)state;
    try_all(answers, false);
}

/* ---- that none is left out ---- */

static bool has_trial(const struct trial *trials, const char *name, size_t length)
{
    for (; trials->function; trials++)
        if (strlen(trials->function) == length && !memcmp(trials->function, name, length))
            return true;
    return false;
}

static unsigned check_header(const char *path)
{
    char line[512];
    unsigned count = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be read", path);
    while (fgets(line, sizeof line, file)) {
        const char *name = strncmp(line, "HW_EXPORT ", 10) ? NULL : strchr(line, '(');
        if (!name)
            continue;
        const char *end = name;
        while (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z') ||
               (name[-1] >= '0' && name[-1] <= '9'))
            name--;
        const size_t length = (size_t)(end - name);
        count++;
        if (!has_trial(opening, name, length) && !has_trial(objects, name, length) &&
            !has_trial(answers, name, length))
            fail_msg("%.*s of %s has no trial: add one to tests/call/nomem_*.c",
                     (int)length, name, path);
    }
    fclose(file);
    return count;
}

static void each_public_function_has_a_trial(void **state)
{
    (void)state;
    assert_true(check_header(INCLUDE "/hw/hw.h") > 40);
    assert_true(check_header(INCLUDE "/hw/interop.h") > 10);
    assert_true(check_header(INCLUDE "/hw/report.h") > 10);
    assert_int_equal(check_header(INCLUDE "/hw/ops.h"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_public_function_has_a_trial),
        cmocka_unit_test(opening_a_context),
        cmocka_unit_test(making_objects),
        cmocka_unit_test(asking),
    };
    if (!shortage_possible()) {
        print_message("not applicable: this C library's allocator, or "
                      "ThreadSanitizer's, cannot be replaced\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
