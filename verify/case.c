/* SPDX-License-Identifier: MIT */
/* case.c - expands the registry, cases.def, into cases; parses cases. */
#include "case.h"

#include <hw/hw.h>
#include <hw/report.h>

#include <stdio.h>
#include <string.h>

static const struct {
    uint32_t op;
    enum case_level level;
    const char *row;
} registry[] = {
#define PARAMETERS(op, list)
#define CASES(op, level, row) { HW_OP_##op, CASE_##level, row },
#include "cases.def"
#undef CASES
#undef PARAMETERS
};

/* data: the kind of numbers (data.c); view, oview: the strides of inputs and of outputs; mem: the
 * memory of operands. */
static const char common_parameters[] = "data=uniform view=plain oview=same mem=device";

#define PARAMETERS(op, list) static const char parameters_##op[] = list;
#define CASES(op, level, row)
#include "cases.def"
#undef CASES
#undef PARAMETERS

static const char *op_parameters(uint32_t op)
{
    switch (op) {
#define X(NAME, name)                                                                      \
    case HW_OP_##NAME:                                                                     \
        return parameters_##NAME;
        HW_OPS(X)
#undef X
    default:
        return "";
    }
}

/* One key of a row with its alternatives; the pointers are into the row. */
struct choice {
    const char *key;
    int key_length;
    const char *values; /* "f32|f16" */
    int values_length, count, chosen;
};

static int split_row(const char *row, struct choice choices[CASE_PARAMETERS])
{
    int count = 0;

    while (*row && count < CASE_PARAMETERS) {
        struct choice *c = &choices[count++];
        const char *end = row + strcspn(row, " "), *equals = strchr(row, '=');
        *c = (struct choice){ .key = row, .key_length = (int)(equals - row), .count = 1 };
        c->values = equals + 1;
        c->values_length = (int)(end - c->values);
        for (const char *p = c->values; p < end; p++)
            c->count += *p == '|';
        row = end + strspn(end, " ");
    }
    return count;
}

static void print_choice(const struct choice *c, char *text, size_t size, bool first)
{
    const char *value = c->values, *end = c->values + c->values_length;
    for (int skip = c->chosen; skip; skip--)
        value = strchr(value, '|') + 1;
    int length = 0;
    while (value + length < end && value[length] != '|')
        length++;
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%.*s=%.*s", first ? "" : ",", c->key_length,
             c->key, length, value);
}

/* Moves to the next combination, like counting with digits; the last one changes fastest.
 */
static bool advance(struct choice *choices, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        if (++choices[i].chosen < choices[i].count)
            return true;
        choices[i].chosen = 0;
    }
    return false;
}

/* Returns false if `fn` did. */
static bool row_each(size_t row, bool (*fn)(void *user, const struct test_case *test),
                     void *user)
{
    struct choice choices[CASE_PARAMETERS];
    const int count = split_row(registry[row].row, choices);
    struct test_case test = { .op = registry[row].op, .level = registry[row].level };
    do {
        snprintf(test.text, sizeof test.text, "%s(", hw_op_name(test.op));
        for (int i = 0; i < count; i++)
            print_choice(&choices[i], test.text, sizeof test.text - 1, i == 0);
        strcat(test.text, ")");
        if (!fn(user, &test))
            return false;
    } while (advance(choices, count));
    return true;
}

/* Goes op by op, wherever the rows are in the registry, so that a caller can report each op
 * once. */
void case_each(uint32_t levels, bool (*fn)(void *user, const struct test_case *test),
               void *user)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        for (size_t r = 0; r < sizeof registry / sizeof registry[0]; r++)
            if (registry[r].op == op && levels >> registry[r].level & 1 &&
                !row_each(r, fn, user))
                return;
}

const char *parameter(const struct parameters *parameters, const char *key)
{
    for (int i = 0; i < parameters->count; i++)
        if (!strcmp(parameters->at[i].key, key))
            return parameters->at[i].value;
    return "";
}

/* Reads "k=v,k=v" or "k=v k=v". If `known`, values replace those of existing keys, and unknown keys
 * are an error. */
static bool read_list(const char *text, struct parameters *p, bool known, char *error,
                      size_t size)
{
    while (*text && *text != ')') {
        char key[CASE_KEY] = "", value[CASE_VALUE] = "";
        int used = 0, at = 0;
        if (sscanf(text, "%15[^=,) ]=%39[^,) ]%n", key, value, &used) != 2) {
            snprintf(error, size, "'%.40s': a parameter is written key=value", text);
            return false;
        }
        while (at < p->count && strcmp(p->at[at].key, key))
            at++;
        if (known && at == p->count) {
            used = snprintf(error, size, "no parameter is called '%s'; there are:", key);
            for (int i = 0; i < p->count && used >= 0 && (size_t)used < size; i++)
                used += snprintf(error + used, size - (size_t)used, " %s", p->at[i].key);
            return false;
        }
        if (at == CASE_PARAMETERS) {
            snprintf(error, size, "more than %d parameters", CASE_PARAMETERS);
            return false;
        }
        if (at == p->count)
            p->count++;
        memcpy(p->at[at].key, key, sizeof key);
        memcpy(p->at[at].value, value, sizeof value);
        text += used;
        if (*text && !strchr(",) ", *text)) {
            snprintf(error, size, "the value of '%s' is longer than %d characters", key,
                     CASE_VALUE - 1);
            return false;
        }
        text += strspn(text, ", ");
    }
    return true;
}

bool case_parameters(const struct test_case *test, struct parameters *parameters,
                     char *error, size_t error_size)
{
    const char *list = strchr(test->text, '(');

    *parameters = (struct parameters){ 0 };
    return read_list(op_parameters(test->op), parameters, false, error, error_size) &&
           read_list(common_parameters, parameters, false, error, error_size) &&
           read_list(list ? list + 1 : "", parameters, true, error, error_size);
}

bool case_parse(const char *text, struct test_case *test, char *error, size_t error_size)
{
    const size_t name = strcspn(text, "("), length = strlen(text);
    struct parameters parameters;

    *test = (struct test_case){ .op = HW_OP_COUNT, .level = CASE_QUICK };
    if (length >= sizeof test->text || text[name] != '(' || text[length - 1] != ')') {
        snprintf(error, error_size, "a case is written op(key=value,...)");
        return false;
    }
    for (uint32_t op = 0; op < HW_OP_COUNT; op++)
        if (strlen(hw_op_name(op)) == name && !strncmp(hw_op_name(op), text, name))
            test->op = op;
    if (test->op == HW_OP_COUNT) {
        snprintf(error, error_size, "no op is called '%.*s'", (int)name, text);
        return false;
    }
    memcpy(test->text, text, length + 1);
    return case_parameters(test, &parameters, error, error_size);
}

/* Matches the whole text, without recursion: on a mismatch, the last * takes one more
 * character. */
static bool matches_whole(const char *text, const char *pattern)
{
    const char *star = NULL, *resume = NULL;

    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

/* Whether the part of `pattern` before `end` matches. */
static bool matches_part(const char *text, const char *pattern, const char *end)
{
    char part[CASE_TEXT];
    const size_t length = (size_t)(end - pattern);

    if (length >= sizeof part)
        return false; /* no case is as long */
    memcpy(part, pattern, length);
    part[length] = '\0';
    return strpbrk(part, "*?") ? matches_whole(text, part) : strstr(text, part) != NULL;
}

bool case_matches(const char *text, const char *pattern)
{
    for (;; pattern++) {
        const char *end = pattern + strcspn(pattern, "|");
        if (matches_part(text, pattern, end))
            return true;
        pattern = end;
        if (!*pattern)
            return false;
    }
}
