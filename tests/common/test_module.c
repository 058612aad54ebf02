/* SPDX-License-Identifier: MIT */
/* Building programs through the cache, with a compiler of these tests: its image consists of the
 * options and the text. They check which programs are compiled once or again, and the messages. */
#define _GNU_SOURCE
#include "common/module.h"
#include "host.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[256], directory[300];

struct vendor {
    int compiled, loaded, made;
    int32_t compile_status, load_status;
    int refuse; /* so many loads */
    const char *log;
};

static int32_t compile(void *user, const struct module_program *program, const char *text,
                       struct module_image *image)
{
    struct vendor *vendor = user;
    vendor->compiled++;
    if (vendor->log) /* as careless compilers do, without an end */
        memcpy(image->log, vendor->log, strnlen(vendor->log, sizeof image->log));
    if (vendor->compile_status)
        return vendor->compile_status;
    image->bytes = (size_t)asprintf((char **)&image->data, "%s:%s", program->options, text);
    return HW_OK;
}

static int32_t load(void *user, const void *image, size_t bytes, void **module)
{
    struct vendor *vendor = user;
    vendor->loaded++;
    if (vendor->load_status)
        return vendor->load_status;
    if (vendor->refuse && vendor->refuse--)
        return HW_DRIVER;
    *module = strndup(image, bytes);
    return HW_OK;
}

static int32_t make(void *user, const struct module_program *program, const char *text,
                    struct module_image *image, void **module)
{
    const int32_t status = compile(user, program, text, image);
    ((struct vendor *)user)->made++;
    *module = image->data;
    image->data = NULL;
    return status;
}

static struct vendor vendor;
static struct test_host host;
static struct module_builder builder;

/* Simulates a new process: another instance with the same directory. */
static void start(const char *cache_dir)
{
    test_host_init(&host, cache_dir);
    vendor = (struct vendor){ 0 };
    builder = (struct module_builder){ .host = &host.host,
                                       .device = "Test GPU t1",
                                       .driver = "1.2",
                                       .build = "0.1+abc",
                                       .user = &vendor,
                                       .compile = compile,
                                       .load = load };
}

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(base, sizeof base, "%s/hw-module-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(base))
        return -1;
    snprintf(directory, sizeof directory, "%s/hw", base);
    start(directory);
    return 0;
}

static int teardown(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    return system(command);
}

#define TEXT(text)                                                                         \
    {                                                                                      \
        "text", (const unsigned char *)(text), sizeof(text) - 1                            \
    }

static const struct embedded head = TEXT("head "), body = TEXT("body");
static const struct module_program program = { .name = "rmsnorm f16",
                                               .options = "-O",
                                               .parts = { &head, &body } };

/* Loads the program, which must succeed. Returns whether it was compiled. */
static bool compiles(const struct module_program *p)
{
    const int before = vendor.compiled;
    void *module = NULL;
    assert_int_equal(module_load(&builder, p, &module), HW_OK);
    assert_non_null(module);
    free(module);
    return vendor.compiled > before;
}

static void compiled_once(void **state)
{
    void *module = NULL;
    (void)state;
    assert_int_equal(module_load(&builder, &program, &module), HW_OK);
    assert_string_equal(module, "-O:head body");
    free(module);
    start(directory);
    assert_int_equal(module_load(&builder, &program, &module), HW_OK);
    assert_string_equal(module, "-O:head body");
    free(module);
    assert_int_equal(vendor.compiled, 0);
    assert_int_equal(host.log_lines, 0);
}

/* The key contains everything that the image depends on. */
static void compiled_anew_for_each_difference(void **state)
{
    static const struct embedded other = TEXT("bodY");
    struct module_program p = program;
    (void)state;
    assert_true(compiles(&program));
    builder.device = "Test GPU t2";
    assert_true(compiles(&program));
    builder.driver = "1.3";
    assert_true(compiles(&program));
    builder.build = "0.1+abd";
    assert_true(compiles(&program));
    p.options = "-O2";
    assert_true(compiles(&p));
    p.parts[1] = &other;
    assert_true(compiles(&p));
    p.parts[1] = NULL;
    assert_true(compiles(&p));
    /* The same characters, split differently between the fields. */
    builder.driver = "1.3-";
    p.options = "O2";
    assert_true(compiles(&p));
    start(directory);
    assert_false(compiles(&program));
}

static void all_parts_are_used(void **state)
{
    static const struct embedded letter = TEXT("x");
    struct module_program p = { .name = "full", .options = "" };
    void *module = NULL;
    (void)state;
    for (int i = 0; i < MODULE_PARTS; i++)
        p.parts[i] = &letter;
    assert_int_equal(module_load(&builder, &p, &module), HW_OK);
    assert_int_equal(strlen(module), 1 + MODULE_PARTS);
    free(module);
    p.parts[MODULE_PARTS - 1] = NULL;
    assert_true(compiles(&p));
}

static void an_image_that_the_driver_refuses(void **state)
{
    (void)state;
    assert_true(compiles(&program));
    start(directory);
    vendor.refuse = 1;
    assert_true(compiles(&program));
    assert_int_equal(vendor.loaded, 2);
}

static void a_compiler_that_fails(void **state)
{
    char endless[2 * MODULE_LOG_MOST];
    void *module = NULL;
    (void)state;
    vendor.compile_status = HW_DRIVER;
    vendor.log = "line 3: no such type: float17";
    assert_int_equal(module_load(&builder, &program, &module), HW_DRIVER);
    assert_string_equal(host.message, "cannot compile rmsnorm f16 for Test GPU t1: "
                                      "line 3: no such type: float17");
    vendor.log = NULL;
    assert_int_equal(module_load(&builder, &program, &module), HW_DRIVER);
    assert_says(host.message, "no log");
    memset(endless, 'e', sizeof endless);
    vendor.log = endless;
    assert_int_equal(module_load(&builder, &program, &module), HW_DRIVER);
    assert_int_equal(strlen(host.message),
                     strlen("cannot compile rmsnorm f16 for Test GPU t1: ") +
                         MODULE_LOG_MOST - 1);
    start(directory);
    assert_true(compiles(&program)); /* a failure is not kept */
}

static void an_image_that_cannot_be_loaded_is_not_kept(void **state)
{
    void *module = NULL;
    (void)state;
    vendor.load_status = HW_NO_MEMORY;
    assert_int_equal(module_load(&builder, &program, &module), HW_NO_MEMORY);
    start(directory);
    assert_true(compiles(&program));
}

static void without_a_cache(void **state)
{
    (void)state;
    start("");
    assert_true(compiles(&program));
    assert_true(compiles(&program));
    assert_int_equal(host.log_lines, 0);
}

/* A vendor that can load without an image makes none if it would not be kept. */
static void without_an_image(void **state)
{
    void *module = NULL;
    (void)state;
    builder.make = make;
    assert_true(compiles(&program));
    assert_int_equal(vendor.made, 0);
    start("");
    builder.make = make;
    assert_int_equal(module_load(&builder, &program, &module), HW_OK);
    assert_string_equal(module, "-O:head body");
    free(module);
    assert_int_equal(vendor.made, 1);
    assert_int_equal(vendor.loaded, 0);
    vendor.compile_status = HW_DRIVER;
    vendor.log = "line 3";
    assert_int_equal(module_load(&builder, &program, &module), HW_DRIVER);
    assert_string_equal(host.message, "cannot compile rmsnorm f16 for Test GPU t1: line 3");
}

static void a_cache_that_cannot_be_used_costs_one_line(void **state)
{
    (void)state;
    start("/dev/null/hw");
    assert_true(compiles(&program));
    assert_true(compiles(&program));
    assert_int_equal(host.log_lines, 1);
    assert_string_equal(host.log, "compiled programs are not kept: cannot use directory "
                                  "/dev/null/hw: Not a directory");
    assert_int_equal(host.log_level, HW_LOG_DEBUG);
}

/* The user can fix it, and the message says how. */
static void a_cache_that_others_may_write_to_is_a_warning(void **state)
{
    char remedy[400];
    (void)state;
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(chmod(directory, 0775), 0);
    start(directory);
    assert_true(compiles(&program));
    assert_true(compiles(&program));
    assert_int_equal(host.log_lines, 1);
    assert_int_equal(host.log_level, HW_LOG_WARN);
    snprintf(remedy, sizeof remedy, "may write to it; run chmod go-w %s", directory);
    assert_says(host.log, remedy);
    assert_int_equal(chmod(directory, 0755), 0); /* what it says */
    assert_true(compiles(&program));
    assert_false(compiles(&program));
    assert_int_equal(host.log_lines, 1);
}

static void several_processes_at_once(void **state)
{
    enum { PROCESSES = 4 };
    pid_t child[PROCESSES];
    (void)state;
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            void *module = NULL;
            const int32_t result = module_load(&builder, &program, &module);
            _exit(result || strcmp(module, "-O:head body") != 0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    assert_false(compiles(&program));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(compiled_once),
        TEST(compiled_anew_for_each_difference),
        TEST(all_parts_are_used),
        TEST(an_image_that_the_driver_refuses),
        TEST(a_compiler_that_fails),
        TEST(an_image_that_cannot_be_loaded_is_not_kept),
        TEST(without_a_cache),
        TEST(without_an_image),
        TEST(a_cache_that_cannot_be_used_costs_one_line),
        TEST(a_cache_that_others_may_write_to_is_a_warning),
        TEST(several_processes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
