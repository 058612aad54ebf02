/* SPDX-License-Identifier: MIT */
/* test_words.c - the functions of kernels/words.h, on each instruction set of this processor: their
 * error in units in the last place, and their results for NaN and infinity. */
#include "cpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef void sweep_fn(float *y, const float *x, int64_t n);

struct function {
    const char *name;
    double (*truth)(double);
    double bound; /* ulp */
    sweep_fn *sweep;
    uint64_t needs;
};

static double exp_minus(double x)
{
    return exp(-x);
}

#define FUNCTIONS(X, bound, isa, needs)                                                    \
    X(vf_exp, exp, bound, isa, needs)                                                      \
    X(vf_exp_minus, exp_minus, bound, isa, needs)

#if defined(__x86_64__)
#define SETS(X)                                                                            \
    FUNCTIONS(X, 1, avx2, HAS(TIER_V3))                                                    \
    FUNCTIONS(X, 0.8, avx512, HAS(TIER_V4))
#else
#define SETS(X) FUNCTIONS(X, 1, neon, 0)
#endif

#define X(name, truth, bound, isa, needs) sweep_fn sweep_##name##_##isa;
SETS(X)
#undef X

static const struct function functions[] = {
#define X(name, truth, bound, isa, needs)                                                  \
    { #name " on " #isa, truth, bound, sweep_##name##_##isa, needs },
    SETS(X)
#undef X
};
enum { FUNCTION_COUNT = sizeof functions / sizeof functions[0] };

static bool can_run(const struct function *f)
{
    struct machine machine;
    machine_read(&machine, "");
    return (machine.features & f->needs) == f->needs;
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Units in the last place of `want`, as a float; infinitely many for a NaN. */
static double ulps(float got, double want)
{
    int e;
    if (got == (float)want)
        return 0;
    if (isnan(got))
        return INFINITY;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

/* The worst error over all finite floats, sampling every `step`-th one. */
static double worst_ulps(const struct function *f, uint32_t step)
{
    enum { MANY = 1000 };
    static float x[MANY], y[MANY];
    double worst = 0;
    for (uint64_t u = 0; u < 0x7f800000u;) {
        int n = 0;
        for (; n + 1 < MANY && u < 0x7f800000u; u += step) {
            x[n++] = float_of((uint32_t)u);
            x[n++] = float_of((uint32_t)u | 0x80000000u);
        }
        f->sweep(y, x, n);
        for (int i = 0; i < n; i++)
            worst = fmax(worst, ulps(y[i], f->truth((double)x[i])));
    }
    return worst;
}

/* HW_TEST_ALL_FLOATS=1 tests every float, which takes minutes. */
static void errors_are_bounded(void **state)
{
    const uint32_t step = getenv("HW_TEST_ALL_FLOATS") ? 1 : 1009;
    (void)state;
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        const struct function *f = &functions[i];
        if (!can_run(f))
            continue;
        const double worst = worst_ulps(f, step);
        print_message("%s: %.3f ulp\n", f->name, worst);
        if (!(worst <= f->bound))
            fail_msg("%s: %g ulp, more than %g", f->name, worst, f->bound);
    }
}

static void special_values_keep_their_meaning(void **state)
{
    static const float x[] = { 0.0f, -0.0f, -INFINITY, INFINITY, 3e38f, -3e38f, NAN, -NAN };
    enum { MANY = sizeof x / sizeof x[0] };
    (void)state;
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        const struct function *f = &functions[i];
        float y[MANY];
        if (!can_run(f))
            continue;
        f->sweep(y, x, MANY);
        for (int k = 0; k < MANY; k++) {
            const float want = (float)f->truth((double)x[k]);
            if (isnan(want) ? !isnan(y[k]) : y[k] != want)
                fail_msg("%s of %g: %g", f->name, (double)x[k], (double)y[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_bounded),
        cmocka_unit_test(special_values_keep_their_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
