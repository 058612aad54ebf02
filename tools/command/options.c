/* SPDX-License-Identifier: MIT */
/* options.c - reads a command line with popt, and suggests the nearest name for a misspelt one. */
#include "options.h"

#include "command.h"
#include "output.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_WORD = 31, MOST_OPTIONS = 64, FEW_OPTIONS = 5 /* few enough to list */ };

static int help_wanted;

struct poptOption options_common[] = {
    { "json", '\0', POPT_ARG_NONE, &out_json, 0, "print the result as JSON", NULL },
    { "help", 'h', POPT_ARG_NONE, &help_wanted, 0, "print this help", NULL },
    POPT_TABLEEND
};

static int least(int a, int b, int c)
{
    int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* The number of edits between two words: a character inserted, deleted or replaced, or two
 * neighbours swapped (Damerau, 1964, each character edited once). Words longer than
 * LONGEST_WORD are never near. */
static int distance(const char *a, const char *b)
{
    int rows = (int)strlen(a), cols = (int)strlen(b);
    int d[LONGEST_WORD + 1][LONGEST_WORD + 1];

    if (rows > LONGEST_WORD || cols > LONGEST_WORD)
        return 2 * LONGEST_WORD;
    for (int i = 0; i <= rows; i++)
        for (int j = 0; j <= cols; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = least(d[i - 1][j] + 1, d[i][j - 1] + 1,
                            d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1, d[i][j]);
        }
    return d[rows][cols];
}

const char *nearest(const char *word, const char *const *list)
{
    /* A word with more than a quarter of its letters wrong is another word. */
    const int length = (int)strlen(word), limit = length < 8 ? 1 : length / 4;
    const char *best = NULL;
    int best_distance = limit + 1;

    for (; *list; list++) {
        bool begins = strlen(word) > 1 && !strncmp(*list, word, strlen(word));
        int edits = begins ? 1 : distance(word, *list);
        if (edits < best_distance) {
            best_distance = edits;
            best = *list;
        }
    }
    return best;
}

bool is_known(const char *what, const char *word, const char *const *list)
{
    char all[512] = "";
    size_t used = 0;

    for (const char *const *known = list; *known; known++) {
        if (!strcmp(word, *known))
            return true;
        if (used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s",
                                     used ? ", " : "", *known);
    }
    const char *meant = nearest(word, list);
    if (meant)
        complain("%s: no such %s; did you mean '%s'?", word, what, meant);
    else
        complain("%s: no such %s; there are: %s", word, what, all);
    return false;
}

/* Collects the long names of the options in a table and in the tables that it includes. */
static int long_names(const struct poptOption *table, const char **names, int count)
{
    for (; table->longName || table->shortName || table->arg; table++) {
        if ((table->argInfo & POPT_ARG_MASK) == POPT_ARG_INCLUDE_TABLE)
            count = long_names(table->arg, names, count);
        else if (table->longName && count < MOST_OPTIONS - 1)
            names[count++] = table->longName;
    }
    names[count] = NULL;
    return count;
}

static int bad_option(poptContext popt, const char *command, const struct poptOption *table,
                      int error)
{
    const char *names[MOST_OPTIONS];
    const char *bad = poptBadOption(popt, POPT_BADOPTION_NOALIAS), *meant = NULL;
    char word[LONGEST_WORD + 1] = "", all[256] = "";
    int count = long_names(table, names, 0);

    if (error == POPT_ERROR_BADOPT && !strncmp(bad, "--", 2)) {
        size_t length = strcspn(bad + 2, "=");
        if (length <= LONGEST_WORD) {
            memcpy(word, bad + 2, length);
            meant = nearest(word, names);
        }
    }
    for (int i = 0; i < count && count <= FEW_OPTIONS; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s--%s", i ? ", " : "",
                 names[i]);
    if (meant)
        complain("%s: no such option; did you mean --%s?", bad, meant);
    else if (error == POPT_ERROR_BADOPT && *all)
        complain("%s: no such option; there are: %s", bad, all);
    else
        complain("%s: %s; see %s --help", bad,
                 error == POPT_ERROR_BADOPT ? "no such option" : poptStrerror(error),
                 command);
    return EXIT_USAGE;
}

static void list_options(const struct poptOption *table, json_t *list)
{
    for (; table->longName || table->shortName || table->arg; table++) {
        if ((table->argInfo & POPT_ARG_MASK) == POPT_ARG_INCLUDE_TABLE) {
            list_options(table->arg, list);
            continue;
        }
        json_t *option = json_pack("{s:s, s:s?, s:s}", "name", table->longName, "argument",
                                   table->argDescrip, "about", table->descrip);
        if (table->shortName)
            json_object_set_new(option, "letter", json_stringn(&table->shortName, 1));
        json_array_append_new(list, option);
    }
}

static void tell_help(const char *command, const struct manual *manual,
                      const struct poptOption *table)
{
    json_t *list = json_array();
    list_options(table, list);
    out_tree(json_pack("{s:i, s:s, s:s, s:s, s:o, s:s}", "schema", 1, "command", command,
                       "about", manual->about, "arguments", manual->arguments, "options",
                       list, "notes", manual->notes ? manual->notes : ""));
}

static void print_help(poptContext popt, const struct manual *manual)
{
    say("%s\n\n", manual->about);
    poptSetOtherOptionHelp(popt, manual->arguments);
    poptPrintHelp(popt, out_file, 0);
    if (manual->notes)
        say("\nExamples:\n%s\n", manual->notes);
}

bool options_read(struct arguments *arguments, const struct manual *manual,
                  const struct poptOption *table, int argc, const char **argv, int most,
                  int *status)
{
    int error;

    help_wanted = 0;
    *arguments = (struct arguments){ .popt = poptGetContext(NULL, argc, argv, table, 0) };
    if (!arguments->popt) {
        complain("out of memory");
        *status = EXIT_FAILED;
        return false;
    }
    while ((error = poptGetNextOpt(arguments->popt)) > 0)
        ;
    if (error < -1) {
        out_look_for_json(argc, argv);
        *status = bad_option(arguments->popt, argv[0], table, error);
        return false;
    }
    if (help_wanted) {
        if (out_json)
            tell_help(argv[0], manual, table);
        else
            print_help(arguments->popt, manual);
        *status = 0;
        return false;
    }
    static const char *none[] = { NULL };
    arguments->words = poptGetArgs(arguments->popt);
    if (!arguments->words)
        arguments->words = none;
    while (arguments->words[arguments->count])
        arguments->count++;
    if (arguments->count > most) {
        complain("%s: unexpected argument; see %s --help", arguments->words[most], argv[0]);
        *status = EXIT_USAGE;
        return false;
    }
    return true;
}

void options_close(struct arguments *arguments)
{
    if (arguments->popt)
        poptFreeContext(arguments->popt);
    *arguments = (struct arguments){ 0 };
}
