/* SPDX-License-Identifier: MIT */
/* Copies between devices: the plugin requests access to the other device's memory once, and copies
 * with or without it. */
#include "tuned.h"

enum { COPIED = 4096, PEER_UNSUPPORTED = 217 };

static char warning[512]; /* the last one */

static void hear(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level == HW_LOG_WARN)
        snprintf(warning, sizeof warning, "%s", text);
}

static int open_heard(void **state)
{
    (void)state;
    warning[0] = '\0';
    open_with(&(struct hw_options){ .size = sizeof(struct hw_options),
                                    .backends = "cuda",
                                    .fallback = "error",
                                    .log_fn = hear });
    return 0;
}

/* Copies from one device to the other on a queue of `at`, and checks the result. */
static void copied(struct hw_device *to, struct hw_device *from, struct hw_device *at)
{
    static unsigned char sent[COPIED], received[COPIED];
    const int64_t extent = COPIED;
    struct hw_tensor a, b;
    struct hw_queue *on;
    for (int i = 0; i < COPIED; i++)
        sent[i] = (unsigned char)(i * 7 + 1);
    memset(received, 0, sizeof received);
    ok(hw_queue_open(at, NULL, &on));
    ok(hw_tensor_alloc(from, 0, HW_I8, 1, &extent, &a));
    ok(hw_tensor_alloc(to, 0, HW_I8, 1, &extent, &b));
    ok(hw_copy(on, &(struct hw_copy){ .src = hw_host_1d(sent, HW_I8, COPIED), .dst = a }));
    ok(hw_copy(on, &(struct hw_copy){ .src = a, .dst = b }));
    ok(hw_copy(on,
               &(struct hw_copy){ .src = b, .dst = hw_host_1d(received, HW_I8, COPIED) }));
    ok(hw_queue_wait(on));
    hw_queue_close(on);
    assert_memory_equal(sent, received, COPIED);
}

static void access_is_asked_for_once(void **state)
{
    (void)state;
    copied(hopper, hopper, hopper);
    assert_int_equal(faults_count("peer_can"), 0);
    for (int i = 0; i < 3; i++)
        copied(ampere, hopper, ampere);
    assert_int_equal(faults_count("peer_can"), 1);
    assert_int_equal(faults_count("context_reach"), 1);
    copied(ampere, hopper, hopper); /* the other way */
    copied(blackwell, hopper, hopper);
    assert_int_equal(faults_count("peer_can"), 3);
    assert_int_equal(faults_count("context_reach"), 3);
    assert_string_equal(warning, "");
}

static void devices_without_a_link_copy(void **state)
{
    (void)state;
    copied(turing, hopper, turing);
    assert_int_equal(faults_count("peer_can"), 1);
    assert_int_equal(faults_count("context_reach"), 0);
    assert_string_equal(warning, "");
}

static void access_that_is_refused_is_logged(void **state)
{
    (void)state;
    faults_arm("context_reach", 0, PEER_UNSUPPORTED);
    copied(ampere, hopper, ampere);
    assert_non_null(strstr(warning,
                           "cannot access another device's memory; copies go through "
                           "the host: peer access is not supported"));
}

static void access_that_the_application_has_is_no_error(void **state)
{
    (void)state;
    faults_arm("context_reach", 0, PEER_ENABLED);
    copied(ampere, hopper, ampere);
    assert_string_equal(warning, "");
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_heard, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(access_is_asked_for_once),
        TEST(devices_without_a_link_copy),
        TEST(access_that_is_refused_is_logged),
        TEST(access_that_the_application_has_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
