/* SPDX-License-Identifier: MIT */
/* output.h - what every command does with its results: text with colours where they are
 * wanted, or JSON; and never a lost word when the disk is full. */
#ifndef HW_TOOL_OUTPUT_H
#define HW_TOOL_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* 1: results are JSON. Every command's --json sets it. */
extern int out_json;

/* First and last thing of main. out_end() answers `status`, or 1 with a message if something
 * that was written did not arrive. If JSON was asked for, and the command failed without a word
 * on standard output, it prints the first complaint there: {"schema", "error", "status"}. A
 * reader that went away early (`hw status | head -1`) had what it wanted and is no failure. */
void out_begin(void);
int out_end(int status);

/* Whether standard output is a terminal, and whether its reader has gone. */
bool out_is_terminal(void);
bool out_is_closed(void);

/* Escape sequences; empty strings unless colours are wanted: on a terminal, TERM is set and not
 * "dumb", NO_COLOR unset or empty (https://no-color.org). */
enum ink { PLAIN, BOLD, DIM, RED, GREEN, YELLOW };
const char *ink(enum ink which);

/* For words that were not understood, and so may hide a --json: looks for it. */
void out_look_for_json(int argc, const char **argv);

/* One line on standard error: "hw status: " and the sentence. Which command it is, main says. */
void complain_as(const char *command);
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints `tree` to standard output, indented, and gives up the reference. */
void out_tree(json_t *tree);

/* Names of files and devices are somebody else's words: copies them with whatever could steer a
 * terminal replaced by its escaped form; or does so in every string below `tree`. */
void clean_text(char *to, size_t size, const char *text);
void clean_tree(json_t *tree);

/* "23.42 GB". GB = 1024^3 bytes, as memory is counted. */
struct size_text {
    char text[24];
};
struct size_text gigabytes(uint64_t bytes);

#endif
