/* SPDX-License-Identifier: MIT */
/* test_owners.c - plugins, plugins.lock, the configuration file, the cache and hw-probe are used
 * only if nobody else may have written them. test_permissions.c tests all combinations. This file
 * tests which files are checked, in processes of root and of another user. */
#define _GNU_SOURCE
#include "fixture.h"
#include "permissions.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a process of the user's own, because hw-probe checks more than the effective user. */
static void as(uid_t caller, void (*act)(void))
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (setgroups(0, NULL) || setresgid(caller, caller, caller) ||
            setresuid(caller, caller, caller))
            _exit(99);
        act();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static struct {
    struct hw_options options;
    char path[4096];    /* of the plugins */
    const char *wanted; /* the reason of hw_good.so in it */
    const char *what;
    bool recalled; /* and whether its verdict is known */
} visit;

static void expect(bool good, const char *found_instead)
{
    if (good)
        return;
    print_error("user %u, %s: %s, not %s\n", (unsigned)geteuid(), visit.what, found_instead,
                visit.wanted);
    _exit(1);
}

static void open_and_look(void)
{
    struct hw_context *context;
    char file[4200];
    const enum hw_status status = open_on(visit.path, &visit.options, &context);
    expect(!status, hw_message());
    snprintf(file, sizeof file, "%s/hw_good.so", visit.path);
    json_t *json = report(context);
    const json_t *entry = candidate(json, file);
    expect(!strcmp(text_of(entry, "reason"), visit.wanted), text_of(entry, "message"));
    expect(json_is_true(json_object_get(entry, "recalled")) == visit.recalled,
           visit.recalled ? "it was tried" : "its verdict was known");
    json_decref(json);
    hw_close(context);
}

/* Makes files that the caller may use. */
static void put_good(const char *directory)
{
    make_directory(directory);
    put_plugin(directory, "good");
}

static void prepare(const char *path, const struct hw_options *options)
{
    memset(&visit, 0, sizeof visit);
    snprintf(visit.path, sizeof visit.path, "%s", path);
    visit.options = *options;
    visit.options.flags |= HW_OPEN_ANYWAY;
}

static const struct thing some[] = {
    { 0, 0, 0644, NO_LIST },          { 0, 0, 0664, NO_LIST },
    { USER, USER, 0664, NO_LIST },    { USER, OTHER, 0664, NO_LIST },
    { USER, USER, 0646, NO_LIST },    { USER, USER, 0644, OTHER_WRITES },
    { USER, USER, 0600, NO_LIST },    { OTHER, USER, 0664, NO_LIST },
    { USER, USER, 0644, OTHER_READS }
};

static void test_plugin(void **state)
{
    (void)state;
    put_good(lair("plugin"));
    prepare(lair("plugin"), &(struct hw_options){ .cache_dir = "off" });
    for (size_t i = 0; i < COUNT(some); i++)
        for (size_t who = 0; who < 2; who++) {
            if (!thing_make(lair("plugin/hw_good.so"), &some[i]))
                continue;
            visit.what = thing_text(&some[i]);
            visit.wanted = right_of_file(&some[i], users[who]);
            as(users[who], open_and_look);
        }
}

/* The lock lists nothing, so the plugin is always rejected. The reason shows whether the lock was
 * read. */
static void test_lock(void **state)
{
    (void)state;
    put_good(lair("lock"));
    write_file(lair("lock/plugins.lock"), "", 0);
    prepare(lair("lock"), &(struct hw_options){ .cache_dir = "off" });
    for (size_t i = 0; i < COUNT(some); i++)
        for (size_t who = 0; who < 2; who++) {
            if (!thing_make(lair("lock/plugins.lock"), &some[i]))
                continue;
            const char *right = right_of_file(&some[i], users[who]);
            visit.what = thing_text(&some[i]);
            visit.wanted = *right ? right : "not-locked";
            as(users[who], open_and_look);
        }
}

/* If the file is read, it disables the plugin. */
static void test_config(void **state)
{
    (void)state;
    static const char text[] = "disable = good\n";
    put_good(lair("config"));
    write_file(lair("config/hw.conf"), text, sizeof text - 1);
    for (size_t i = 0; i < COUNT(some); i++)
        for (size_t who = 0; who < 2; who++) {
            if (!thing_make(lair("config/hw.conf"), &some[i]))
                continue;
            const char *right = right_of_file(&some[i], users[who]);
            prepare(lair("config"),
                    &(struct hw_options){ .cache_dir = "off",
                                          .config = lair("config/hw.conf") });
            visit.what = thing_text(&some[i]);
            visit.wanted = *right ? "" : "disabled";
            as(users[who], open_and_look);
        }
}

static char *only_entry(const char *directory)
{
    static char path[4600];
    FILE *list;
    char command[4400];
    snprintf(command, sizeof command, "ls %s", directory);
    list = popen(command, "r");
    assert_non_null(list);
    assert_int_equal(
        fscanf(list, "%255s", path + snprintf(path, sizeof path, "%s/", directory)), 1);
    pclose(list);
    return path;
}

/* Only the user itself may have written a verdict, not even root. */
static bool counts(const struct thing *thing, uid_t caller)
{
    return thing->owner == caller && !(thing->mode & 022) && thing->list != OTHER_WRITES;
}

/* A new cache for each row, because a rejected verdict is replaced. */
static void try_cache(uid_t caller, const struct thing *thing, bool place, unsigned number)
{
    char cache[4096], verdicts[4200];
    snprintf(cache, sizeof cache, "%s", lair("cache-%u", number));
    snprintf(verdicts, sizeof verdicts, "%s/verdicts.d", cache);
    make_directory(cache);
    assert_int_equal(chown(cache, caller, caller), 0);
    prepare(lair("cached"), &(struct hw_options){ .cache_dir = cache });
    visit.what = thing_text(thing);
    visit.wanted = "";
    as(caller, open_and_look);
    if (!thing_make(place ? verdicts : only_entry(verdicts), thing))
        return;
    visit.recalled = counts(thing, caller);
    as(caller, open_and_look);
}

static void test_cache(void **state)
{
    static const struct thing entries[] = { { 0, 0, 0600, NO_LIST },
                                            { USER, USER, 0600, NO_LIST },
                                            { OTHER, OTHER, 0666, NO_LIST },
                                            { USER, USER, 0620, NO_LIST },
                                            { USER, USER, 0602, NO_LIST },
                                            { USER, USER, 0644, OTHER_READS },
                                            { USER, USER, 0600, OTHER_WRITES },
                                            { 0, 0, 0660, NO_LIST } };
    static const struct thing places[] = {
        { 0, 0, 0755, NO_LIST },           { USER, USER, 0755, NO_LIST },
        { OTHER, OTHER, 0777, NO_LIST },   { USER, USER, 0770, NO_LIST },
        { USER, USER, 0703, NO_LIST },     { USER, USER, 01777, NO_LIST },
        { USER, USER, 0755, OTHER_READS }, { USER, USER, 0700, OTHER_WRITES }
    };
    unsigned number = 0;
    (void)state;
    put_good(lair("cached"));
    for (size_t who = 0; who < 2; who++) {
        for (size_t i = 0; i < COUNT(entries); i++)
            try_cache(users[who], &entries[i], false, number++);
        for (size_t i = 0; i < COUNT(places); i++)
            try_cache(users[who], &places[i], true, number++);
    }
}

/* hw-probe is in this program's directory: see main(). */
static bool may_run(const struct thing *file, uid_t caller)
{
    const unsigned shift = caller == file->owner ? 6 : caller == file->group ? 3 : 0;
    return caller == 0 ? (file->mode & 0111) != 0 : (file->mode >> shift & 1);
}

static void try_probe(const char *path, const struct thing *thing, const char *right[2])
{
    if (!thing_make(path, thing))
        return;
    for (size_t who = 0; who < 2; who++) {
        visit.what = thing_text(thing);
        visit.wanted = *right[who] ? "no-helper" : "";
        as(users[who], open_and_look);
    }
}

static void test_probe(void **state)
{
    static const struct thing usual = { 0, 0, 0755, NO_LIST };
    static const struct thing rows[] = {
        { USER, USER, 0755, NO_LIST }, { OTHER, OTHER, 0755, NO_LIST },
        { USER, USER, 0775, NO_LIST }, { USER, OTHER, 0775, NO_LIST },
        { 0, 0, 0757, NO_LIST },       { 0, 0, 0644, NO_LIST },
        { 0, 0, 0700, NO_LIST },       { 0, 0, 0755, OTHER_WRITES },
        { 0, 0, 0755, OTHER_READS },   { 0, OTHER, 01777, NO_LIST },
        { 0, OTHER, 01775, NO_LIST },  { 0, 0, 0755, NO_LIST },
    };
    char probe[4200], directory[4096];
    (void)state;
    snprintf(directory, sizeof directory, "%s", getenv("HW_TEST_HOME"));
    snprintf(probe, sizeof probe, "%s/hw-probe", directory);
    put_good(lair("probe"));
    prepare(lair("probe"), &(struct hw_options){ .cache_dir = "off" });
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *file[2], *above[2];
        for (size_t who = 0; who < 2; who++) {
            file[who] = right_of_file(&rows[i], users[who]);
            if (!*file[who] && !may_run(&rows[i], users[who]))
                file[who] = "not executable";
            above[who] = right_of_directory(&rows[i], users[who]);
        }
        try_probe(probe, &rows[i], file);
        thing_make(probe, &usual);
        if ((rows[i].mode & 0111) == 0111) /* which everybody may search */
            try_probe(directory, &rows[i], above);
        thing_make(directory, &usual);
    }
}

static void copy_to(const char *from, const char *directory, const char *name)
{
    char path[4200];
    size_t size;
    unsigned char *bytes = read_file(from, &size);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    write_file(path, bytes, size);
    assert_int_equal(chmod(path, 0755), 0);
    free(bytes);
}

/* The library in this program looks for hw-probe in the program's directory. Both are therefore
 * copied to a directory of their own, where the tests run. */
static int run_copy(void)
{
    char directory[] = "/tmp/hw-test-XXXXXX", program[64], probe[64];
    int status = 1;
    if (!mkdtemp(directory) || chmod(directory, 0755))
        return 1;
    copy_to("/proc/self/exe", directory, "test");
    copy_to(PROBE, directory, "hw-probe");
    snprintf(program, sizeof program, "%s/test", directory);
    snprintf(probe, sizeof probe, "%s/hw-probe", directory);
    const pid_t child = fork();
    if (child == 0) {
        setenv("HW_TEST_HOME", directory, 1);
        execl(program, program, (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    unlink(program);
    unlink(probe);
    rmdir(directory);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plugin), cmocka_unit_test(test_lock),
        cmocka_unit_test(test_config), cmocka_unit_test(test_cache),
        cmocka_unit_test(test_probe),
    };
    if (geteuid() != 0) {
        puts("not applicable: only root can give files to other users");
        return 77;
    }
    if (!getenv("HW_TEST_HOME"))
        return run_copy();
    unsetenv("HW_PROBE");
    return cmocka_run_group_tests_name("load owners", tests, lair_open, lair_close);
}
