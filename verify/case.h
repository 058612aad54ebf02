/* SPDX-License-Identifier: MIT */
/* case.h - test cases as text. The text of a case reproduces it:
 *
 *     rmsnorm(type=f16,weight=f32,shape=33x1000,data=outlier)
 *
 * Parameters that are left out have their op's defaults. A row of the registry, cases.def, stands
 * for many cases: "type=f32|f16 shape=1x1|33x1000" is every combination of the alternatives. */
#ifndef VERIFY_CASE_H
#define VERIFY_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CASE_TEXT = 320, CASE_PARAMETERS = 28, CASE_KEY = 16, CASE_VALUE = 40 };

/* The kinds of rows in the registry. */
enum case_level {
    CASE_QUICK,     /* a few tests: for emulators and sanitizers */
    CASE_FULL,      /* the rest of the tests */
    CASE_CALL,      /* tests that cost hardly more than the call */
    CASE_ADMISSION, /* small ones, of each op and dtype, for the probe of a plugin */
    CASE_PERF       /* shapes to measure */
};

struct test_case {
    uint32_t op;
    enum case_level level;
    char text[CASE_TEXT];
};

/* The parameters of a case, including defaults. */
struct parameters {
    int count;
    struct {
        char key[CASE_KEY], value[CASE_VALUE];
    } at[CASE_PARAMETERS];
};

/* The value of `key`, or "". Every key that a builder uses is among the defaults of its op.
 */
const char *parameter(const struct parameters *parameters, const char *key);

/* Calls `fn` for each case of the registry that has one of the levels (bits 1 << level), in order,
 * until it returns false. */
void case_each(uint32_t levels, bool (*fn)(void *user, const struct test_case *test),
               void *user);

/* Parses one case. On failure returns false with a message in `error`, which lists the accepted
 * values.
 */
bool case_parse(const char *text, struct test_case *test, char *error, size_t error_size);
/* Gets the parameters of a case. Fails as case_parse() does. */
bool case_parameters(const struct test_case *test, struct parameters *parameters,
                     char *error, size_t error_size);

/* Whether `text` contains `pattern` or, if `pattern` has * or ?, matches it as a whole. A pattern
 * with | is several, of which one is enough. */
bool case_matches(const char *text, const char *pattern);

#endif
