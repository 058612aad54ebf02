/* SPDX-License-Identifier: MIT */
/* test_elevated.c - a program that runs with another user's rights (set-user-ID) opens a
 * context: no variable, file or option may make it load a plugin or turn a check off.
 *
 * Run as root, the program makes a set-user-ID copy of itself and runs the copy as a
 * third user. It links the library's objects, because the system's loader ignores
 * relative library paths in such a program. */
#define _GNU_SOURCE
#include <hw/hw.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static int expect(const char *text, const char *words, int wanted)
{
    if ((strstr(text, words) != NULL) == wanted)
        return 0;
    fprintf(stderr, "%s: %s\n%s\n", wanted ? "missing" : "not wanted", words, text);
    return 1;
}

/* Run by the copy, with HW_PLUGIN_PATH and HW_TRUST=off in its environment. */
static int elevated(const char *directory)
{
    static char text[1 << 16];
    struct hw_context *context;
    struct hw_options options = { .size = sizeof options,
                                  .flags = HW_OPEN_ANYWAY,
                                  .plugin_path = directory,
                                  .plugin_path_only = directory,
                                  .trust = "off",
                                  .log = "off" };
    if (!getauxval(AT_SECURE)) {
        puts("not applicable: set-user-ID has no effect in this directory");
        return NOT_HERE;
    }
    if (hw_open(&options, &context) ||
        hw_explain(context, text, sizeof text) >= sizeof text)
        return 1;
    int failed = expect(text, "\"elevated\":true", 1) + expect(text, "hw_good.so", 0) +
                 expect(text, directory, 1) + /* it is the value of the option */
                 expect(text, "\"source\":\"HW_", 0) +
                 expect(text, "\"source\":\"built-in\"", 1);
    hw_close(context);
    return failed != 0;
}

static int run_as_caller(const char *program, const char *directory)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        setenv("HW_PLUGIN_PATH", directory, 1);
        setenv("HW_TRUST", "off", 1);
        setenv("HW_BACKENDS", "good", 1);
        if (setgid(CALLER) == 0 && setuid(CALLER) == 0)
            execl(program, program, directory, (char *)NULL);
        _exit(1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status);
}

static int copy(const char *from, const char *to)
{
    char buffer[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    size_t bytes = 1;
    while (in && out && (bytes = fread(buffer, 1, sizeof buffer, in)) > 0)
        fwrite(buffer, 1, bytes, out);
    return !in || !out || fclose(in) || fclose(out);
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/hw-test-XXXXXX", program[64], plugin[64];
    if (argc == 2)
        return elevated(argv[1]);
    if (geteuid() != 0) {
        puts("not applicable: only root can make a set-user-ID program of somebody else's");
        return NOT_HERE;
    }
    if (!mkdtemp(directory) || chmod(directory, 0755))
        return 1;
    snprintf(program, sizeof program, "%s/elevated", directory);
    snprintf(plugin, sizeof plugin, "%s/hw_good.so", directory);
    int result = copy("/proc/self/exe", program) || copy(FIXTURES "/hw_good.so", plugin) ||
                 chown(program, OWNER, OWNER) || chmod(program, 04755);
    if (result == 0)
        result = run_as_caller(program, directory);
    unlink(program);
    unlink(plugin);
    rmdir(directory);
    return result;
}
