/* SPDX-License-Identifier: MIT */
/* test_permissions.c - who may have written a file: trust_open() with every combination of owners,
 * groups, modes, access control lists and links, of files and of their parent directories, for root
 * and for another user. */
#define _GNU_SOURCE
#include "load/trust.h"

#include "fixture.h"
#include "permissions.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the decision of trust_open() ---- */

static const char *found(const char *path, uid_t caller)
{
    struct distrust why = { REASON_NONE, "" };
    assert_int_equal(setegid(caller), 0);
    assert_int_equal(seteuid(caller), 0);
    const int fd = trust_open(path, true, NULL, &why);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? "" : reason_rows[why.reason].code;
}

static unsigned compared, accepted;

static void compare(const char *path, uid_t caller, const char *wanted, const char *what)
{
    const char *got = found(path, caller);
    if (strcmp(got, wanted) != 0)
        fail_msg("user %u, %s: \"%s\", not \"%s\"", (unsigned)caller, what, got, wanted);
    compared++;
    accepted += !*wanted;
}

/* Fails unless some were accepted, and some were not. */
static void conclude(void)
{
    print_message("# %u combinations, %u of them accepted\n", compared, accepted);
    assert_true(accepted > 0 && accepted < compared);
    compared = accepted = 0;
}

/* ---- the tests ---- */

typedef void visit_fn(const char *path, const struct thing *thing);

/* Visits every combination of owner, group and list with these modes. */
static void for_all(const char *path, const mode_t *modes, size_t count, visit_fn *visit)
{
    for (size_t owner = 0; owner < COUNT(users); owner++)
        for (size_t group = 0; group < COUNT(users); group++)
            for (size_t mode = 0; mode < count; mode++)
                for (size_t list = 0; list < COUNT(lists); list++) {
                    const struct thing thing = { users[owner], users[group], modes[mode],
                                                 lists[list] };
                    if (thing_make(path, &thing))
                        visit(path, &thing);
                }
}

static void visit_file(const char *path, const struct thing *file)
{
    for (size_t i = 0; i < 2; i++)
        compare(path, users[i], right_of_file(file, users[i]), thing_text(file));
}

static void test_files(void **state)
{
    static const mode_t modes[] = { 0644, 0664, 0646, 0666, 0600,  0640,
                                    0620, 0602, 0444, 0755, 04755, 02775 };
    (void)state;
    make_directory(lair("files"));
    write_file(lair("files/file"), "", 0);
    for_all(lair("files/file"), modes, COUNT(modes), visit_file);
    conclude();
}

static const mode_t directory_modes[] = {
    0755, 0775, 0777, 0711, 01755, 01775, 01777, 02775
};

/* A file in the directory, and one below a subdirectory. */
static void visit_directory(const char *path, const struct thing *directory)
{
    char file[4200], deep[4200];
    snprintf(file, sizeof file, "%s/file", path);
    snprintf(deep, sizeof deep, "%s/deep/file", path);
    for (size_t i = 0; i < 2; i++) {
        const char *right = right_of_directory(directory, users[i]);
        compare(file, users[i], right, thing_text(directory));
        compare(deep, users[i], right, thing_text(directory));
    }
}

static void test_directories(void **state)
{
    (void)state;
    make_directory(lair("directories"));
    make_directory(lair("directories/d"));
    make_directory(lair("directories/d/deep"));
    write_file(lair("directories/d/file"), "", 0);
    write_file(lair("directories/d/deep/file"), "", 0);
    for_all(lair("directories/d"), directory_modes, COUNT(directory_modes),
            visit_directory);
    conclude();
}

/* Links to a file that everybody may use: directly, through a directory, and through another link.
 * The check is about who can replace a link, not about its target. */
static void visit_links(const char *path, const struct thing *directory)
{
    static const char *const names[] = { "link", "chain", "way/file" };
    for (size_t owner = 0; owner < COUNT(users); owner++) {
        char file[4200];
        for (size_t name = 0; name < COUNT(names); name++) {
            snprintf(file, sizeof file, "%s/%.*s", path, (int)strcspn(names[name], "/"),
                     names[name]);
            assert_int_equal(lchown(file, users[owner], users[owner]), 0);
        }
        for (size_t name = 0; name < COUNT(names); name++)
            for (size_t i = 0; i < 2; i++) {
                snprintf(file, sizeof file, "%s/%s", path, names[name]);
                compare(file, users[i], right_of_link(users[owner], directory, users[i]),
                        thing_text(directory));
            }
    }
}

static void test_links(void **state)
{
    (void)state;
    make_directory(lair("links"));
    make_directory(lair("links/d"));
    make_directory(lair("links/target"));
    write_file(lair("links/target/file"), "", 0);
    assert_int_equal(symlink("../target/file", lair("links/d/link")), 0);
    assert_int_equal(symlink("link", lair("links/d/chain")), 0);
    assert_int_equal(symlink(lair("links/target"), lair("links/d/way")), 0);
    for_all(lair("links/d"), directory_modes, COUNT(directory_modes), visit_links);
    conclude();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_links),
    };
    if (geteuid() != 0) {
        puts("not applicable: only root can give files to other users");
        return 77;
    }
    return setgroups(0, NULL) ||
           cmocka_run_group_tests_name("load permissions", tests, lair_open, lair_close);
}
