/* SPDX-License-Identifier: MIT */
/* inspect.c - `hw inspect`: the contents of a model file. The text is made from the JSON. */
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"
#include "command/watch.h"
#include "metadata.h"
#include "model/gguf/dtype.h"
#include "model/gguf/shape.h"
#include "model/tokenizer/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct manual manual = {
    .about =
        "hw inspect - metadata and tensors of a model file\n\n"
        "Reads any valid GGUF file, and says if hw run would refuse it, and why. Extents are\n"
        "listed as in the file: the elements of a row first.",
    .arguments = "[OPTION...] MODEL.gguf",
    .notes = "  hw inspect models/bard-3m-Q8_0.gguf\n"
             "  hw inspect --all MODEL.gguf             long texts and arrays in full\n"
             "  hw inspect --csv MODEL.gguf             the tensors as a table\n"
             "  hw inspect MODEL.gguf --json | jq '.metadata[\"general.name\"].value'\n\n"
             "The exit status is 1 if the file cannot be read.",
};

enum { FEW = 8, TEXT_COLUMNS = 60 };

/* ---- As JSON ---- */

/* The elements of a tensor; fewer than 2^64, because the reader checked its bytes. */
static uint64_t elements_of(const struct gguf_tensor *tensor)
{
    return tensor->bytes / gguf_type_bytes(tensor->type) * gguf_type_block(tensor->type);
}

static json_t *tensor_json(const struct gguf *file, const struct gguf_tensor *tensor)
{
    json_t *extents = json_array();
    for (int i = 0; i < tensor->rank; i++)
        json_array_append_new(extents, json_integer((json_int_t)tensor->extents[i]));
    return json_pack("{s:o, s:s, s:o, s:I, s:I, s:I}", "name",
                     json_text(tensor->name.bytes, tensor->name.length), "type",
                     gguf_type_name(tensor->type), "extents", extents, "elements",
                     (json_int_t)elements_of(tensor), "bytes", (json_int_t)tensor->bytes,
                     "offset", (json_int_t)((const uint8_t *)tensor->data - file->bytes));
}

static json_t *tensors_json(const struct gguf *file)
{
    const struct gguf_tensor **order = gguf_in_order(file);
    json_t *list = json_array();
    for (size_t i = 0; order && i < file->tensor_count; i++)
        json_array_append_new(list, tensor_json(file, order[i]));
    free(order);
    return list;
}

static void add_to(json_t *object, const char *key, uint64_t count)
{
    json_t *sum = json_object_get(object, key);
    json_object_set_new(object, key,
                        json_integer(json_integer_value(sum) + (json_int_t)count));
}

/* [{"type", "tensors", "elements", "bytes", "computed"}], in the order of the types'
 * numbers. computed: the library has the type for weights. */
static json_t *types_json(const struct gguf *file)
{
    json_t *list = json_array();
    for (uint32_t type = 0; type < GGUF_TYPE_END; type++) {
        json_t *row = json_pack("{s:s}", "type", gguf_type_name(type));
        for (size_t i = 0; i < file->tensor_count; i++)
            if (file->tensors[i].type == type) {
                add_to(row, "tensors", 1);
                add_to(row, "elements", elements_of(&file->tensors[i]));
                add_to(row, "bytes", file->tensors[i].bytes);
            }
        json_object_set_new(row, "computed", json_boolean(dtype_of(type)));
        if (json_object_get(row, "tensors"))
            json_array_append(list, row);
        json_decref(row);
    }
    return list;
}

static json_t *shape_json(const struct shape *s)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "layers",
                     (json_int_t)s->layers, "width", (json_int_t)s->width, "inner",
                     (json_int_t)s->inner, "heads", (json_int_t)s->heads, "kv_heads",
                     (json_int_t)s->kv_heads, "key_width", (json_int_t)s->key_width,
                     "value_width", (json_int_t)s->value_width, "context",
                     (json_int_t)s->context, "vocabulary", (json_int_t)s->vocabulary);
}

static bool types_known(const struct gguf *file, struct fault *why)
{
    for (size_t i = 0; i < file->tensor_count; i++)
        if (!dtype_of(file->tensors[i].type))
            return fault(why, "%s: tensor '%.*s' has type %s, which hw does not compute",
                         file->path, (int)file->tensors[i].name.length,
                         file->tensors[i].name.bytes,
                         gguf_type_name(file->tensors[i].type));
    return true;
}

/* Adds "shape" and "refusal", each null if there is none. `hw run` may refuse more files, because
 * some checks need a device. */
static void add_shape(json_t *tree, const struct gguf *file)
{
    static struct fault why; /* large */
    struct shape shape;
    struct tokenizer *tokenizer = NULL;
    const bool shaped = shape_read(file, &shape, &why);
    const bool good = shaped && types_known(file, &why) &&
                      (tokenizer = tokenizer_create(file, &why));
    json_object_set_new(tree, "shape", shaped ? shape_json(&shape) : json_null());
    json_object_set_new(tree, "refusal",
                        good ? json_null() : json_text(why.text, strlen(why.text)));
    tokenizer_destroy(tokenizer);
}

static json_t *file_json(const struct gguf *file, bool all)
{
    struct gguf_string architecture = { "", 0 };
    uint64_t parameters = 0;
    for (size_t i = 0; i < file->tensor_count; i++)
        parameters += elements_of(&file->tensors[i]);
    gguf_get_string(file, "general.architecture", &architecture, NULL);
    json_t *tree = json_pack("{s:i, s:o, s:s, s:i, s:I, s:I, s:o, s:I}", "schema", 1,
                             "file", json_text(file->path, strlen(file->path)), "format",
                             "gguf", "version", (int)file->version, "bytes",
                             (json_int_t)file->size, "alignment",
                             (json_int_t)file->alignment, "architecture",
                             json_text(architecture.bytes, architecture.length),
                             "parameters", (json_int_t)parameters);
    add_shape(tree, file);
    json_object_set_new(tree, "types", types_json(file));
    json_object_set_new(tree, "metadata", metadata_json(file, all ? SIZE_MAX : FEW));
    json_object_set_new(tree, "tensors", tensors_json(file));
    return tree;
}

/* ---- As text ---- */

/* "1.24 billion" */
static void print_count(double count)
{
    if (count >= 1e9)
        say("%.2f billion", count / 1e9);
    else if (count >= 1e6)
        say("%.2f million", count / 1e6);
    else
        say("%.0f", count);
}

static void print_types(const json_t *types)
{
    const char *label = "types";
    size_t index;
    json_t *row;
    json_array_foreach ((json_t *)types, index, row) {
        const double bytes = number_of(row, "bytes");
        say("%-14s%-8s%5.0f tensors, %s, %.4g bits per weight%s\n", label,
            text_of(row, "type"), number_of(row, "tensors"),
            size_text((uint64_t)bytes).text, 8 * bytes / number_of(row, "elements"),
            flag_of(row, "computed") ? "" : " (hw does not compute this type)");
        label = "";
    }
}

static void print_shape(const json_t *tree)
{
    const json_t *s = json_object_get(tree, "shape");
    const char *name = text_of(tree, "architecture");
    say("%-14s%s", "architecture", *name ? name : "not named");
    if (json_is_object(s))
        say(": %.0f layers of %.0f, %.0f inside; %.0f heads of %.0f, %.0f for keys; a context "
            "of %.0f; %.0f tokens",
            number_of(s, "layers"), number_of(s, "width"), number_of(s, "inner"),
            number_of(s, "heads"), number_of(s, "key_width"), number_of(s, "kv_heads"),
            number_of(s, "context"), number_of(s, "vocabulary"));
    say("\n%-14s", "parameters");
    print_count(number_of(tree, "parameters"));
    say("\n");
}

/* Cuts a text after whole characters. */
static void print_short(const char *text, size_t limit)
{
    size_t length = strlen(text);
    if (length > limit) {
        for (length = limit; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;)
            length--;
        say("%.*s...", (int)length, text);
    } else
        say("%s", text);
}

/* As JSON on one line. An array that was shortened ends with dots. */
static void print_array(const json_t *array, bool whole, size_t limit)
{
    char *line = json_dumps(array, JSON_REAL_PRECISION(10));
    if (line && !whole)
        line[strlen(line) - 1] = '\0';
    print_short(line ? line : "", limit);
    say("%s", whole || !line || strlen(line) > limit ? "" : ", ...]");
    free(line);
}

static void print_value(const json_t *value, size_t limit)
{
    char *line = json_is_string(value)
                     ? NULL
                     : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
    print_short(line ? line : json_string_value(value), limit);
    free(line);
}

static void print_pair(const char *key, const json_t *pair, bool all)
{
    const json_t *value = json_object_get(pair, "value");
    const size_t limit = all ? SIZE_MAX : TEXT_COLUMNS;
    const double count = number_of(pair, "count");
    char type[48];
    if (json_is_array(value)) {
        snprintf(type, sizeof type, "%s[%.0f]", text_of(pair, "of"), count);
        say("  %-40s %-14s ", key, type);
        print_array(value, count <= (double)json_array_size(value), limit);
    } else {
        say("  %-40s %-14s ", key, text_of(pair, "type"));
        print_value(value, limit);
    }
    say("\n");
}

static void print_tensor(const json_t *tensor)
{
    size_t index;
    json_t *extent;
    say("  %-40s %-8s ", text_of(tensor, "name"), text_of(tensor, "type"));
    json_array_foreach (json_object_get(tensor, "extents"), index, extent)
        say("%s%" JSON_INTEGER_FORMAT, index ? " x " : "", json_integer_value(extent));
    say(", %s\n", size_text((uint64_t)number_of(tensor, "bytes")).text);
}

static void print_file(json_t *tree, bool all)
{
    json_t *metadata = json_object_get(tree, "metadata"), *pair, *tensor;
    json_t *tensors = json_object_get(tree, "tensors");
    const char *key, *refusal;
    size_t index;
    clean_tree(tree);
    refusal = text_of(tree, "refusal");
    say("%s%s%s\n", ink(BOLD), text_of(tree, "file"), ink(PLAIN));
    say("%-14sGGUF version %.0f, %s\n", "format", number_of(tree, "version"),
        size_text((uint64_t)number_of(tree, "bytes")).text);
    print_shape(tree);
    print_types(json_object_get(tree, "types"));
    if (*refusal)
        say_folded(14, "%-14s%s\n", "hw run", refusal);
    say("\n%smetadata%s (%zu)\n", ink(BOLD), ink(PLAIN), json_object_size(metadata));
    json_object_foreach (metadata, key, pair)
        print_pair(key, pair, all);
    say("\n%stensors%s (%zu)\n", ink(BOLD), ink(PLAIN), json_array_size(tensors));
    json_array_foreach (tensors, index, tensor)
        print_tensor(tensor);
}

/* ---- The command ---- */

static int inspect(const char *path, bool all)
{
    static struct fault why; /* large */
    watch_file(path, NULL);
    struct gguf *file = gguf_open(path, &why);
    if (!file) {
        complain("%s", why.text);
        return EXIT_FAILED;
    }
    json_t *tree = file_json(file, all);
    gguf_close(file);
    watch_work(NULL);
    if (out_json) {
        out_tree(tree);
        return EXIT_SUCCESS;
    }
    if (out_csv)
        out_csv_rows(json_object_get(tree, "tensors"));
    else
        print_file(tree, all);
    json_decref(tree);
    return EXIT_SUCCESS;
}

int cmd_inspect(int argc, const char **argv)
{
    int all = 0, status = EXIT_USAGE;
    const struct poptOption table[] = { { "all", 'a', POPT_ARG_NONE, &all, 0,
                                          "long texts and arrays in full", NULL },
                                        OPTION_CSV,
                                        OPTIONS_COMMON,
                                        POPT_TABLEEND };
    struct arguments arguments;
    if (options_read(&arguments, &manual, table, argc, argv, 1, &status)) {
        status = EXIT_USAGE;
        if (arguments.words[0])
            status = inspect(arguments.words[0], all);
        else
            complain("the model file is missing; see %s --help", argv[0]);
    }
    options_close(&arguments);
    return status;
}
