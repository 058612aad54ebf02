/* SPDX-License-Identifier: MIT */
/* output.c - see output.h. */
#define _GNU_SOURCE /* struct winsize, memfd_create() */

#include "output.h"

#include "base/write_size.h"
#include "command.h"
#include "util/text.h"
#include "util/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

int out_json, out_csv;
FILE *out_file;
static const char *command_name = "hw";
static char *first_complaint; /* JSON may have to repeat it */
static bool printed;          /* a JSON value has been printed */
static bool terminal, colours;

/* If a standard descriptor is closed, the next file opened would get its number and receive output.
 * Puts a descriptor there that fails like a closed one. */
static void keep_open(int fd)
{
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
        (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* From here on, output of plugins goes to standard error. */
static void take_result(void)
{
    int result = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    out_file = result < 0 ? NULL : fdopen(result, "w");
    if (out_file)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    else
        out_file = stdout; /* closed: writing fails there, and out_end() says so */
}

static int kept = -1; /* the file that descriptor 1 leads to; -1: to standard error */
static off_t forwarded;

size_t out_forward(void)
{
    char block[4096];
    size_t sum = 0;
    ssize_t bytes;
    while (kept >= 0 && (bytes = pread(kept, block, sizeof block, forwarded)) > 0) {
        (void)!write(STDERR_FILENO, block, (size_t)bytes);
        forwarded += bytes;
        sum += (size_t)bytes;
    }
    return sum;
}

void out_capture(bool on)
{
    const int file = on && out_file != stdout ? memfd_create("output", MFD_CLOEXEC) : -1;
    fflush(stdout);
    out_forward();
    if (out_file != stdout)
        dup2(file < 0 ? STDERR_FILENO : file, STDOUT_FILENO);
    if (kept >= 0)
        close(kept);
    kept = file;
    forwarded = 0;
}

void out_begin(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        keep_open(fd);
    /* Writing to a closed pipe then fails with EPIPE, which out_end() handles. */
    signal(SIGPIPE, SIG_IGN);

    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    terminal = isatty(STDOUT_FILENO);
    colours = terminal && term && *term && strcmp(term, "dumb") && !(no_color && *no_color);
    take_result();
    /* If a plugin crashes, the lines that it printed before are not lost. */
    if (out_file != stdout)
        setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
}

void out_look_for_json(int argc, const char **argv)
{
    for (int i = 1; i < argc; i++)
        out_json |= !strcmp(argv[i], "--json");
}

bool out_is_text(void)
{
    return !out_json && !out_csv;
}

int out_flush(void)
{
    return fflush(out_file);
}

bool out_is_terminal(void)
{
    return terminal;
}

bool out_is_closed(void)
{
    struct pollfd reader = { .fd = fileno(out_file), .events = POLLOUT };
    return poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR);
}

int columns_of(int fd)
{
    struct winsize size;
    return isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) ? size.ws_col : 0;
}

/* A program that uses --json reads standard output, so the error goes there, too, unless the
 * command printed a result. */
static void tell_failure(int status)
{
    out_tree(json_pack("{s:i, s:s, s:i}", "schema", 1, "error",
                       first_complaint ? first_complaint : "the command failed",
                       "exit_status", status));
}

int out_end(int status)
{
    if (status && out_json && !printed)
        tell_failure(status);
    free(first_complaint);
    first_complaint = NULL;
    bool lost = ferror(out_file);
    errno = 0;
    lost |= out_flush() != 0;
    if (!lost || out_is_closed())
        return status;
    complain("cannot write the output: %s",
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

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(out_file, format, args);
    va_end(args);
}

/* The columns that `length` bytes of UTF-8 take; escape sequences of ink() take none. */
static int columns_in(const char *text, size_t length)
{
    int columns = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\033')
            i += strcspn(text + i, "m");
        else
            columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return columns;
}

/* A word that is wider than the terminal is printed as it is. */
static void fold(int hang, int width, const char *text)
{
    int column = 0;
    while (*text) {
        const size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " ");
        const int columns = columns_in(text, blanks + word);
        if (column > hang && word && column + columns > width) {
            fprintf(out_file, "\n%*s%.*s", hang, "", (int)word, text + blanks);
            column = hang + columns - (int)blanks;
        } else {
            fprintf(out_file, "%.*s", (int)(blanks + word), text);
            column += columns;
        }
        text += blanks + word;
    }
}

void say_folded(int hang, const char *format, ...)
{
    const int width = columns_of(fileno(out_file));
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = width > 0 && length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (text) {
        vsnprintf(text, (size_t)length + 1, format, args);
        fold(hang, width, text);
        free(text);
    } else {
        vfprintf(out_file, format, args);
    }
    va_end(args);
}

static void clean_bytes(char *to, size_t size, const char *text, size_t left)
{
    const char *end = text + left;
    size_t used = 0;
    while (text < end && used + 5 < size) {
        const size_t length = utf8_printable_at(text, (size_t)(end - text));
        if (length == 0)
            used += (size_t)snprintf(to + used, size - used, "\\x%02x",
                                     (unsigned char)*text);
        memcpy(to + used, text, length);
        used += length;
        text += length ? length : 1;
    }
    to[used] = '\0';
}

void clean_text(char *to, size_t size, const char *text)
{
    clean_bytes(to, size, text, strlen(text));
}

void complain_as(const char *command)
{
    command_name = command;
}

const char *complainer(void)
{
    return command_name;
}

void complain(const char *format, ...)
{
    char text[6000], cleaned[sizeof text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    clean_text(cleaned, sizeof cleaned, text);
    out_flush();
    fprintf(stderr, "%s: %s\n", command_name, cleaned);
    if (!first_complaint)
        first_complaint = strdup(cleaned);
}

/* jansson escapes the control characters of ASCII, but not U+007F, and not those from U+0080 to
 * U+009F, which are two bytes in UTF-8 and control terminals, too. */
static int put_json(const char *text, size_t length, void *user)
{
    (void)user;
    for (size_t i = 0; i < length; i++) {
        const unsigned char *c = (const unsigned char *)text + i;
        if (c[0] == 0xc2 && i + 1 < length && c[1] < 0xa0)
            fprintf(out_file, "\\u%04x", (unsigned)text[++i] & 0xff);
        else if (*c == 0x7f)
            fputs("\\u007f", out_file);
        else
            fputc(*c, out_file);
    }
    return 0; /* a failed write shows in ferror(out_file), which out_end() reads */
}

void out_tree(json_t *tree)
{
    printed = true;
    (void)json_dump_callback(tree, put_json, NULL,
                             JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    fputc('\n', out_file);
    json_decref(tree);
}

json_t *json_text(const char *bytes, size_t length)
{
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    struct text copy = { 0 };
    json_t *string = json_stringn(bytes, length);
    bool good = true;
    for (size_t at = 0, size; !string && good && at < length; at += size ? size : 1) {
        size = utf8_at(bytes + at, length - at);
        good = size ? text_append(&copy, bytes + at, size)
                    : text_append(&copy, replacement, sizeof replacement - 1);
    }
    if (!string)
        string = good ? json_stringn(copy.bytes, copy.length) : json_string("");
    free(copy.bytes);
    return string;
}

/* Adds the members of an object to a flat one; inner names follow a dot. */
static void flatten(json_t *flat, const char *prefix, json_t *object)
{
    const char *key;
    json_t *value;
    char name[256];

    json_object_foreach (object, key, value) {
        snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (json_is_object(value))
            flatten(flat, name, value);
        else if (!json_is_array(value))
            json_object_set(flat, name, value);
    }
}

static void print_csv_text(const char *text)
{
    if (!strpbrk(text, "\",\r\n")) {
        fputs(text, out_file);
        return;
    }
    fputc('"', out_file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out_file);
        fputc(*text, out_file);
    }
    fputc('"', out_file);
}

static void print_csv_value(const json_t *value)
{
    if (json_is_string(value))
        print_csv_text(json_string_value(value));
    else if (json_is_integer(value))
        say("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        say("%.10g", json_real_value(value));
    else if (json_is_boolean(value))
        say("%s", json_is_true(value) ? "true" : "false");
}

void out_csv_rows(const json_t *rows)
{
    json_t *columns = json_object(), *flat = json_array(), *row, *unused;
    const char *column;
    size_t index, at;

    json_array_foreach ((json_t *)rows, index, row) {
        json_t *one = json_object();
        flatten(one, "", row);
        json_object_update_missing(columns, one);
        json_array_append_new(flat, one);
    }
    at = 0;
    json_object_foreach (columns, column, unused) {
        fputs(at++ ? "," : "", out_file);
        print_csv_text(column);
    }
    fputc('\n', out_file);
    json_array_foreach (flat, index, row) {
        at = 0;
        json_object_foreach (columns, column, unused) {
            fputs(at++ ? "," : "", out_file);
            print_csv_value(json_object_get(row, column));
        }
        fputc('\n', out_file);
    }
    json_decref(columns);
    json_decref(flat);
}

static void clean_string(json_t *string)
{
    const size_t length = json_string_length(string), size = 4 * length + 6;
    char *cleaned = malloc(size);
    if (!cleaned)
        return;
    clean_bytes(cleaned, size, json_string_value(string), length);
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

struct size_text size_text(uint64_t bytes)
{
    struct size_text size;
    write_size(bytes, size.text, sizeof size.text);
    return size;
}
