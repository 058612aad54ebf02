/* SPDX-License-Identifier: MIT */
/* fields.c - the op table as data, from the lists of <hw/ops.h>. */
#include "base/argument.h"
#include "base/message.h"
#include "call/ops.h"
#include "call/queue.h"

#include <hw/report.h>

#include <string.h>

#define BYTES(op, field) sizeof(((struct hw_##op *)0)->field)
#define FIELD(op, field) #field, offsetof(struct hw_##op, field), BYTES(op, field)

/* ---- the table ---- */

#define T(op, field, role)          { FIELD(op, field), HW_FIELD_TENSOR, HW_ROLE_##role, NULL },
#define S(op, field, type, meaning) { FIELD(op, field), HW_FIELD_##type, 0, meaning },
#define X(NAME, name)                                                                      \
    static int32_t call_##name(struct hw_queue *queue, const void *args)                   \
    {                                                                                      \
        return queue->ops.name(queue->device_impl, queue->impl, args);                     \
    }                                                                                      \
    static const struct operand_row fields_##name[] = { HW_OPERANDS_##NAME(T)              \
                                                            HW_SCALARS_##NAME(S) };        \
    _Static_assert(OPERANDS_##name <= MAX_OPERANDS &&                                      \
                       sizeof fields_##name / sizeof *fields_##name - OPERANDS_##name <=   \
                           MAX_SCALARS,                                                    \
                   #name ": more fields than MAX_OPERANDS, MAX_SCALARS");
HW_OPS(X)
#undef X
#undef S
#undef T

#define OUTPUT(op, field, role)                                                            \
    | (uint32_t)(HW_ROLE_##role >= HW_ROLE_OUT) << OPERAND_##op##_##field
const struct op_row op_rows[HW_OP_COUNT] = {
#define X(NAME, name)                                                                      \
    { .size = sizeof(struct hw_##name),                                                    \
      .operand_count = OPERANDS_##name,                                                    \
      .field_count = sizeof fields_##name / sizeof *fields_##name,                         \
      .written = 0 HW_OPERANDS_##NAME(OUTPUT),                                             \
      .operands = fields_##name,                                                           \
      .call = call_##name },
    HW_OPS(X)
#undef X
};
#undef OUTPUT

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
    if (index >= op_rows[op].field_count)
        return HW_END;
    const struct operand_row *field = &op_rows[op].operands[index];
    const char *zero = role_optional(field->role) ? "absent" : "";
    const struct hw_field_info known = {
        .type = field->type,
        .role = (int32_t)field->role,
        .offset = field->offset,
        .bytes = field->bytes,
        .name = field->name,
        .zero = field->zero ? field->zero : zero,
    };
    return answer_struct(info, &known, sizeof known);
}
