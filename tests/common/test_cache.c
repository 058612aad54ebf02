/* SPDX-License-Identifier: MIT */
/* The cache of compiled programs: stored programs are found again. A damaged entry or directory
 * counts as missing, and the next write replaces it. */
#define _GNU_SOURCE
#include "common/cache.h"
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HEADER_BYTES = 80, NOBODY = 65534 };

static char base[256];      /* a fresh directory for each test */
static char directory[300]; /* the cache in it, not made yet */
static char entry[400];     /* the file of `key` */
static const uint8_t key[SHA256_BYTES] = { 0xab, 0xcd, 1 };
static const char program[] = "forty-two bytes of a program for a device";

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(base, sizeof base, "%s/hw-cache-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(base))
        return -1;
    snprintf(directory, sizeof directory, "%s/above/hw", base);
    snprintf(entry, sizeof entry, "%s/abcd01%058d", directory, 0);
    return 0;
}

static int teardown(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    return system(command);
}

static void store(void)
{
    char why[256] = "";
    if (!cache_write(directory, key, program, sizeof program, why, sizeof why))
        fail_msg("%s", why);
}

static bool is_stored(void)
{
    size_t bytes = 0;
    char *data = cache_read(directory, key, &bytes);
    const bool found = data != NULL;
    if (found) {
        assert_int_equal(bytes, sizeof program);
        assert_memory_equal(data, program, bytes);
    }
    free(data);
    return found;
}

static void cannot_store(const char *part)
{
    char why[512] = "";
    assert_false(cache_write(directory, key, program, sizeof program, why, sizeof why));
    assert_says(why, part);
    assert_false(is_stored());
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static size_t read_file(const char *path, char *data, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t bytes = fread(data, 1, size, file);
    fclose(file);
    return bytes;
}

static int count_files(const char *path)
{
    DIR *list = opendir(path);
    int count = 0;
    for (const struct dirent *item; list && (item = readdir(list));)
        count += item->d_name[0] != '.';
    if (list)
        closedir(list);
    return count;
}

/* ---- SHA-256 ---- */

static void digest_is(const void *data, size_t bytes, size_t step, const char *hex)
{
    uint8_t digest[SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];
    struct sha256 hash;
    sha256_begin(&hash);
    for (size_t i = 0; i < bytes; i += step)
        sha256_add(&hash, (const char *)data + i, bytes - i < step ? bytes - i : step);
    sha256_end(&hash, digest);
    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, hex);
}

/* The examples of FIPS 180-4. */
static void sha256_of_the_standard(void **state)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char *million = malloc(1000000);
    (void)state;
    assert_non_null(million);
    memset(million, 'a', 1000000);
    digest_is("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_is("abc", 3, 3,
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (size_t step = 1; step <= sizeof two; step++)
        digest_is(two, sizeof two - 1, step,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    digest_is(million, 1000000, 997,
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* ---- right ---- */

static void what_was_stored_comes_back(void **state)
{
    struct stat file;
    (void)state;
    assert_false(is_stored());
    assert_int_equal(count_files(base), 0); /* looking makes no directory */
    store();
    assert_true(is_stored());
    assert_int_equal(stat(directory, &file), 0);
    assert_int_equal(file.st_mode & 07777, 0700);
    assert_int_equal(stat(entry, &file), 0);
    assert_int_equal(file.st_mode & 07777, 0600);
    assert_int_equal(file.st_size, HEADER_BYTES + sizeof program);
    assert_int_equal(count_files(directory), 1);
}

static void a_second_write_replaces_the_first(void **state)
{
    char why[256] = "";
    size_t bytes = 0;
    (void)state;
    store();
    assert_true(cache_write(directory, key, "other", 5, why, sizeof why));
    char *data = cache_read(directory, key, &bytes);
    assert_int_equal(bytes, 5);
    assert_memory_equal(data, "other", 5);
    free(data);
    assert_int_equal(count_files(directory), 1);
}

static void sizes_have_limits(void **state)
{
    char why[256] = "";
    (void)state;
    assert_false(cache_write(directory, key, program, 0, why, sizeof why));
    assert_false(
        cache_write(directory, key, program, (size_t)CACHE_ENTRY_MAX + 1, why, sizeof why));
    assert_says(why, "not cached");
    assert_int_equal(count_files(base), 0);
}

/* ---- damaged entries ---- */

static void each_byte_counts(void **state)
{
    char whole[HEADER_BYTES + sizeof program];
    (void)state;
    store();
    assert_int_equal(read_file(entry, whole, sizeof whole), sizeof whole);
    for (size_t i = 0; i < sizeof whole; i++) {
        whole[i] ^= 0x10;
        write_file(entry, whole, sizeof whole);
        if (is_stored())
            fail_msg("byte %zu does not matter", i);
        whole[i] ^= 0x10;
    }
    write_file(entry, whole, sizeof whole);
    assert_true(is_stored());
}

static void each_length_counts(void **state)
{
    char whole[HEADER_BYTES + sizeof program + 1];
    (void)state;
    store();
    const size_t bytes = read_file(entry, whole, sizeof whole);
    whole[bytes] = '\0';
    for (size_t i = 0; i <= bytes + 1; i++) {
        write_file(entry, whole, i);
        if (is_stored() != (i == bytes))
            fail_msg("%zu bytes of %zu", i, bytes);
    }
    store();
    assert_true(is_stored());
}

/* The entry is valid, except for its size. */
static void an_entry_beyond_the_limit(void **state)
{
    const uint64_t bytes = (uint64_t)CACHE_ENTRY_MAX + 1;
    static const char zeros[65536];
    char header[HEADER_BYTES];
    struct sha256 hash;
    (void)state;
    sha256_begin(&hash);
    for (uint64_t i = 0; i < bytes / sizeof zeros; i++)
        sha256_add(&hash, zeros, sizeof zeros);
    sha256_add(&hash, zeros, bytes % sizeof zeros);
    store();
    read_file(entry, header, sizeof header);
    memcpy(header + 8, &bytes, sizeof bytes);
    sha256_end(&hash, (uint8_t *)header + 48);
    write_file(entry, header, sizeof header);
    assert_int_equal(truncate(entry, (off_t)(sizeof header + bytes)), 0);
    size_t found = 0;
    assert_null(cache_read(directory, key, &found));
}

static void the_entry_of_another_key(void **state)
{
    uint8_t other[SHA256_BYTES];
    char name[400], why[256];
    (void)state;
    memset(other, 0x77, sizeof other);
    assert_true(cache_write(directory, other, program, sizeof program, why, sizeof why));
    snprintf(name, sizeof name, "%s/", directory);
    for (int i = 0; i < SHA256_BYTES; i++)
        strcat(name, "77");
    assert_int_equal(rename(name, entry), 0);
    assert_false(is_stored());
}

/* ---- entries that are not ours ---- */

static void a_symlink(void **state)
{
    char target[400];
    (void)state;
    store();
    snprintf(target, sizeof target, "%s/target", base);
    assert_int_equal(rename(entry, target), 0);
    assert_int_equal(symlink(target, entry), 0);
    assert_false(is_stored());
    store(); /* replaces the link, not what it points to */
    assert_true(is_stored());
    assert_int_equal(unlink(target), 0);
    assert_true(is_stored());
}

static void a_fifo_and_a_directory(void **state)
{
    (void)state;
    store();
    assert_int_equal(unlink(entry), 0);
    assert_int_equal(mkfifo(entry, 0600), 0);
    assert_false(is_stored());
    store();
    assert_true(is_stored());
    assert_int_equal(unlink(entry), 0);
    assert_int_equal(mkdir(entry, 0700), 0);
    assert_false(is_stored());
    store();
    assert_true(is_stored());
    assert_int_equal(count_files(directory), 1);
}

static void a_directory_with_something_in_it(void **state)
{
    char inside[500];
    (void)state;
    store();
    assert_int_equal(unlink(entry), 0);
    assert_int_equal(mkdir(entry, 0700), 0);
    snprintf(inside, sizeof inside, "%s/thesis", entry);
    write_file(inside, "42", 2);
    cannot_store("cannot write abcd0100... to directory");
    cannot_store("not empty");
    assert_int_equal(access(inside, F_OK), 0);
    assert_int_equal(count_files(directory), 1);
}

static void others_may_write(void **state)
{
    (void)state;
    store();
    assert_int_equal(chmod(entry, 0620), 0);
    assert_false(is_stored());
    store();
    assert_true(is_stored());
    assert_int_equal(chmod(directory, 0702), 0);
    cannot_store("another user owns it or may write to it");
    assert_true(cache_is_shared(directory));
    assert_int_equal(chmod(directory, 0700), 0);
    assert_false(cache_is_shared(directory));
    assert_true(is_stored());
}

static void another_owner(void **state)
{
    (void)state;
    if (geteuid())
        return; /* only root can give files away */
    store();
    assert_int_equal(chown(entry, NOBODY, NOBODY), 0);
    assert_false(is_stored());
    store();
    assert_true(is_stored());
    assert_int_equal(chown(directory, NOBODY, NOBODY), 0);
    cannot_store("another user owns it");
    assert_int_equal(chmod(directory, 0777), 0);
    assert_false(cache_is_shared(directory)); /* that would not help */
}

static void a_symlinked_directory(void **state)
{
    char target[400];
    (void)state;
    store();
    snprintf(target, sizeof target, "%s/target", base);
    assert_int_equal(rename(directory, target), 0);
    assert_int_equal(symlink(target, directory), 0);
    cannot_store("cannot use directory");
}

/* ---- directories that cannot be used ---- */

static void no_directory_can_be_made(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/file", base);
    write_file(directory, "", 0);
    cannot_store("Not a directory");
    strcat(directory, "/hw");
    cannot_store("Not a directory");
    memset(directory, 'x', sizeof directory - 1);
    directory[0] = '/';
    cannot_store("File name too long");
}

/* Root may write everywhere, so a child of another user tries. */
static void a_directory_without_write_permission(void **state)
{
    (void)state;
    assert_int_equal(chmod(base, 0777), 0);
    const pid_t child = fork();
    if (child == 0) {
        char why[256] = "";
        if (geteuid() == 0 && setuid(NOBODY))
            _exit(2);
        if (!cache_write(directory, key, program, sizeof program, why, sizeof why) ||
            chmod(directory, 0500))
            _exit(3);
        const uint8_t other[SHA256_BYTES] = { 9 };
        const bool stored = cache_write(directory, other, program, sizeof program, why,
                                        sizeof why);
        _exit(stored || !strstr(why, "Permission denied") || !is_stored());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- room ---- */

/* A sparse file of 300 MiB, last written `age` seconds ago. */
static void old_file(const char *name, int age)
{
    char path[512];
    const struct timespec when[2] = { { time(NULL) - age, 0 }, { time(NULL) - age, 0 } };
    snprintf(path, sizeof path, "%s/%s", directory, name);
    write_file(path, "", 0);
    assert_int_equal(truncate(path, 300 << 20), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, when, 0), 0);
}

static bool is_there(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static void the_oldest_entries_make_room(void **state)
{
    char first[128], second[128], third[128];
    (void)state;
    store();
    snprintf(first, sizeof first, "%064d.123-456", 1); /* left by a process that died */
    snprintf(second, sizeof second, "%064d", 2);
    snprintf(third, sizeof third, "%064d", 3);
    old_file(second, 200);
    old_file(first, 300);
    old_file(third, 100);
    old_file("thesis", 400); /* not an entry: the user's */
    store();
    assert_true(is_stored());
    assert_false(is_there(first));
    assert_false(is_there(second));
    assert_true(is_there(third));
    assert_true(is_there("thesis"));
}

/* Nothing can unlink() a directory, so it must not prevent the removal of other entries. */
static void a_directory_does_not_stop_making_room(void **state)
{
    char folder[128], path[512], old[128], young[128];
    const struct timespec when[2] = { { 1, 0 }, { 1, 0 } };
    (void)state;
    store();
    snprintf(folder, sizeof folder, "%064d", 1);
    snprintf(old, sizeof old, "%064d", 2);
    snprintf(young, sizeof young, "%064d", 3);
    snprintf(path, sizeof path, "%s/%s", directory, folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, when, 0), 0);
    old_file(old, 200);
    old_file(young, 100);
    store();
    assert_false(is_there(old));
    assert_true(is_there(young));
    assert_int_equal(rmdir(path), 0);
}

/* ---- several processes ---- */

enum { WRITERS = 4, ROUNDS = 300, RACE_BYTES = 20000 };

/* Stores programs that consist of one repeated letter. Every process must read whole ones. */
static int race(int writer)
{
    static char data[RACE_BYTES];
    memset(data, 'a' + writer, sizeof data);
    for (int i = 0; i < ROUNDS; i++) {
        char why[256];
        size_t bytes = 0;
        if (!cache_write(directory, key, data, sizeof data, why, sizeof why))
            return 2;
        char *found = cache_read(directory, key, &bytes);
        const bool whole = found && bytes == sizeof data && found[0] >= 'a' &&
                           found[0] < 'a' + WRITERS &&
                           memcmp(found, found + 1, bytes - 1) == 0;
        free(found);
        if (!whole)
            return 3;
    }
    return 0;
}

static void several_processes_write_at_once(void **state)
{
    pid_t child[WRITERS];
    (void)state;
    for (int i = 0; i < WRITERS; i++) {
        child[i] = fork();
        if (child[i] == 0)
            _exit(race(i));
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_files(directory), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_of_the_standard),
        TEST(what_was_stored_comes_back),
        TEST(a_second_write_replaces_the_first),
        TEST(sizes_have_limits),
        TEST(each_byte_counts),
        TEST(each_length_counts),
        TEST(an_entry_beyond_the_limit),
        TEST(the_entry_of_another_key),
        TEST(a_symlink),
        TEST(a_fifo_and_a_directory),
        TEST(a_directory_with_something_in_it),
        TEST(others_may_write),
        TEST(another_owner),
        TEST(a_symlinked_directory),
        TEST(no_directory_can_be_made),
        TEST(a_directory_without_write_permission),
        TEST(the_oldest_entries_make_room),
        TEST(a_directory_does_not_stop_making_room),
        TEST(several_processes_write_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
