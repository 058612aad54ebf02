/* SPDX-License-Identifier: MIT */
/* fields.c - the fields of each op's struct, for bindings: the lists of <hw/ops.h> as data. */
#include "base/argument.h"
#include "base/message.h"
#include "call/ops.h"

#include <hw/report.h>

#include <string.h>

struct field {
    const char *name, *zero;
    uint32_t offset, bytes;
    int32_t type; /* enum hw_field_type */
    int32_t role; /* enum hw_role */
};

#define BYTES(op, field) sizeof(((struct hw_##op *)0)->field)

/* ---- the table ---- */

static const char *const zero_of_role[] = {
    [HW_ROLE_IN] = "",  [HW_ROLE_OPT_IN] = "absent",  [HW_ROLE_WEIGHT] = "",
    [HW_ROLE_OUT] = "", [HW_ROLE_OPT_OUT] = "absent", [HW_ROLE_INOUT] = "",
};

#define T(op, field, part)                                                                 \
    { .name = #field,                                                                      \
      .offset = offsetof(struct hw_##op, field),                                           \
      .bytes = BYTES(op, field),                                                           \
      .type = HW_FIELD_TENSOR,                                                             \
      .role = HW_ROLE_##part },
#define S(op, field, kind, meaning)                                                        \
    { .name = #field,                                                                      \
      .zero = meaning,                                                                     \
      .offset = offsetof(struct hw_##op, field),                                           \
      .bytes = BYTES(op, field),                                                           \
      .type = HW_FIELD_##kind },
#define X(NAME, name)                                                                      \
    static const struct field fields_##name[] = { HW_OPERANDS_##NAME(T)                    \
                                                      HW_SCALARS_##NAME(S) };
HW_OPS(X)
#undef X
#undef S
#undef T

static const struct {
    const struct field *fields;
    uint32_t count;
} tables[HW_OP_COUNT] = {
#define X(NAME, name) { fields_##name, sizeof fields_##name / sizeof *fields_##name },
    HW_OPS(X)
#undef X
};

/* The lists cover every byte of a struct, and their types match the fields. */
#define T(op, field, role)       +BYTES(op, field)
#define S(op, field, type, zero) +BYTES(op, field)
#define X(NAME, name)                                                                      \
    _Static_assert(0 HW_OPERANDS_##NAME(T)                                                 \
                           HW_SCALARS_##NAME(S) == sizeof(struct hw_##name),               \
                   "the lists of " #name " have every field");
HW_OPS(X)
#undef X
#undef S
#undef T
#define TYPE_I32      int32_t
#define TYPE_I64      int64_t
#define TYPE_F32      float
#define TYPE_FLAG     uint32_t
#define TYPE_RESERVED uint32_t
#define S(op, field, type, zero)                                                           \
    _Static_assert(_Generic(((struct hw_##op *)0)->field, TYPE_##type : 1, default : 0),   \
                   #op "." #field " is not " #type);
#define X(NAME, name) HW_SCALARS_##NAME(S)
HW_OPS(X)
#undef X
#undef S

/* ---- for applications ---- */

size_t hw_op_size(uint32_t op)
{
    return op < HW_OP_COUNT ? op_rows[op].size : 0;
}

enum hw_status hw_op_field(uint32_t op, uint32_t index, struct hw_field_info *info)
{
    REQUIRE(info);
    if (op >= HW_OP_COUNT)
        return fail(HW_INVALID, "hw_op_field: %u is not an op; this library knows %d",
                    (unsigned)op, HW_OP_COUNT);
    const enum hw_status status = check_size(__func__, "info", info, 2 * sizeof(uint32_t));
    if (status)
        return status;
    if (index >= tables[op].count)
        return HW_END;
    const struct field *field = &tables[op].fields[index];
    const struct hw_field_info known = {
        .size = info->size < sizeof known ? info->size : (uint32_t)sizeof known,
        .type = field->type,
        .role = field->role,
        .offset = field->offset,
        .bytes = field->bytes,
        .name = field->name,
        .zero = field->zero ? field->zero : zero_of_role[field->role],
    };
    memcpy(info, &known, known.size);
    return HW_OK;
}
