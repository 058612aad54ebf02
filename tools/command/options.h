/* SPDX-License-Identifier: MIT */
/* options.h - reads a command line with popt, and prints the help. */
#ifndef HW_TOOL_OPTIONS_H
#define HW_TOOL_OPTIONS_H

#include <popt.h>
#include <stdbool.h>

/* The texts that --help prints around the list of options. */
struct manual {
    const char *about;     /* what the command does; first line first */
    const char *arguments; /* "[OPTION...] FILE" */
    const char *notes;     /* the examples; then environment and exit status */
};

/* A parsed command line. The caller frees the strings that options were set to; words[] is valid
 * until options_close(). */
struct arguments {
    poptContext popt;
    const char **words; /* the arguments that are not options, NULL-terminated */
    int count;
};

/* --json and --help; the last entry of every table before POPT_TABLEEND. */
extern struct poptOption options_common[];
#define OPTIONS_COMMON                                                                     \
    {                                                                                      \
        NULL, '\0', POPT_ARG_INCLUDE_TABLE, options_common, 0, "Common options:", NULL     \
    }

/* --csv: for commands whose result is a table. */
#define OPTION_CSV                                                                         \
    {                                                                                      \
        "csv", '\0', POPT_ARG_NONE, &out_csv, 0, "print the table as CSV", NULL            \
    }

/* Returns false if the command ends here, because --help or an error was printed; *status is then
 * its exit status. More than `most` arguments that are not options are an error. Call
 * options_close() in either case. */
bool options_read(struct arguments *arguments, const struct manual *manual,
                  const struct poptOption *table, int argc, const char **argv, int most,
                  int *status);
void options_close(struct arguments *arguments);

/* The entry of the NULL-terminated list that `word` probably means, or NULL. */
const char *nearest(const char *word, const char *const *list);

/* Whether the list has `word`. If not, prints "opne: no such measurement; did you mean 'open'?" */
bool is_known(const char *what, const char *word, const char *const *list);

#endif
