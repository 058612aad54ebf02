/* SPDX-License-Identifier: MIT */
/* output.h - the result of a command: text, coloured and folded on a terminal, or JSON. Failing to
 * write any of it is an error.
 *
 * The result goes to `out_file`. out_begin() redirects descriptor 1 and `stdout` to standard error,
 * so that output of plugins and their drivers does not get into the result. */
#ifndef HW_TOOL_OUTPUT_H
#define HW_TOOL_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Set to 1 by --json and --csv: print the result as JSON, or its table as CSV. JSON wins. */
extern int out_json, out_csv;

/* The standard output that the process was started with. */
extern FILE *out_file;

/* The first and the last call of main. out_end() returns `status`, or 1 with a message if output
 * could not be written. If --json was given and the command failed without a result, it prints the
 * first complaint instead: {"schema", "error", "exit_status"}. A reader that leaves early
 * (`hw status | head -1`) is not an error. */
void out_begin(void);
int out_end(int status);

/* Prints to the result. On a terminal, the second form folds lines at blanks and indents the
 * continuation by `hang`. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_folded(int hang, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Keeps output of plugins in a file, so that out_forward() can tell that there was any. */
void out_capture(bool on);
/* Writes what was kept since the last call to standard error, and returns its bytes. It may be
 * called in a signal handler. */
size_t out_forward(void);

/* Whether the result is text for people: neither JSON nor CSV. */
bool out_is_text(void);

/* As fflush(). */
int out_flush(void);

/* Whether the result goes to a terminal, and whether its reader has gone. */
bool out_is_terminal(void);
bool out_is_closed(void);

/* The width of the terminal behind a descriptor; 0 if it has none or is not a terminal. */
int columns_of(int fd);

/* Escape sequences; empty strings unless colours are wanted: on a terminal, TERM is set and not
 * "dumb", NO_COLOR unset or empty (https://no-color.org). */
enum ink { PLAIN, BOLD, DIM, RED, GREEN, YELLOW };
const char *ink(enum ink which);

/* Looks for --json on a command line that could not be parsed. */
void out_look_for_json(int argc, const char **argv);

/* Prints one line to standard error: "hw status: " and the sentence. main sets the name. */
void complain_as(const char *command);
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "hw status" */
const char *complainer(void);

/* Prints `tree` to the result, indented, and releases the reference. */
void out_tree(json_t *tree);

/* A JSON string of any bytes, zeros included. Each byte that is not UTF-8 becomes U+FFFD. */
json_t *json_text(const char *bytes, size_t length);

/* Prints an array of objects as CSV (RFC 4180), a header line first. Its columns are the keys of
 * all rows in the order of their first use; members of inner objects are "outer.inner". Arrays are
 * left out. */
void out_csv_rows(const json_t *rows);

/* Escape control characters and bytes that are not UTF-8, in a copy of one text or in every string
 * below `tree`: names of files and devices may contain anything. */
void clean_text(char *to, size_t size, const char *text);
void clean_tree(json_t *tree);

/* "23.42 GiB", "64 KiB", "12 bytes"; whole numbers are exact. */
struct size_text {
    char text[32];
};
struct size_text size_text(uint64_t bytes);

#endif
