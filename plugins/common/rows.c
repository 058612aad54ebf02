/* SPDX-License-Identifier: MIT */
/* Kernel tables: from an op and its operands to a row, and what people are told of rows. */
#include "rows.h"

/* ---- operands of an op, from the op table ---- */

struct operand {
    const char *name;
    size_t offset;
};

#define OPERAND(op, field, role) { #field, offsetof(struct hw_##op, field) },
#define X(NAME, name)                                                                      \
    static const struct operand operands_of_##name[] = { HW_OPERANDS_##NAME(OPERAND){      \
        NULL, 0 } };
HW_OPS(X)
#undef X

static const struct operand *const operands[] = {
#define X(NAME, name) operands_of_##name,
    HW_OPS(X)
#undef X
};

static const struct hw_tensor *tensor_at(const void *args, const struct operand *operand)
{
    return (const struct hw_tensor *)((const char *)args + operand->offset);
}

/* The types of the float and block operands that are there. */
static uint32_t types_of(uint32_t op, const void *args)
{
    uint32_t types = 0;
    for (const struct operand *o = operands[op]; o->name; o++) {
        const int32_t dtype = tensor_at(args, o)->dtype;
        if (dtype != HW_NONE && dtype != HW_I32)
            types |= KERNEL_TYPE(dtype & 31);
    }
    return types;
}

/* ---- text that fills up and stops ---- */

struct text {
    char *to;
    size_t size, length;
};

static void append(struct text *text, const char *piece)
{
    const size_t room = text->size - text->length, n = strlen(piece);
    if (n < room) {
        memcpy(text->to + text->length, piece, n + 1);
        text->length += n;
    }
}

static const char *dtype_name(int32_t dtype)
{
    switch (dtype) {
#define X(NAME, value, name, elements, bytes)                                              \
    case value:                                                                            \
        return name;
        HW_DTYPES(X)
#undef X
    default:
        return "?";
    }
}

static const char *op_name(uint32_t op)
{
    static const char *const names[] = {
#define X(NAME, name) #name,
        HW_OPS(X)
#undef X
    };
    return names[op];
}

void kernel_describe(uint32_t op, const void *args, char *buffer, size_t size)
{
    struct text text = { buffer, size, 0 };
    char number[32];

    buffer[0] = '\0';
    append(&text, op_name(op));
    for (const struct operand *o = operands[op]; o->name; o++) {
        const struct hw_tensor *t = tensor_at(args, o);
        if (t->dtype == HW_NONE)
            continue;
        append(&text, o == operands[op] ? ": " : ", ");
        append(&text, o->name);
        append(&text, " ");
        append(&text, dtype_name(t->dtype));
        for (int i = 0; i < t->rank && i < HW_MAX_RANK; i++) {
            snprintf(number, sizeof number, "%s%lld", i ? "," : " [",
                     (long long)t->extent[i]);
            append(&text, number);
        }
        append(&text, "]");
    }
}

/* ---- choosing ---- */

static bool can_run(const struct kernel_row *row, uint64_t features)
{
    return (row->needs & ~features) == 0;
}

/* "matmul_v4 matmul_v3 matmul rmsnorm_v4 ..." */
static void list_rows(const struct kernel_table *table, uint64_t features, char *buffer,
                      size_t size)
{
    struct text text = { buffer, size, 0 };
    buffer[0] = '\0';
    for (uint32_t i = 0; i < table->count; i++)
        if (can_run(&table->rows[i], features)) {
            append(&text, text.length ? " " : "");
            append(&text, table->rows[i].name);
        }
}

static bool same(const char *name, const char *word, size_t n)
{
    return strlen(name) == n && memcmp(name, word, n) == 0;
}

/* Confines an op to one row. */
static void force(struct kernel_choice *choice, const struct kernel_table *table,
                  uint32_t row)
{
    const uint32_t op = table->rows[row].op;
    choice->first[op] = (uint16_t)row;
    choice->last[op] = (uint16_t)(row + 1);
    choice->forced[op] = true;
}

static void force_portable(struct kernel_choice *choice, const struct kernel_table *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (i + 1 == table->count || table->rows[i + 1].op != table->rows[i].op)
            force(choice, table, i);
}

static int32_t refuse(const struct hw_host *host, const struct kernel_table *table,
                      uint64_t features, const char *word, size_t n, const char *what)
{
    char rows[800];
    list_rows(table, features, rows, sizeof rows);
    return hw_fail(host, HW_INVALID, "kernel \"%.*s\": %s; \"portable\", or of: %s", (int)n,
                   word, what, rows);
}

/* One word of the list: "portable", "<row>", "<op>=<row>" or "<op>=portable". */
static int32_t choose_word(const struct hw_host *host, const struct kernel_table *table,
                           const char *word, size_t n, struct kernel_choice *choice)
{
    const char *equals = memchr(word, '=', n);
    const char *name = equals ? equals + 1 : word;
    const size_t length = n - (size_t)(name - word);

    if (same("portable", word, n)) {
        force_portable(choice, table);
        return HW_OK;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        const struct kernel_row *row = &table->rows[i];
        const bool last = i + 1 == table->count || row[1].op != row->op;
        const bool portable = equals && last && same("portable", name, length);
        if ((!portable && !same(row->name, name, length)) ||
            (equals && !same(op_name(row->op), word, (size_t)(equals - word))))
            continue;
        if (!can_run(row, choice->features))
            return refuse(host, table, choice->features, word, n, "not for this device");
        force(choice, table, i);
        return HW_OK;
    }
    return refuse(host, table, choice->features, word, n, "there is no such row");
}

int32_t kernel_choose(const struct hw_host *host, const struct kernel_table *table,
                      uint64_t features, const char *spec, struct kernel_choice *choice)
{
    memset(choice, 0, sizeof *choice);
    choice->features = features;
    for (uint32_t i = 0; i < table->count; i++) {
        const uint32_t op = table->rows[i].op;
        if (choice->last[op] == 0)
            choice->first[op] = (uint16_t)i;
        choice->last[op] = (uint16_t)(i + 1);
    }
    for (const char *word = spec ? spec : ""; *word;) {
        const size_t n = strcspn(word, ",");
        const int32_t status = n ? choose_word(host, table, word, n, choice) : HW_OK;
        if (status)
            return status;
        word += n + (word[n] == ',');
    }
    return HW_OK;
}

int32_t kernel_select(const struct kernel_table *table, const struct kernel_choice *choice,
                      uint32_t op, const void *args)
{
    const uint32_t types = types_of(op, args);
    for (uint32_t i = choice->first[op]; i < choice->last[op]; i++) {
        const struct kernel_row *row = &table->rows[i];
        if (can_run(row, choice->features) && (types & ~row->dtypes) == 0 &&
            row->fits(args))
            return (int32_t)i;
    }
    return -1;
}

/* ---- listing ---- */

static void describe_needs(const struct kernel_table *table, const struct kernel_row *row,
                           char *buffer, size_t size)
{
    struct text text = { buffer, size, 0 };

    buffer[0] = '\0';
    table->needs_in_words(row->needs, buffer, size);
    text.length = strlen(buffer);
    for (int32_t dtype = 1; row->dtypes != ANY && dtype < HW_DTYPE_END; dtype++)
        if (row->dtypes & KERNEL_TYPE(dtype)) {
            append(&text, text.length ? " " : "");
            append(&text, dtype_name(dtype));
        }
    if (strcmp(row->condition, "true") != 0) {
        append(&text, text.length ? "; " : "");
        append(&text, row->condition);
    }
}

int32_t kernel_list(const struct kernel_table *table, uint64_t features, uint32_t op,
                    uint32_t index, struct hw_kernel_info *info)
{
    struct hw_kernel_info found = { .size = sizeof found };
    for (uint32_t i = 0; i < table->count; i++) {
        const struct kernel_row *row = &table->rows[i];
        if (row->op != op || index-- != 0)
            continue;
        found.eligible = can_run(row, features);
        snprintf(found.name, sizeof found.name, "%s", row->name);
        describe_needs(table, row, found.needs, sizeof found.needs);
        hw_answer(info, &found);
        return HW_OK;
    }
    return HW_END;
}
