/* SPDX-License-Identifier: MIT */
/* test_sampler.c - greedy sampling takes the first of the best scores; random sampling
 * follows the probabilities within top-k and top-p; a seed gives the same sequence
 * again; a NaN score is never chosen. */
#include "model/llama/sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT = 6, DRAWS = 60000 };

/* The ids are shuffled, so their order differs from that of the scores. The probabilities
 * at temperature 1 are p[]. */
static const double p[COUNT] = { 0.05, 0.4, 0.1, 0.02, 0.3, 0.13 };

static void make_scores(float scores[COUNT])
{
    for (int i = 0; i < COUNT; i++)
        scores[i] = (float)log(p[i]) + 17;
}

/* Draws DRAWS times; returns the share of each id. */
static void draw(struct sampler_settings settings, const float *scores, double share[COUNT])
{
    struct sampler *sampler = sampler_create(&settings, COUNT);
    assert_non_null(sampler);
    for (int i = 0; i < COUNT; i++)
        share[i] = 0;
    for (int i = 0; i < DRAWS; i++) {
        const int32_t id = sampler_choose(sampler, scores);
        assert_in_range(id, 0, COUNT - 1);
        share[id] += 1.0 / DRAWS;
    }
    sampler_destroy(sampler);
}

/* The shares must match the weights. 0.01 is five standard deviations of the largest share. */
static void check(struct sampler_settings settings, const double weight[COUNT])
{
    float scores[COUNT];
    double share[COUNT], sum = 0;
    make_scores(scores);
    draw(settings, scores, share);
    for (int i = 0; i < COUNT; i++)
        sum += weight[i];
    for (int i = 0; i < COUNT; i++) {
        if (fabs(share[i] - weight[i] / sum) > 0.01)
            fail_msg("id %d: share %g, must be %g", i, share[i], weight[i] / sum);
        if (weight[i] == 0)
            assert_true(share[i] == 0);
    }
}

static void test_probabilities(void **state)
{
    (void)state;
    double squared[COUNT];
    for (int i = 0; i < COUNT; i++)
        squared[i] = p[i] * p[i];
    check((struct sampler_settings){ .temperature = 1, .top_p = 1, .seed = 1 }, p);
    check((struct sampler_settings){ .temperature = 0.5, .top_p = 1, .seed = 2 }, squared);
}

static void test_top_k(void **state)
{
    (void)state;
    const double best[COUNT] = { 0, 0.4, 0, 0, 0.3, 0.13 };
    check((struct sampler_settings){ .temperature = 1, .top_k = 3, .top_p = 1 }, best);
    check((struct sampler_settings){ .temperature = 1, .top_k = 6, .top_p = 1 }, p);
    check((struct sampler_settings){ .temperature = 1, .top_k = 100, .top_p = 1 }, p);
    const double first[COUNT] = { 0, 1, 0, 0, 0, 0 };
    check((struct sampler_settings){ .temperature = 1, .top_k = 1, .top_p = 1 }, first);
}

static void test_top_p(void **state)
{
    (void)state;
    const double first[COUNT] = { 0, 1, 0, 0, 0, 0 }, two[COUNT] = { 0, 0.4, 0, 0, 0.3, 0 };
    const double three[COUNT] = { 0, 0.4, 0, 0, 0.3, 0.13 };
    check((struct sampler_settings){ .temperature = 1, .top_p = 1e-9 }, first);
    check((struct sampler_settings){ .temperature = 1, .top_p = 0.39 }, first);
    check((struct sampler_settings){ .temperature = 1, .top_p = 0.41 }, two);
    check((struct sampler_settings){ .temperature = 1, .top_p = 0.71 }, three);
    check((struct sampler_settings){ .temperature = 1, .top_p = 0.9999999 }, p);
    /* Among the candidates that top-k keeps, 0.4 / 0.83 is below a half and 0.7 / 0.83
     * above. */
    check((struct sampler_settings){ .temperature = 1, .top_k = 3, .top_p = 0.5 }, two);
}

static void test_greedy(void **state)
{
    (void)state;
    const struct sampler_settings settings = { .temperature = 0, .top_p = 1 };
    const float ties[COUNT] = { -1, 3, 2, 3, 3, -1 };
    const float partly[COUNT] = { NAN, -INFINITY, NAN, -3e38f, NAN, -INFINITY };
    const float infinite[COUNT] = { 1, 2, INFINITY, 3, NAN, INFINITY };
    const float nothing[COUNT] = { NAN, -INFINITY, NAN, NAN, NAN, -INFINITY };
    struct sampler *sampler = sampler_create(&settings, COUNT);
    assert_non_null(sampler);
    assert_int_equal(sampler_choose(sampler, ties), 1);
    assert_int_equal(sampler_choose(sampler, partly), 3);
    assert_int_equal(sampler_choose(sampler, infinite), 2);
    assert_int_equal(sampler_choose(sampler, nothing), -1);
    sampler_destroy(sampler);
}

/* Temperatures from very small to very large, with scores that include NaN and infinities. */
static void test_extremes(void **state)
{
    (void)state;
    const float odd[COUNT] = { NAN, -INFINITY, 3e38f, -3e38f, NAN, 3e38f };
    static const double temperatures[] = { 1e-300, 1e-9, 1, 1e9, 1e300 };
    for (size_t i = 0; i < sizeof temperatures / sizeof *temperatures; i++)
        for (int32_t k = 0; k <= COUNT; k++) {
            double share[COUNT];
            draw((struct sampler_settings){ temperatures[i], k, k % 2 ? 1 : 0.9, 3 }, odd,
                 share);
            assert_true(share[0] == 0 && share[1] == 0 && share[4] == 0);
            assert_true(share[2] > 0);
        }
}

static void test_seed(void **state)
{
    (void)state;
    struct sampler_settings settings = { .temperature = 2, .top_p = 1, .seed = 42 };
    struct sampler *a = sampler_create(&settings, COUNT),
                   *b = sampler_create(&settings, COUNT);
    settings.seed = 43;
    struct sampler *other = sampler_create(&settings, COUNT);
    assert_true(a && b && other);
    float scores[COUNT];
    int differ = 0;
    make_scores(scores);
    for (int i = 0; i < 100; i++) {
        const int32_t id = sampler_choose(a, scores);
        assert_int_equal(id, sampler_choose(b, scores));
        differ += id != sampler_choose(other, scores);
    }
    assert_true(differ > 0);
    sampler_destroy(a);
    sampler_destroy(b);
    sampler_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probabilities), cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_top_p),         cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_extremes),      cmocka_unit_test(test_seed),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
