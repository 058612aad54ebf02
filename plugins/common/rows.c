/* SPDX-License-Identifier: MIT */
/* Tables of kernels: selecting the row for an op, and listing rows for people. */
#include "rows.h"

#include "operands.h"
#include "slots.h"

/* The types of the float and block operands that are present. */
static uint32_t types_of(uint32_t op, const void *args)
{
    uint32_t types = 0;
    const struct hw_tensor *t = args;
    for (uint32_t i = 0; i < op_layouts[op].count; i++) {
        const int32_t dtype = t[i].dtype;
        if (dtype != HW_NONE && dtype != HW_I32)
            types |= UINT32_C(1) << (dtype & 31);
    }
    return types;
}

/* ---- text in a buffer of fixed size; a piece that does not fit is left out ---- */

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

static void append_operand(struct text *text, const char *name, const struct hw_tensor *t)
{
    char number[32];
    append(text, name);
    append(text, " ");
    append(text, dtype_name(t->dtype));
    for (int i = 0; i < t->rank && i < HW_MAX_RANK; i++) {
        snprintf(number, sizeof number, "%s%lld", i ? "," : " [", (long long)t->extent[i]);
        append(text, number);
    }
    append(text, "]");
}

void kernel_describe(uint32_t op, const void *args, char *buffer, size_t size)
{
    const struct op_layout *layout = &op_layouts[op];
    const struct hw_tensor *t = args;
    struct text text = { buffer, size, 0 };
    buffer[0] = '\0';
    append(&text, layout->name);
    for (uint32_t i = 0; i < layout->count; i++)
        if (t[i].dtype != HW_NONE) {
            append(&text, i ? ", " : ": ");
            append_operand(&text, layout->operand[i].name, &t[i]);
        }
}

/* ---- choosing ---- */

static bool can_run(const struct kernel_row *row, uint64_t features)
{
    return (row->needs & ~features) == 0;
}

/* "matmul_v4 matmul_v3 matmul rmsnorm_v4 ..." */
static void list_rows(const struct kernel_choice *choice, char *buffer, size_t size)
{
    struct text text = { buffer, size, 0 };
    buffer[0] = '\0';
    for (uint32_t i = 0; i < choice->table->count; i++)
        if (can_run(&choice->table->rows[i], choice->features)) {
            append(&text, text.length ? " " : "");
            append(&text, choice->table->rows[i].name);
        }
}

static bool same(const char *name, const char *word, size_t n)
{
    return strlen(name) == n && memcmp(name, word, n) == 0;
}

/* Whether no later row computes the same op. */
static bool is_last(const struct kernel_table *table, uint32_t row)
{
    for (uint32_t i = row + 1; i < table->count; i++)
        if (table->rows[i].op == table->rows[row].op)
            return false;
    return true;
}

/* Confines an op to one row. */
static void force(struct kernel_choice *choice, uint32_t row)
{
    const uint32_t op = choice->table->rows[row].op;
    choice->first[op] = (uint16_t)row;
    choice->end[op] = (uint16_t)(row + 1);
    choice->forced[op] = true;
}

static void force_portable(struct kernel_choice *choice)
{
    for (uint32_t i = 0; i < choice->table->count; i++)
        if (is_last(choice->table, i))
            force(choice, i);
}

/* "this device cannot run it, which needs sm_90a" */
static const char *say_lacks(const struct kernel_choice *choice, uint64_t lacks,
                             char *wrong, size_t size)
{
    char needs[128] = "";
    if (choice->table->describe_needs)
        choice->table->describe_needs(lacks, needs, sizeof needs);
    snprintf(wrong, size, "this device cannot run it%s%s", needs[0] ? ", which needs " : "",
             needs);
    return wrong;
}

/* Handles one word of the list: "portable", "<row>", "<op>=<row>" or "<op>=portable". Returns NULL,
 * or the reason why it is wrong, for which `wrong` has room. */
static const char *choose_word(struct kernel_choice *choice, const char *word, size_t n,
                               char *wrong, size_t size)
{
    const struct kernel_table *table = choice->table;
    const char *equals = memchr(word, '=', n);
    const char *name = equals ? equals + 1 : word;
    const size_t length = n - (size_t)(name - word);

    if (same("portable", word, n)) {
        force_portable(choice);
        return NULL;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        const struct kernel_row *row = &table->rows[i];
        const bool portable = equals && same("portable", name, length) && is_last(table, i);
        if ((!portable && !same(row->name, name, length)) ||
            (equals && !same(op_layouts[row->op].name, word, (size_t)(equals - word))))
            continue;
        if (!can_run(row, choice->features))
            return say_lacks(choice, row->needs & ~choice->features, wrong, size);
        force(choice, i);
        return NULL;
    }
    return "there is no such row";
}

static void choose_best(struct kernel_choice *choice)
{
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        choice->first[op] = choice->end[op] = 0;
        choice->forced[op] = false;
    }
    for (uint32_t i = 0; i < choice->table->count; i++) {
        const uint32_t op = choice->table->rows[i].op;
        if (!can_run(&choice->table->rows[i], choice->features))
            continue;
        if (choice->end[op] == 0)
            choice->first[op] = (uint16_t)i;
        choice->end[op] = (uint16_t)(i + 1);
    }
}

enum { WHY_BYTES = 200 };

/* Obeys all words that are right. Returns the first wrong word and the reason, or NULL. */
static const char *choose_words(struct kernel_choice *choice, const char *words,
                                char why[WHY_BYTES])
{
    const char *first = NULL;
    choose_best(choice);
    for (const char *word = words ? words : ""; *word;) {
        const size_t n = strcspn(word, ",");
        char room[WHY_BYTES];
        const char *wrong = n ? choose_word(choice, word, n, room, sizeof room) : NULL;
        if (wrong && !first) {
            first = word;
            snprintf(why, WHY_BYTES, "%s", wrong);
        }
        word += n + (word[n] == ',');
    }
    return first;
}

void kernel_choose(const struct hw_host *host, struct kernel_choice *choice)
{
    char why[WHY_BYTES];
    (void)choose_words(choice, host->kernel, why);
}

int32_t kernel_choose_for_queue(const struct hw_host *host,
                                const struct hw_queue_desc *desc,
                                struct kernel_choice *choice)
{
    const uint32_t known = HW_QUEUE_SYNCHRONOUS | HW_QUEUE_TIMING;
    if (!hw_knows(desc, sizeof *desc) || desc->flags & ~known)
        return too_new(host, "queue");
    char why[WHY_BYTES];
    const char *wrong = desc->kernel && desc->kernel[0]
                            ? choose_words(choice, desc->kernel, why)
                            : NULL;
    if (!wrong)
        return HW_OK;
    char rows[800];
    list_rows(choice, rows, sizeof rows);
    return hw_fail(host, HW_INVALID, "kernel \"%.*s\": %s; use \"portable\" or one of: %s",
                   (int)strcspn(wrong, ","), wrong, why, rows);
}

const char *kernel_plan(const struct kernel_choice *choice, uint32_t op, const void *args,
                        struct plan *plan)
{
    const char *why = "no row of this op can run on this device: see hw devices --kernels";
    if (op >= HW_OP_COUNT)
        return "this plugin does not know the op";
    const char *unfit = choice->forced[op]
                            ? "the row that HW_KERNEL or the queue selects does not take it"
                            : NULL;
    for (uint32_t i = choice->first[op]; i < choice->end[op]; i++) {
        const struct kernel_row *row = &choice->table->rows[i];
        if (row->op != op || !can_run(row, choice->features))
            continue;
        if (!row->fits(args))
            why = unfit ? unfit : "no row takes these shapes or options";
        else if (row->types != ANY_TYPE && types_of(op, args) & ~row->types)
            why = unfit ? unfit : "no row takes operands of these types";
        else if (!(why = row->plan(plan, row, args)))
            return NULL;
    }
    return why;
}

int32_t kernel_supports(const char *why_not, char *why, size_t why_size)
{
    if (why && why_size)
        snprintf(why, why_size, "%s", why_not ? why_not : "");
    return why_not ? HW_UNSUPPORTED : HW_OK;
}

/* ---- listing ---- */

/* Adds "; " and the part, unless it is empty or does not fit. */
static void append_part(struct text *text, const char *part)
{
    if (*part && strlen(part) + 2 < text->size - text->length) {
        append(text, text->length ? "; " : "");
        append(text, part);
    }
}

/* "sm_80, HW_PRECISION=fp16; f32 f16; b stored [n,k]" */
static void describe_needs(const struct kernel_table *table, const struct kernel_row *row,
                           char *buffer, size_t size)
{
    char names[128] = "";
    struct text text = { buffer, size, 0 }, types = { names, sizeof names, 0 };

    buffer[0] = '\0';
    if (table->describe_needs)
        table->describe_needs(row->needs, buffer, size);
    text.length = strlen(buffer);
    for (int32_t dtype = 1; row->types != ANY_TYPE && dtype < HW_DTYPE_END; dtype++)
        if (row->types & UINT32_C(1) << dtype) {
            append(&types, types.length ? " " : "");
            append(&types, dtype_name(dtype));
        }
    append_part(&text, names);
    append_part(&text, row->condition);
}

int32_t kernel_list(const struct kernel_choice *choice, uint32_t op, uint32_t index,
                    struct hw_kernel_info *info)
{
    struct hw_kernel_info found = { .size = sizeof found };
    for (uint32_t i = 0; i < choice->table->count; i++) {
        const struct kernel_row *row = &choice->table->rows[i];
        if (row->op != op || index-- != 0)
            continue;
        found.eligible = can_run(row, choice->features);
        snprintf(found.name, sizeof found.name, "%s", row->name);
        describe_needs(choice->table, row, found.needs, sizeof found.needs);
        hw_answer(info, &found);
        return HW_OK;
    }
    return HW_END;
}
