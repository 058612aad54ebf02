/* SPDX-License-Identifier: MIT */
/* options.h - reading a command's words with popt, and what --help says. */
#ifndef HW_TOOL_OPTIONS_H
#define HW_TOOL_OPTIONS_H

#include <popt.h>
#include <stdbool.h>

/* What --help prints around the list of options. */
struct manual {
    const char *about;     /* what the command does; first line first */
    const char *arguments; /* "[OPTION...] FILE" */
    const char *notes;     /* after "Examples:"; then environment, exit status */
};

/* A command's words. Strings that options took are the caller's to free; words[] lives until
 * options_close(). */
struct arguments {
    poptContext popt;
    const char **words; /* what is no option, NULL-terminated */
    int count;
};

/* --json and --help: goes into every command's table before POPT_TABLEEND. */
extern struct poptOption options_common[];
#define OPTIONS_COMMON                                                                     \
    {                                                                                      \
        NULL, '\0', POPT_ARG_INCLUDE_TABLE, options_common, 0, "Everywhere:", NULL         \
    }

/* False if the command ends here, with the exit status that is answered in *status: --help was
 * asked for and printed, or a word is wrong and said to be. More than `most` words that are no
 * options is wrong. options_close() either way. */
bool options_read(struct arguments *arguments, const struct manual *manual,
                  const struct poptOption *table, int argc, const char **argv, int most,
                  int *status);
void options_close(struct arguments *arguments);

/* The word of the NULL-terminated list that was probably meant; NULL if none is near. */
const char *nearest(const char *word, const char *const *list);

/* Whether the list has `word`; if not, says so: "opne: no such measurement; did you mean
 * 'open'?" */
bool is_known(const char *what, const char *word, const char *const *list);

#endif
