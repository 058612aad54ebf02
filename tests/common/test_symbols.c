/* SPDX-License-Identifier: MIT */
/* Opening a vendor's library: its file, its functions, and the message if one is missing. The
 * current directory has three versions of an invented library, vendor.c; the argument is a file
 * that is not a library. */
#include "common/symbols.h"
#include "host.h"

struct vendor {
#define REQUIRED SYMBOL_MEMBER
#define OPTIONAL SYMBOL_MEMBER
#include "vendor.def"
};

static const struct symbol symbols[] = {
#define REQUIRED(result, name, arguments, names) SYMBOL(struct vendor, name, names, true)
#define OPTIONAL(result, name, arguments, names) SYMBOL(struct vendor, name, names, false)
#include "vendor.def"
};

static struct test_host host;
static const char *text_file;

static int32_t load(const char *files, struct vendor *vendor)
{
    const struct symbol_library library = { .files = files,
                                            .symbols = symbols,
                                            .count = sizeof symbols / sizeof *symbols };
    test_host_init(&host, "");
    memset(vendor, 0xa5, sizeof *vendor);
    return symbols_load(&host.host, &library, vendor);
}

static void refused(const char *files, const char *part)
{
    struct vendor vendor;
    assert_int_equal(load(files, &vendor), HW_NO_DEVICE);
    assert_says(host.message, part);
    assert_true(!vendor.version && !vendor.twice && !vendor.thrice);
}

static void all_functions(void **state)
{
    struct vendor vendor;
    (void)state;
    assert_int_equal(load("./vendor3.so", &vendor), HW_OK);
    assert_int_equal(vendor.version(), 3);
    assert_int_equal(vendor.twice(21), 42);
    assert_int_equal(vendor.thrice(5), 15);
}

static void an_older_name_and_no_optional_function(void **state)
{
    struct vendor vendor;
    (void)state;
    assert_int_equal(load("./vendor2.so", &vendor), HW_OK);
    assert_int_equal(vendor.version(), 2);
    assert_int_equal(vendor.twice(21), 42);
    assert_null(vendor.thrice);
}

static void the_first_file_that_opens(void **state)
{
    struct vendor vendor;
    (void)state;
    assert_int_equal(load("libnone.so.1|./vendor3.so|./vendor2.so", &vendor), HW_OK);
    assert_int_equal(vendor.version(), 3);
}

static int thrice(int value)
{
    return 3 * value;
}

static int asked;

/* Knows one function, which no library exports, and is asked for all of them. */
static void *find_thrice(void *opened, const char *name)
{
    int (*function)(int) = thrice;
    void *symbol = NULL;
    assert_non_null(opened);
    asked++;
    if (strcmp(name, "vendorThrice") == 0)
        memcpy(&symbol, &function, sizeof symbol);
    return symbol;
}

static void the_vendors_own_way(void **state)
{
    const struct symbol_library library = { .files = "./vendor2.so",
                                            .symbols = symbols,
                                            .count = sizeof symbols / sizeof *symbols,
                                            .find = find_thrice };
    struct vendor vendor;
    (void)state;
    test_host_init(&host, "");
    assert_int_equal(symbols_load(&host.host, &library, &vendor), HW_OK);
    assert_int_equal(vendor.twice(21), 42);
    assert_int_equal(vendor.thrice(5), 15);
    assert_int_equal(asked, 4); /* one has two names */
}

static void a_missing_function(void **state)
{
    (void)state;
    refused("./vendor1.so", "vendor1.so has no function vendorTwice_v2|vendorTwice");
    assert_says(host.message, "too old");
}

static void a_missing_library(void **state)
{
    (void)state;
    refused("libnone.so.1", "cannot open libnone.so.1");
    assert_says(host.message, "No such file");
    refused("libnone.so.2|libnone.so.1", "libnone.so.2: ");
    assert_says(host.message, "libnone.so.1: ");
    refused("", "no file is named");
}

static void a_file_that_is_not_a_library(void **state)
{
    (void)state;
    refused(text_file, text_file);
}

/* Neither reason nor message overflows, even with the longest names. */
static void long_names(void **state)
{
    char files[6000];
    (void)state;
    memset(files, 'x', sizeof files);
    for (size_t i = 100; i < sizeof files; i += 100)
        files[i] = '|';
    files[sizeof files - 1] = '\0';
    refused(files, "cannot open xxx");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_functions),
        cmocka_unit_test(an_older_name_and_no_optional_function),
        cmocka_unit_test(the_first_file_that_opens),
        cmocka_unit_test(the_vendors_own_way),
        cmocka_unit_test(a_missing_function),
        cmocka_unit_test(a_missing_library),
        cmocka_unit_test(a_file_that_is_not_a_library),
        cmocka_unit_test(long_names),
    };
    if (argc != 2)
        return 2;
    text_file = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
