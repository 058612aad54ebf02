/* SPDX-License-Identifier: MIT */
/* test_elevated.c - a program with rights that its user does not have (set-user-ID, set-group-ID,
 * file capabilities) opens a context: no variable, file or option may make it load a plugin, turn a
 * check off or change a setting.
 *
 * Run as root, the program makes such copies of itself and runs them as a third user, with every
 * variable of core/settings.h set to a harmful value. The copies print all settings and the report,
 * which must be the same as without any variable. Each variable must also change the output of a
 * copy without such rights, which proves that the values are harmful.
 *
 * It links the library's objects, because the dynamic loader ignores relative library paths in such
 * a program. */
#define _GNU_SOURCE
#include "settings/config.h"

#include <hw/report.h>

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OWNER    12345
#define CALLER   54321
#define NOT_HERE 77 /* the exit status that Meson counts as a skip */

/* The leak checker would have to trace its own process, which a set-user-ID program may not
 * do. */
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
    return 1;
}

static char lair[] = "/tmp/hw-test-XXXXXX";
static int failures;

__attribute__((format(printf, 1, 2))) static const char *in_lair(const char *format, ...)
{
    static char paths[4][256];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    const int length = snprintf(path, sizeof paths[0], "%s/", lair);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + length, sizeof paths[0] - (size_t)length, format, arguments);
    va_end(arguments);
    return path;
}

/* ---- the output of a copy ---- */

static void print_settings(const struct settings *settings)
{
    const unsigned char *from = (const unsigned char *)&settings->fallback;
    const unsigned char *end = (const unsigned char *)&settings->warnings;
    for (int i = 0; i < SETTING_COUNT; i++)
        printf("%s=%s (%s)\n", setting_fields[i], settings->value[i].text,
               settings->value[i].source);
    while (from < end)
        printf("%02x", *from++);
    printf("\n");
    for (const struct note *note = settings->warnings; note; note = note->next)
        printf("warning: %s\n", note->text);
}

/* Without digits, because most numbers are times. */
static void print_report(struct hw_context *context)
{
    static char text[1 << 18];
    if (hw_explain(context, text, sizeof text) >= sizeof text)
        printf("the report is too long\n");
    for (const char *at = text; *at; at++)
        if (*at < '0' || *at > '9')
            putchar(*at);
    putchar('\n');
}

/* The settings and the report, without options or with harmful ones. */
static int describe(const char *directory)
{
    struct settings settings = { 0 };
    struct hw_context *context;
    struct hw_options options = { .size = sizeof options, .flags = HW_OPEN_ANYWAY };
    if (*directory) {
        options.plugin_path = directory;
        options.trust = "off";
    }
    printf("elevated: %d\n", getauxval(AT_SECURE) != 0);
    printf("status: %d\n", (int)config_read(&settings, &options, true));
    printf("trust: %s\n", settings.trust ? "on" : "off");
    print_settings(&settings);
    config_free(&settings);
    const enum hw_status status = hw_open(&options, &context);
    printf("opened: %d\n", (int)status);
    if (!status)
        print_report(context);
    hw_close(context);
    return 0;
}

/* ---- running one ---- */

/* A value that an attacker could use. Variables without one get nonsense, which is an error where
 * the variable is read. */
static const char *harm_of(int setting)
{
    static char path[256];
    static const struct {
        const char *variable, *value;
    } rows[] = {
        { "HW_BACKENDS", "good" },      { "HW_DISABLE", "*" },
        { "HW_REQUIRE", "good" },       { "HW_FALLBACK", "error" },
        { "HW_TRUST", "off" },          { "HW_PROBE", "inproc" },
        { "HW_PROBE_TIMEOUT", "3600" }, { "HW_THREADS", "3" },
        { "HW_PRECISION", "int8" },     { "HW_MEMORY_LIMIT", "1K" },
        { "HW_KERNEL", "portable" },    { "HW_LOG", "debug" },
        { "HW_SHADOW", "1/1" },
    };
    static const char *const paths[][2] = { { "HW_PLUGIN_PATH", "plugins" },
                                            { "HW_CONFIG", "plugins/hw.conf" },
                                            { "HW_CACHE_DIR", "plugins" } };
    const char *variable = setting_variables[setting];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].variable, variable))
            return rows[i].value;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (!strcmp(paths[i][0], variable)) {
            snprintf(path, sizeof path, "%s", in_lair("%s", paths[i][1]));
            return path;
        }
    return "nonsense";
}

enum { NOTHING = -1, ALL = -2, ALL_NONSENSE = -3, OTHERS = -4 };

/* Sets one setting's variable, or one of the list above; OTHERS: the variables of other
 * software. */
static void set_variables(int which)
{
    clearenv();
    for (int i = 0; i < SETTING_COUNT; i++)
        if (which == i || which == ALL || which == ALL_NONSENSE)
            setenv(setting_variables[i], which == ALL_NONSENSE ? "nonsense" : harm_of(i),
                   1);
    if (which != OTHERS && which != ALL)
        return;
    setenv("HOME", in_lair("home"), 1);
    setenv("XDG_CONFIG_HOME", in_lair("home/.config"), 1);
    setenv("XDG_CACHE_HOME", in_lair("plugins"), 1);
    setenv("LD_LIBRARY_PATH", in_lair("plugins"), 1);
    setenv("OMP_NUM_THREADS", "3", 1);
}

/* Runs the program as the user `CALLER` and returns its output; the caller frees it. */
static char *run(const char *program, int which, const char *directory)
{
    char *text = calloc(1, 1 << 18);
    int ends[2], status;
    if (!text || pipe(ends))
        return text;
    const pid_t child = fork();
    if (child == 0) {
        set_variables(which);
        dup2(ends[1], 1);
        dup2(ends[1], 2); /* the log */
        close(ends[0]);
        if (setgid(CALLER) == 0 && setuid(CALLER) == 0)
            execl(program, program, directory, (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    if (from) {
        (void)!fread(text, 1, (1 << 18) - 1, from);
        fclose(from);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        strcpy(text, "it failed");
    return text;
}

/* ---- the copies ---- */

static int copy(const char *from, const char *to)
{
    char buffer[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    size_t bytes = 1;
    while (in && out && (bytes = fread(buffer, 1, sizeof buffer, in)) > 0)
        fwrite(buffer, 1, bytes, out);
    return !in || !out || fclose(in) || fclose(out);
}

static int write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    return !file || fputs(text, file) < 0 || fclose(file);
}

/* The attacker's files. All pass the trust checks: only the elevated rights prevent their use. */
static int make_lair(void)
{
    return !mkdtemp(lair) || chmod(lair, 0755) || mkdir(in_lair("plugins"), 0755) ||
           mkdir(in_lair("home"), 0755) || mkdir(in_lair("home/.config"), 0755) ||
           mkdir(in_lair("home/.config/hw"), 0755) ||
           copy(FIXTURES "/hw_good.so", in_lair("plugins/hw_good.so")) ||
           write_text(in_lair("plugins/hw.conf"), "trust = off\n") ||
           write_text(in_lair("home/.config/hw/hw.conf"), "threads = 7\n") ||
           chmod(in_lair("plugins/hw_good.so"), 0755) ||
           copy("/proc/self/exe", in_lair("plain")) || chmod(in_lair("plain"), 0755);
}

static int set_user(const char *path)
{
    return chown(path, OWNER, CALLER) || chmod(path, 04755);
}

static int set_group(const char *path)
{
    return chown(path, CALLER, OWNER) || chmod(path, 02755);
}

static int set_root(const char *path)
{
    return chown(path, 0, 0) || chmod(path, 06755);
}

/* One capability, such as binding ports below 1024, in the kernel's format (capabilities(7)). */
static int set_capability(const char *path)
{
    const uint32_t bit = 10, version = 0x02000000, effective = 1;
    const uint32_t data[] = { version | effective, 1U << bit, 0, 0, 0 };
    return chmod(path, 0755) || prctl(PR_CAPBSET_READ, bit, 0, 0, 0) != 1 ||
           setxattr(path, "security.capability", data, sizeof data, 0);
}

static const struct way {
    const char *name;
    int (*elevate)(const char *path);
} ways[] = {
    { "set-user-ID", set_user },
    { "set-group-ID", set_group },
    { "set-user-ID root", set_root },
    { "capability", set_capability },
};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- expectations ---- */

static void fail(const char *who, const char *what, const char *text)
{
    fprintf(stderr, "%s: %s\n%s\n", who, what, text);
    failures++;
}

/* Finds the first line that differs. */
static const char *difference(const char *a, const char *b)
{
    while (*a && strcspn(a, "\n") == strcspn(b, "\n") && !memcmp(a, b, strcspn(a, "\n"))) {
        a += strcspn(a, "\n") + (a[strcspn(a, "\n")] == '\n');
        b += strcspn(b, "\n") + (b[strcspn(b, "\n")] == '\n');
    }
    return *a || *b ? b : NULL;
}

/* Each variable changes the output of a program without such rights. */
static void check_plain(void)
{
    char *bare = run(in_lair("plain"), NOTHING, "");
    if (!strstr(bare, "elevated: 0\n") || !strstr(bare, "opened: 0\n"))
        fail("plain", "it does not work", bare);
    for (int i = OTHERS; i < SETTING_COUNT; i++) {
        char *text = i == NOTHING ? NULL : run(in_lair("plain"), i, "");
        if (text && !difference(bare, text))
            fail("plain", i < 0 ? "these variables change nothing" : setting_variables[i],
                 text);
        free(text);
    }
    free(bare);
}

/* Options come from the program, so they apply, except those about trust and paths. */
static void check_options(const char *name, const char *program)
{
    char *text = run(program, ALL, in_lair("plugins"));
    if (!strstr(text, "\"elevated\":true") || !strstr(text, "trust: on\n") ||
        strstr(text, "hw_good.so") || strstr(text, "\"source\":\"HW_") ||
        !strstr(text, "\"source\":\"built-in\""))
        fail(name, "with options", text);
    free(text);
}

/* Returns whether such programs can be made here. */
static int check_elevated(const struct way *way)
{
    static const int all[] = { ALL, ALL_NONSENSE, OTHERS };
    char program[64];
    snprintf(program, sizeof program, "%s", in_lair("%d", (int)(way - ways)));
    if (copy("/proc/self/exe", program) || way->elevate(program))
        return 0;
    char *bare = run(program, NOTHING, "");
    const int is_elevated = strstr(bare, "elevated: 1\n") != NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all && is_elevated; i++) {
        char *text = run(program, all[i], "");
        if (!strstr(text, "opened: 0\n") || difference(bare, text))
            fail(way->name, "a variable was honoured", difference(bare, text));
        free(text);
    }
    if (is_elevated)
        check_options(way->name, program);
    free(bare);
    return is_elevated;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

int main(int argc, char **argv)
{
    int elevated = 0;
    if (argc == 2)
        return describe(argv[1]);
    if (geteuid() != 0) {
        puts("not applicable: only root can make a set-user-ID program of somebody else's");
        return NOT_HERE;
    }
    if (make_lair())
        return 1;
    check_plain();
    for (int i = 0; i < WAYS; i++) {
        const int is_here = check_elevated(&ways[i]);
        printf("%s: %s\n", ways[i].name, is_here ? "no variable is honoured" : "not here");
        elevated += is_here;
    }
    nftw(lair, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (!elevated)
        puts("not applicable: set-user-ID has no effect in this directory");
    return failures ? 1 : elevated ? 0 : NOT_HERE;
}
