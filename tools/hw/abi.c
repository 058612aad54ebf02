/* SPDX-License-Identifier: MIT */
/* abi.c - `hw abi`: sizes and offsets of the public structs, for bindings to other languages. */
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"

#include <hw/hw.h>
#include <hw/plugin.h>
#include <hw/report.h>

#include <stddef.h>
#include <string.h>

static const struct manual manual = {
    .about =
        "hw abi - sizes and offsets of the structs in the public headers\n\n"
        "For each field: its offset and its size in bytes, its type and its name. The ops\n"
        "are those of the library that is running; for their scalars, the value in\n"
        "parentheses is what 0 means.",
    .arguments = "[OPTION...] [STRUCT]",
    .notes = "  hw abi                       all of them\n"
             "  hw abi hw_attention          one\n"
             "  hw abi --json | jq '.ops[] | {name, op, bytes}'\n\n"
             "The exit status is 1 if there is no struct of that name.",
};

/* ---- types ---- */

/* Arrays have the type of their elements. */
#define TYPE(s, field)                                                                     \
    _Generic(((struct s *)0)->field,                                                       \
        int32_t: "i32",                                                                    \
        int32_t *: "i32",                                                                  \
        uint32_t: "u32",                                                                   \
        uint32_t *: "u32",                                                                 \
        int64_t: "i64",                                                                    \
        int64_t *: "i64",                                                                  \
        uint64_t: "u64",                                                                   \
        double: "f64",                                                                     \
        char *: "char",                                                                    \
        uint8_t *: "u8",                                                                   \
        const char *: "string",                                                            \
        default: "pointer")

static const char *const field_types[] = {
    [HW_FIELD_TENSOR] = "hw_tensor", [HW_FIELD_I32] = "i32",  [HW_FIELD_I64] = "i64",
    [HW_FIELD_F32] = "f32",          [HW_FIELD_FLAG] = "u32", [HW_FIELD_RESERVED] = "u32"
};
static const char *const roles[] = {
    [HW_ROLE_IN] = "in",
    [HW_ROLE_OPT_IN] = "optional in",
    [HW_ROLE_WEIGHT] = "weight",
    [HW_ROLE_OUT] = "out",
    [HW_ROLE_OPT_OUT] = "optional out",
    [HW_ROLE_INOUT] = "in and out",
};

/* "?" for values of a newer library that this command does not know. */
#define NAME_IN(names, value)                                                              \
    ((size_t)(value) < sizeof(names) / sizeof *(names) ? (names)[value] : "?")

/* ---- as JSON ---- */

static const struct row {
    const char *of;
    size_t of_bytes;
    const char *name, *type;
    size_t offset, bytes;
} rows[] = {
#define FIELD(s, field)                                                                    \
    { #s,                                                                                  \
      sizeof(struct s),                                                                    \
      #field,                                                                              \
      TYPE(s, field),                                                                      \
      offsetof(struct s, field),                                                           \
      sizeof(((struct s *)0)->field) },
#include "abi.def"
#undef FIELD
};

static json_t *field_json(const char *name, const char *type, size_t offset, size_t bytes)
{
    return json_pack("{s:s, s:s, s:I, s:I}", "name", name, "type", type, "offset",
                     (json_int_t)offset, "bytes", (json_int_t)bytes);
}

/* Whether to show this struct; NULL asks for all. */
static bool wanted(const char *only, const char *name)
{
    return !only || !strcmp(only, name);
}

static json_t *structs_json(const char *only)
{
    json_t *list = json_array(), *fields = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        if (!wanted(only, row->of))
            continue;
        if (!row->offset) {
            fields = json_array();
            json_array_append_new(list,
                                  json_pack("{s:s, s:I, s:o}", "name", row->of, "bytes",
                                            (json_int_t)row->of_bytes, "fields", fields));
        }
        json_array_append_new(fields,
                              field_json(row->name, row->type, row->offset, row->bytes));
    }
    return list;
}

static json_t *op_fields_json(uint32_t op)
{
    struct hw_field_info info = { .size = sizeof info };
    json_t *fields = json_array();
    for (uint32_t i = 0; !hw_op_field(op, i, &info); i++) {
        json_t *field = field_json(info.name, NAME_IN(field_types, info.type), info.offset,
                                   info.bytes);
        if (info.type == HW_FIELD_TENSOR)
            json_object_set_new(field, "role", json_string(NAME_IN(roles, info.role)));
        else
            json_object_set_new(field, "zero", json_string(info.zero));
        json_array_append_new(fields, field);
    }
    return fields;
}

static json_t *ops_json(const char *only)
{
    json_t *list = json_array();
    for (uint32_t op = 0; hw_op_size(op); op++) {
        char name[64];
        snprintf(name, sizeof name, "hw_%s", hw_op_name(op));
        if (wanted(only, name))
            json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:I, s:o}", "name",
                                                  hw_op_name(op), "op", (int)op, "struct",
                                                  name, "bytes", (json_int_t)hw_op_size(op),
                                                  "fields", op_fields_json(op)));
    }
    return list;
}

static json_t *statuses_json(void)
{
    json_t *values = json_object();
#define X(NAME, value, text) json_object_set_new(values, "HW_" #NAME, json_integer(value));
    HW_STATUSES(X)
#undef X
    return values;
}

static json_t *dtypes_json(void)
{
    json_t *list = json_array();
#define X(NAME, value, name, elements, bytes)                                              \
    json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:i}", "name", name, "dtype",   \
                                          value, "block", elements, "bytes", bytes));
    HW_DTYPES(X)
#undef X
    return list;
}

/* ---- as text ---- */

static void print_fields(const json_t *fields)
{
    size_t index;
    json_t *field;
    json_array_foreach ((json_t *)fields, index, field) {
        const char *role = json_string_value(json_object_get(field, "role"));
        const char *zero = json_string_value(json_object_get(field, "zero"));
        say("  %6d %5d  %-9s %s", (int)json_integer_value(json_object_get(field, "offset")),
            (int)json_integer_value(json_object_get(field, "bytes")),
            json_string_value(json_object_get(field, "type")),
            json_string_value(json_object_get(field, "name")));
        if (role)
            say(": %s", role);
        if (zero && *zero && strcmp(zero, "0"))
            say(" (0: %s)", zero);
        say("\n");
    }
}

static void print_structs(const json_t *list, const char *key)
{
    size_t index;
    json_t *of;
    json_array_foreach ((json_t *)list, index, of) {
        const json_t *op = json_object_get(of, "op");
        say("%s%s%s, %d bytes", ink(BOLD), json_string_value(json_object_get(of, key)),
            ink(PLAIN), (int)json_integer_value(json_object_get(of, "bytes")));
        if (op)
            say(", op %d", (int)json_integer_value(op));
        say("\n");
        print_fields(json_object_get(of, "fields"));
    }
}

/* ---- both ---- */

static void complain_unknown(const char *name)
{
    enum { MOST = sizeof rows / sizeof rows[0] + HW_OP_COUNT };
    char ops[HW_OP_COUNT][64];
    const char *names[MOST + 1] = { NULL }, *meant;
    size_t count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!rows[i].offset)
            names[count++] = rows[i].of;
    for (uint32_t op = 0; op < HW_OP_COUNT && hw_op_size(op); op++) {
        snprintf(ops[op], sizeof ops[op], "hw_%s", hw_op_name(op));
        names[count++] = ops[op];
    }
    meant = nearest(name, names);
    complain("%s: the public headers have no struct of this name%s%s%s", name,
             meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
}

static int print_abi(const char *only)
{
    json_t *structs = structs_json(only), *ops = ops_json(only);
    const bool found = json_array_size(structs) + json_array_size(ops) > 0;
    if (!found)
        complain_unknown(only);
    else if (out_json)
        out_tree(json_pack("{s:i, s:s, s:i, s:i, s:O, s:O, s:o, s:o}", "schema", 1,
                           "library", hw_version_string(), "plugin_abi", HW_ABI_VERSION,
                           "pointer_bytes", (int)sizeof(void *), "structs", structs, "ops",
                           ops, "statuses", statuses_json(), "dtypes", dtypes_json()));
    else {
        print_structs(structs, "name");
        print_structs(ops, "struct");
    }
    json_decref(structs);
    json_decref(ops);
    return found ? 0 : EXIT_FAILED;
}

int cmd_abi(int argc, const char **argv)
{
    int status;
    const struct poptOption table[] = { OPTIONS_COMMON, POPT_TABLEEND };
    struct arguments arguments;

    if (options_read(&arguments, &manual, table, argc, argv, 1, &status))
        status = print_abi(arguments.words[0]);
    options_close(&arguments);
    return status;
}
