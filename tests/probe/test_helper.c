/* SPDX-License-Identifier: MIT */
/* test_helper.c - faults of the program hw-probe: missing, from another build, asked for another
 * file, or without resources. It is linked with the library's objects, which have no hw-probe
 * beside them. */
#define _GNU_SOURCE
/* Before cmocka, which defines a macro with the name of one of its functions. */
#include "cache/depends.h"
#include "load/probe.h"
#include "load/verdict.h"
#include "worker/link.h"

#include "fixture.h"

#include <build_stamp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A missing hw-probe is never ignored: the error names the program and the remedy. */
static void test_missing(void **state)
{
    struct hw_context *context;
    struct hw_options options = { .probe = "child", .flags = HW_OPEN_ANYWAY };
    (void)state;
    make_directory(lair("missing"));
    put_plugin(lair("missing"), "good");
    assert_int_equal(open_on(lair("missing"), &options, &context), HW_OK);
    json_t *json = report(context);
    const json_t *entry = candidate(json, lair("missing/hw_good.so"));
    assert_string_equal(text_of(entry, "reason"), "no-helper");
    assert_non_null(strstr(text_of(entry, "message"), "hw-probe"));
    assert_non_null(strstr(text_of(entry, "remedy"), "HW_PROBE=inproc"));
    assert_non_null(strstr(text_of(json, "open_error"), "hw-probe"));
    /* No verdict is remembered there. */
    assert_int_equal(unlink(lair(".cache/hw/verdicts.d/.locks")), 0);
    assert_int_equal(rmdir(lair(".cache/hw/verdicts.d")), 0);
    json_decref(json);
    hw_close(context);
}

/* ---- by hand ---- */

struct call {
    struct identity identity;
    char *arguments[PROBE_SETTINGS + 5];
};

static void prepare(struct call *call, const char *path)
{
    static char program[] = PROBE, stamp[] = HW_BUILD_STAMP, timeout[] = "probe_timeout=5";
    *call = (struct call){ .identity = identity_at(path),
                           .arguments = { program, stamp, strdup(path) } };
    call->arguments[PROBE_FILE] = call->arguments[PROBE_FOUND];
    call->arguments[PROBE_IDENTITY] = call->identity.text;
    call->arguments[PROBE_SETTINGS] = timeout;
}

/* Returns the code of the reason, or "nothing" if there is no verdict. */
static const char *run(const struct call *call)
{
    static unsigned char reply[65536];
    struct process process;
    struct verdict verdict;
    size_t size = 0;
    ptrdiff_t got;
    assert_int_equal(process_start(&process, call->arguments), 0);
    while ((got = process_read(&process, reply + size, sizeof reply - size)))
        if (got > 0)
            size += (size_t)got;
        else
            process_wait(&(const struct process *){ &process }, 1, 100000);
    assert_true(process_end(&process, 5000000));
    if (!verdict_decode(&verdict, reply, size))
        return "nothing";
    const enum reason reason = verdict.reason;
    verdict_free(&verdict);
    return reason_rows[reason].code;
}

static void test_arguments(void **state)
{
    static char other[] = "0.0.0", unknown[] = "nonsense=1";
    struct call call;
    (void)state;
    make_directory(lair("hand"));
    put_plugin(lair("hand"), "good");
    prepare(&call, lair("hand/hw_good.so"));
    assert_string_equal(run(&call), "");
    call.identity.text[0] ^= 1; /* another device */
    assert_string_equal(run(&call), "changed-file");
    call.identity.text[0] ^= 1;
    char *stamp = call.arguments[PROBE_STAMP];
    call.arguments[PROBE_STAMP] = other;
    assert_string_equal(run(&call), "nothing");
    call.arguments[PROBE_STAMP] = stamp;
    call.arguments[PROBE_SETTINGS] = unknown;
    assert_string_equal(run(&call), "nothing");
    free(call.arguments[PROBE_FILE]);
}

/* A shortage of descriptors says nothing about the plugin. */
static void test_shortage(void **state)
{
    static char shell[] = "/bin/sh", option[] = "-c";
    static char script[] = "ulimit -n 6; exec \"$0\" \"$@\"";
    struct call call, limited = { .arguments = { shell, option, script } };
    (void)state;
    prepare(&call, lair("hand/hw_good.so"));
    memcpy(limited.arguments + 3, call.arguments,
           (PROBE_SETTINGS + 1) * sizeof *call.arguments);
    assert_string_equal(run(&limited), "no-memory");
    free(call.arguments[PROBE_FILE]);
}

/* The same checks as in the library: other users can write to the file. */
static void test_trust(void **state)
{
    struct call call;
    (void)state;
    assert_int_equal(chmod(lair("hand/hw_good.so"), 0666), 0);
    prepare(&call, lair("hand/hw_good.so"));
    assert_string_equal(run(&call), "untrusted-mode");
    free(call.arguments[PROBE_FILE]);
}

/* The helper ended long ago, the application has reaped it, and its process ID belongs to another
 * child. */
static void test_stranger(void **state)
{
    static char program[] = "/bin/true";
    char *arguments[] = { program, NULL };
    struct process process;
    (void)state;
    assert_int_equal(link_start(&process, arguments), 0);
    if (process.handle < 0) { /* an old system: nothing tells the two */
        assert_true(process_end(&process, 5000000));
        skip();
    }
    assert_int_equal(waitpid((pid_t)process.id, NULL, 0), (pid_t)process.id);
    const pid_t stranger = fork();
    if (!stranger)
        for (;;)
            pause();
    process.id = stranger;
    assert_true(process_end(&process, 0));
    assert_int_equal(waitpid(stranger, NULL, WNOHANG), 0);
    kill(stranger, SIGKILL);
    assert_int_equal(waitpid(stranger, NULL, 0), stranger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),  cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_shortage), cmocka_unit_test(test_trust),
        cmocka_unit_test(test_stranger),
    };
    return cmocka_run_group_tests_name("probe helper", tests, lair_open, lair_close);
}
