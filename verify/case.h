/* SPDX-License-Identifier: MIT */
/* case.h - test cases as text. A case is its own reproduction line:
 *
 *     rmsnorm(type=f16,weight=f32,shape=33x1000,data=outlier)
 *
 * Parameters that are left out have the defaults of their op. The registry, cases.def,
 * writes many cases as one row, "type=f32|f16 shape=1x1|33x1000": every combination is a
 * case. */
#ifndef VERIFY_CASE_H
#define VERIFY_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CASE_TEXT = 320, CASE_PARAMETERS = 28, CASE_KEY = 16, CASE_VALUE = 40 };

/* Which of the registry's rows a run takes. */
enum case_level {
    CASE_QUICK, /* a small choice: under emulation, under sanitizers, at a plugin's
                   admission */
    CASE_FULL,  /* the rest of the tests */
    CASE_PERF   /* shapes to measure */
};

struct test_case {
    uint32_t op;
    enum case_level level;
    char text[CASE_TEXT];
};

/* A case's parameters, the op's defaults included. */
struct parameters {
    int count;
    struct {
        char key[CASE_KEY], value[CASE_VALUE];
    } at[CASE_PARAMETERS];
};

/* The value of `key`; every key an op's builder asks for is among the op's defaults, others
 * give
 * "". */
const char *parameter(const struct parameters *parameters, const char *key);

/* Calls `fn` for each case of the registry, in order, until one call answers false. */
void case_each(bool (*fn)(void *user, const struct test_case *test), void *user);

/* Reads one case as it is printed. false: `error` says what is wrong and what would be
 * right. */
bool case_parse(const char *text, struct test_case *test, char *error, size_t error_size);
/* The parameters of a case. false as case_parse(). */
bool case_parameters(const struct test_case *test, struct parameters *parameters,
                     char *error, size_t error_size);

/* Whether `text` fits `pattern`: with * or ? the whole text, else some part of it. */
bool case_matches(const char *text, const char *pattern);

#endif
