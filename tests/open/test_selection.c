/* SPDX-License-Identifier: MIT */
/* test_selection.c - how HW_BACKENDS and the other settings select devices. The plugin
 * zoo (rank 20) has four: 0 software, 1 integrated, 2 and 3 discrete. The plugin view
 * (rank 60) shows 2 and 3 once more. The plugin good (no rank, hence 100) has one. The
 * plugin open_no_driver is found but unusable. */
#define _GNU_SOURCE
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *backends, *disable, *require;
    const char *devices; /* the selected devices, in order; NULL: an error */
    enum hw_status status;
    const char *words; /* part of the message */
};

static const struct row rows[] = {
    /* order and the default */
    { "", "", "", "zoo:2 zoo:3 zoo:1 good:0 zoo:0", HW_OK, NULL },
    { "*", "", "", "zoo:2 zoo:3 zoo:1 good:0 zoo:0", HW_OK, NULL },
    { "good", "", "", "good:0", HW_OK, NULL },
    { "GOOD", "", "", "good:0", HW_OK, NULL },
    { "good,zoo", "", "", "good:0 zoo:2 zoo:3 zoo:1 zoo:0", HW_OK, NULL },
    { " good , zoo:1 ", "", "", "good:0 zoo:1", HW_OK, NULL },
    { "good,*", "", "", "good:0 zoo:2 zoo:3 zoo:1 zoo:0", HW_OK, NULL },
    { "good,good,good:0", "", "", "good:0", HW_OK, NULL },
    { "zoo:0,*", "", "", "zoo:0 zoo:2 zoo:3 zoo:1 good:0", HW_OK, NULL },
    /* removal */
    { "!zoo", "", "", "view:0 view:1 good:0", HW_OK, NULL },
    { "*,!zoo:0", "", "", "zoo:2 zoo:3 zoo:1 good:0", HW_OK, NULL },
    { "!zoo:*soft*,*", "", "", "zoo:2 zoo:3 zoo:1 good:0", HW_OK, NULL },
    { "!zoo:2", "", "", "zoo:3 zoo:1 view:0 good:0 zoo:0", HW_OK, NULL },
    { "!*:wolf*", "", "", "zoo:1 good:0 zoo:0", HW_OK, NULL },
    { "zoo,!zoo:wolf*", "", "", "zoo:1 zoo:0", HW_OK, NULL },
    { "!zoo:unicorn*", "", "", "zoo:2 zoo:3 zoo:1 good:0 zoo:0", HW_OK, NULL },
    { "zoo,!zoo", "", "", NULL, HW_NO_DEVICE, "disabled by \"!zoo\"" },
    { "!*", "", "", NULL, HW_NO_DEVICE, "disabled" },
    /* globs */
    { "z*", "", "", "zoo:2 zoo:3 zoo:1 zoo:0", HW_OK, NULL },
    { "?oo", "", "", "zoo:2 zoo:3 zoo:1 zoo:0", HW_OK, NULL },
    { "*oo*", "", "", "zoo:2 zoo:3 zoo:1 good:0 zoo:0", HW_OK, NULL },
    { "*:bear*", "", "", "zoo:1", HW_OK, NULL },
    { "zoo:*X200", "", "", "zoo:3", HW_OK, NULL },
    { "zoo:canis", "", "", "zoo:2 zoo:3", HW_OK, NULL },
    { "*,!*:*other*", "", "", "zoo:2 zoo:3 good:0", HW_OK, NULL },
    /* a device */
    { "zoo:1", "", "", "zoo:1", HW_OK, NULL },
    { "zoo:0000:3d:00.0", "", "", "zoo:2", HW_OK, NULL },
    { "zoo:3e:00.0", "", "", "zoo:3", HW_OK, NULL },
    { "zoo:AB000000-0000-0000-0000-000000000003", "", "", "zoo:3", HW_OK, NULL },
    { "zoo:GPU-ab000000-0000-0000-0000-000000000002", "", "", "zoo:2", HW_OK, NULL },
    { "zoo:9", "", "", NULL, HW_NO_DEVICE,
      "backends: \"zoo:9\": no such device; there are: zoo:2 (Wolf" },
    { "zoo:9?,good", "", "", "good:0", HW_OK, NULL },
    { "zoo:9,good", "", "", NULL, HW_NO_DEVICE, "\"zoo:9\"" },
    { "zoo:01", "", "", NULL, HW_NO_DEVICE, "\"zoo:01\"" },
    /* the same hardware through two plugins: a device is not shadowed if it is selected by
     * name */
    { "view", "", "", "view:0 view:1", HW_OK, NULL },
    { "zoo:2,view", "", "", "zoo:2 view:0 view:1", HW_OK, NULL },
    { "view,*", "", "", "view:0 view:1 zoo:1 good:0 zoo:0", HW_OK, NULL },
    { "zoo:2,vie*", "", "", "zoo:2 view:1", HW_OK, NULL },
    /* found but unusable: reported, and an error if no device is left */
    { "open_no_driver", "", "", NULL, HW_NO_DEVICE, "libnowhere.so.1 is not installed" },
    { "open_no_driver", "", "", NULL, HW_NO_DEVICE, "Install nowhere" },
    { "open_no_driver,good", "", "", "good:0", HW_OK, NULL },
    { "open_no_driver:0", "", "", NULL, HW_NO_DEVICE, "libnowhere" },
    /* unknown names */
    { "goood", "", "", NULL, HW_NO_DEVICE, "did you mean \"good\"?" },
    { "unicorn", "", "", NULL, HW_NO_DEVICE, "found: good, open_no_driver, view, zoo" },
    { "good,unicorn", "", "", NULL, HW_NO_DEVICE, "\"unicorn\"" },
    { "unicorn,good", "", "", NULL, HW_NO_DEVICE, "\"unicorn\"" },
    { "!unicorn", "", "", "zoo:2 zoo:3 zoo:1 good:0 zoo:0", HW_OK, NULL },
    { "good,!unicorn", "", "", "good:0", HW_OK, NULL },
    { "good,!zoo:1,unicorn", "", "", NULL, HW_NO_DEVICE,
      "If it may be missing, write \"unicorn?\"" },
    { "uni*", "", "", NULL, HW_NO_DEVICE, "\"uni*\"" },
    { "unicorn?,good", "", "", "good:0", HW_OK, NULL },
    { "unicorn?", "", "", NULL, HW_NO_DEVICE, "" },
    { "!unicorn?", "", "", "zoo:2 zoo:3 zoo:1 good:0 zoo:0", HW_OK, NULL },
    /* empty lists */
    { ",", "", "", NULL, HW_INVALID, "an entry is empty" },
    { "good,", "", "", NULL, HW_INVALID, "comma" },
    { "good,,zoo", "", "", NULL, HW_INVALID, "an entry is empty" },
    { "!", "", "", NULL, HW_INVALID, "an entry is empty" },
    { "?", "", "", NULL, HW_INVALID, "an entry is empty" },
    { ":0", "", "", NULL, HW_INVALID, "the backend is missing" },
    { "zoo:", "", "", NULL, HW_INVALID, "the device is missing" },
    { "zo/o", "", "", NULL, HW_INVALID, "letters, digits" },
    { "zoo zoo", "", "", NULL, HW_INVALID, "letters, digits" },
    { "z\xc3\xb6o", "", "", NULL, HW_INVALID, "letters, digits" },
    /* HW_DISABLE */
    { "", "zoo", "", "view:0 view:1 good:0", HW_OK, NULL },
    { "", "zoo,v*", "", "good:0", HW_OK, NULL },
    { "", "unicorn", "", "zoo:2 zoo:3 zoo:1 good:0 zoo:0", HW_OK, NULL },
    { "good", "good", "", NULL, HW_NO_DEVICE, "disabled by \"good\" in disable" },
    { "", "zoo:1", "", NULL, HW_INVALID, "!zoo:1" },
    { "", "!zoo", "", NULL, HW_INVALID, "! and ? are allowed in" },
    { "", "*", "", NULL, HW_NO_DEVICE, "disabled" },
    /* HW_REQUIRE */
    { "", "", "zoo", "zoo:2 zoo:3 zoo:1 good:0 zoo:0", HW_OK, NULL },
    { "", "", "zoo:1,good", "zoo:2 zoo:3 zoo:1 good:0 zoo:0", HW_OK, NULL },
    { "good", "", "zoo", NULL, HW_NO_DEVICE, "selects only \"good\"" },
    { "good,zoo:1", "", "zoo:2", NULL, HW_NO_DEVICE, "\"zoo:2\"" },
    { "", "", "open_no_driver", NULL, HW_NO_DEVICE, "libnowhere.so.1" },
    { "", "", "unicorn", NULL, HW_NO_DEVICE, "option require: \"unicorn\": no plugin" },
    { "", "", "unicorn", NULL, HW_NO_DEVICE, "found: good, open_no_driver, view, zoo\n" },
    { "zoo:1", "", "zoo:2", NULL, HW_NO_DEVICE,
      "zoo:2\" is not used: not selected by backends (option)" },
    { "", "", "zoo?", NULL, HW_INVALID, "! and ? are allowed in" },
};

static void check_devices(struct hw_context *context, const char *expected)
{
    char found[256] = "";
    for (uint32_t i = 0; i < hw_device_count(context); i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? " " : "",
                 hw_device_name(hw_device_at(context, i)));
    assert_string_equal(found, expected);
    json_t *json = report(context);
    size_t i;
    json_t *name;
    char reported[256] = "";
    json_array_foreach (json_object_get(json, "selection"), i, name) {
        snprintf(reported + strlen(reported), sizeof reported - strlen(reported), "%s%s",
                 i ? " " : "", json_string_value(name));
    }
    assert_string_equal(reported, expected);
    json_decref(json);
}

static void test_row(void **state)
{
    const struct row *row = *state;
    struct hw_options options = { .backends = row->backends,
                                  .disable = row->disable,
                                  .require = row->require };
    struct hw_context *context;
    enum hw_status status = open_on(lair("zoo"), &options, &context);
    if (status != row->status)
        print_error("%s\n", status ? hw_message() : "opened");
    assert_int_equal(status, row->status);
    if (status) {
        assert_null(context);
        char message[4096]; /* the newline lets a row match the end of the message */
        snprintf(message, sizeof message, "%s\n", hw_message());
        if (!strstr(message, row->words))
            print_error("%s", message);
        assert_non_null(strstr(message, row->words));
        /* A report is available after an error, and contains the error. */
        options.flags = HW_OPEN_ANYWAY;
        assert_int_equal(open_on(lair("zoo"), &options, &context), HW_OK);
        json_t *json = report(context);
        snprintf(message, sizeof message, "%s\n", text_of(json, "open_error"));
        assert_non_null(strstr(message, row->words));
        json_decref(json);
    } else {
        check_devices(context, row->devices);
    }
    hw_close(context);
}

/* Excluded files are not opened: opening a FIFO would block, and a broken file would be
 * read. */
static void test_filter_first(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .disable = "zoo" };
    (void)state;
    assert_int_equal(open_on(lair("zoo"), &options, &context), HW_OK);
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("zoo/hw_zoo.so"));
    assert_string_equal(text_of(entry, "reason"), "disabled");
    assert_string_equal(text_of(entry, "stage"), "filter");
    assert_true(json_is_null(json_object_get(entry, "manifest")));
    json_decref(json);
    hw_close(context);

    options = (struct hw_options){ .backends = "good" };
    assert_int_equal(open_on(lair("zoo"), &options, &context), HW_OK);
    json = report(context);
    entry = candidate(json, lair("zoo/hw_zoo.so"));
    assert_string_equal(text_of(entry, "reason"), "not-selected");
    assert_true(json_is_null(json_object_get(entry, "manifest")));
    json_decref(json);
    hw_close(context);
}

/* A misspelt name in HW_DISABLE must be an error, because its effect would go unnoticed. */
static void test_disable_unknown(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .disable = "goood,zoo" };
    (void)state;
    assert_int_equal(open_on(lair("zoo"), &options, &context), HW_OK);
    json_t *json = report(context), *warnings = json_object_get(json, "warnings");
    assert_int_equal(json_array_size(warnings), 1);
    assert_non_null(strstr(json_string_value(json_array_get(warnings, 0)),
                           "disable: \"goood\": no plugin of that name was found; did you "
                           "mean \"good\"?"));
    json_decref(json);
    hw_close(context);
}

static void test_shadows(void **state)
{
    struct hw_context *context;
    (void)state;
    assert_int_equal(open_on(lair("zoo"), NULL, &context), HW_OK);
    json_t *json = report(context), *device;
    size_t i, shadowed = 0;
    json_array_foreach (json_object_get(json, "devices"), i, device) {
        if (strcmp(text_of(device, "backend"), "view") == 0) {
            assert_false(json_is_true(json_object_get(device, "selected")));
            assert_non_null(
                strstr(text_of(device, "why"), "shadowed: the same hardware as zoo:"));
            shadowed++;
        }
    }
    assert_int_equal(shadowed, 2);
    assert_string_equal(text_of(candidate(json, lair("zoo/hw_view.so")), "state"),
                        "available");
    json_decref(json);
    hw_close(context);
}

static void test_find(void **state)
{
    struct hw_context *context;
    struct hw_device *device;
    (void)state;
    assert_int_equal(open_on(lair("zoo"), NULL, &context), HW_OK);
    assert_int_equal(hw_device_find(context, "zoo", &device), HW_OK);
    assert_string_equal(hw_device_name(device), "zoo:2");
    assert_string_equal(hw_device_backend(device), "zoo");
    assert_int_equal(hw_device_find(context, "zoo:1", &device), HW_OK);
    assert_string_equal(hw_device_name(device), "zoo:1");
    assert_int_equal(hw_device_find(context, "zoo:3e:00.0", &device), HW_OK);
    assert_string_equal(hw_device_name(device), "zoo:3");
    assert_int_equal(hw_device_find(context, "zoo:7", &device), HW_NO_DEVICE);
    assert_null(device);
    assert_non_null(strstr(hw_message(), "zoo:2"));
    assert_int_equal(hw_device_find(context, "view:0", &device), HW_NO_DEVICE);
    assert_string_equal(hw_message(), "device \"view:0\" is not used: shadowed: the same "
                                      "hardware as zoo:2");
    assert_int_equal(hw_device_find(context, "goood:0", &device), HW_NO_DEVICE);
    assert_non_null(
        strstr(hw_message(), "device \"goood:0\": no such device; there are: zoo:2 ("));
    assert_int_equal(hw_device_find(context, "open_no_driver", &device), HW_NO_DEVICE);
    assert_non_null(strstr(hw_message(), "libnowhere"));
    assert_int_equal(hw_device_find(context, "!zoo", &device), HW_INVALID);
    assert_int_equal(hw_device_find(context, "zoo,good", &device), HW_INVALID);
    assert_int_equal(hw_device_find(context, "", &device), HW_INVALID);
    assert_int_equal(hw_device_find(context, NULL, &device), HW_INVALID);
    assert_null(hw_device_at(context, 99));
    hw_close(context);
}

static int open_zoo(void **state)
{
    static const char *const names[] = { "zoo", "view", "good", "open_no_driver" };
    if (lair_open(state))
        return -1;
    make_directory(lair("zoo"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_plugin(lair("zoo"), names[i]);
    return 0;
}

int main(void)
{
    enum { ROWS = sizeof rows / sizeof *rows };
    static struct CMUnitTest tests[ROWS + 8];
    static char names[ROWS][128];
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(names[i], sizeof names[i], "backends=%s disable=%s require=%s",
                 rows[i].backends, rows[i].disable, rows[i].require);
        tests[i] = (struct CMUnitTest){ names[i], test_row, NULL, NULL,
                                        (void *)(uintptr_t)&rows[i] };
    }
    const struct CMUnitTest whole[] = { cmocka_unit_test(test_filter_first),
                                        cmocka_unit_test(test_disable_unknown),
                                        cmocka_unit_test(test_shadows),
                                        cmocka_unit_test(test_find) };
    memcpy(tests + ROWS, whole, sizeof whole);
    return _cmocka_run_group_tests("selection", tests, ROWS + sizeof whole / sizeof *whole,
                                   open_zoo, lair_close);
}
