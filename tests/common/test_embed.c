/* SPDX-License-Identifier: MIT */
/* Embedded files equal the files on disk, byte by byte. The arguments are those files: first
 * `embedded_files`, then `kernel_text`. */
#include "common/embed.h"
#include "common/module.h"
#include "host.h"

#include <stdint.h>
#include <stdlib.h>

extern const struct embedded embedded_files[], kernel_text[];

static char **paths; /* the arguments */

static void check_file(const struct embedded *file, const char *path)
{
    const char *slash = strrchr(path, '/');
    unsigned char *bytes = malloc(file->bytes + 1);
    FILE *stream = fopen(path, "rb");
    assert_non_null(bytes);
    assert_non_null(stream);
    assert_string_equal(file->name, slash ? slash + 1 : path);
    assert_int_equal(fread(bytes, 1, file->bytes + 1, stream), file->bytes);
    assert_memory_equal(file->data, bytes, file->bytes);
    assert_int_equal(file->data[file->bytes], 0);
    assert_int_equal((uintptr_t)file->data % 64, 0);
    fclose(stream);
    free(bytes);
}

static char **check_list(const struct embedded *list, char **path)
{
    for (; list->name; list++, path++) {
        assert_non_null(*path);
        check_file(list, *path);
    }
    return path;
}

static void files_are_embedded_as_they_are(void **state)
{
    char **rest;
    (void)state;
    rest = check_list(embedded_files, paths);
    assert_true(rest - paths == 4);
    rest = check_list(kernel_text, rest);
    assert_null(*rest);
}

/* Headers first, in the list's order, then the kernel. */
static void a_program_of_one_kernel(void **state)
{
    static const char *const names[] = {
        "opencl.h",   "args.h",  "math.h",    "storage.h",
        "quantise.h", "group.h", "product.h", "rmsnorm.c"
    };
    enum { PARTS = sizeof names / sizeof names[0] };
    struct module_program program = { .parts = { &kernel_text[0], &kernel_text[0] } };
    (void)state;
    assert_true(module_parts(&program, kernel_text, "rmsnorm"));
    for (int i = 0; i < PARTS; i++)
        assert_string_equal(program.parts[i]->name, names[i]);
    for (int i = PARTS; i < MODULE_PARTS; i++)
        assert_null(program.parts[i]);
    assert_false(module_parts(&program, kernel_text, "rmsnor"));
    assert_false(module_parts(&program, kernel_text, "opencl"));
    assert_false(module_parts(&program, kernel_text, ""));
}

static void a_list_with_too_many_headers(void **state)
{
    struct embedded list[MODULE_PARTS + 2] = { { "a.c", NULL, 0 } };
    struct module_program program;
    (void)state;
    for (int i = 1; i < MODULE_PARTS; i++)
        list[i].name = "a.h";
    assert_true(module_parts(&program, list, "a"));
    assert_ptr_equal(program.parts[MODULE_PARTS - 1], list);
    list[MODULE_PARTS].name = "b.h";
    assert_false(module_parts(&program, list, "a"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_embedded_as_they_are),
        cmocka_unit_test(a_program_of_one_kernel),
        cmocka_unit_test(a_list_with_too_many_headers),
    };
    (void)argc;
    paths = argv + 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
