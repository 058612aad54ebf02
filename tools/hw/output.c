/* SPDX-License-Identifier: MIT */
/* output.c - terminal, colours, JSON, and whether it all arrived. */
#define _POSIX_C_SOURCE 200809L

#include "output.h"

#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int out_json;
static const char *complainer = "hw";
static char *first_complaint; /* in case that JSON has to say it */
static bool told;             /* a value has been printed */
static bool terminal, colours;

/* A closed standard descriptor would be given to the next file opened, and what is printed
 * would end up in that file. Takes its place with one that fails as the closed one did. */
static void keep_open(int fd)
{
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
        (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void out_begin(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        keep_open(fd);
    /* A closed pipe is then an error of a write, which out_end() understands. */
    signal(SIGPIPE, SIG_IGN);

    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    terminal = isatty(STDOUT_FILENO);
    colours = terminal && term && *term && strcmp(term, "dumb") && !(no_color && *no_color);
}

void out_look_for_json(int argc, const char **argv)
{
    for (int i = 1; i < argc; i++)
        out_json |= !strcmp(argv[i], "--json");
}

bool out_is_terminal(void)
{
    return terminal;
}

bool out_is_closed(void)
{
    struct pollfd reader = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR);
}

/* A program that asked for JSON reads standard output: what went wrong stands there, too,
 * unless the command had an answer all the same. */
static void tell_failure(int status)
{
    const char *error = first_complaint ? first_complaint : "it failed";
    json_t *words = json_string(error);
    if (!words) /* a name with bytes that are no UTF-8 */
        words = json_string("it failed; standard error says why");
    out_tree(json_pack("{s:i, s:o, s:i}", "schema", 1, "error", words, "status", status));
}

int out_end(int status)
{
    if (status && out_json && !told)
        tell_failure(status);
    free(first_complaint);
    first_complaint = NULL;
    bool lost = ferror(stdout);
    errno = 0;
    lost |= fflush(stdout) != 0;
    if (!lost || out_is_closed())
        return status;
    complain("can not write the output: %s",
             errno ? strerror(errno) : "an earlier write failed");
    return EXIT_FAILED;
}

const char *ink(enum ink which)
{
    static const char *const codes[] = {
        [PLAIN] = "\033[0m", [BOLD] = "\033[1m",   [DIM] = "\033[2m",
        [RED] = "\033[31m",  [GREEN] = "\033[32m", [YELLOW] = "\033[33m",
    };
    return colours ? codes[which] : "";
}

/* Control characters are ASCII's, and the C1 set as UTF-8 writes it. */
void clean_text(char *to, size_t size, const char *text)
{
    size_t used = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c && used + 5 < size; c++) {
        bool c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
        if (c1)
            c++;
        if (*c < ' ' || *c == 0x7f || c1)
            used += (size_t)snprintf(to + used, size - used, "\\x%02x", *c);
        else
            to[used++] = (char)*c;
    }
    to[used] = '\0';
}

void complain_as(const char *command)
{
    complainer = command;
}

void complain(const char *format, ...)
{
    char text[6000], cleaned[sizeof text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    clean_text(cleaned, sizeof cleaned, text);
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", complainer, cleaned);
    if (!first_complaint)
        first_complaint = strdup(cleaned);
}

void out_tree(json_t *tree)
{
    told = true;
    /* A failed write shows in ferror(stdout), which out_end() reads. */
    (void)json_dumpf(tree, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    putchar('\n');
    json_decref(tree);
}

static void clean_string(json_t *string)
{
    const char *text = json_string_value(string);
    size_t size = 4 * strlen(text) + 6;
    char *cleaned = malloc(size);
    if (!cleaned)
        return;
    clean_text(cleaned, size, text);
    (void)json_string_set_nocheck(string, cleaned);
    free(cleaned);
}

void clean_tree(json_t *tree)
{
    const char *key;
    json_t *child;
    size_t index;

    if (json_is_string(tree))
        clean_string(tree);
    json_array_foreach (tree, index, child)
        clean_tree(child);
    json_object_foreach (tree, key, child)
        clean_tree(child);
}

struct size_text gigabytes(uint64_t bytes)
{
    struct size_text size;
    snprintf(size.text, sizeof size.text, "%.2f GB",
             (double)bytes / (1024.0 * 1024.0 * 1024.0));
    return size;
}
