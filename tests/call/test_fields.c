/* SPDX-License-Identifier: MIT */
/* test_fields.c - the op table at run time: numbers by name, and the fields of each struct. */
#include "call/ops.h"
#include "world.h"

/* The types in the lists match the fields. */
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

static struct hw_field_info field(uint32_t op, uint32_t index)
{
    struct hw_field_info info = { .size = sizeof info };
    ok(hw_op_field(op, index, &info));
    return info;
}

/* Returns the field with this name. */
static struct hw_field_info named(uint32_t op, const char *name)
{
    uint32_t i = 0;
    while (strcmp(field(op, i).name, name) != 0)
        i++;
    return field(op, i);
}

static void numbers(void **state)
{
    uint32_t op;
    (void)state;
    for (uint32_t i = 0; i < HW_OP_COUNT; i++) {
        ok(hw_op_find(hw_op_name(i), &op));
        assert_int_equal(op, i);
    }
    fails(HW_UNSUPPORTED, "no op 'MATMUL'; it has matmul rmsnorm",
          hw_op_find("MATMUL", &op));
    fails(HW_UNSUPPORTED, "no op ''", hw_op_find("", &op));
    fails(HW_INVALID, "NULL", hw_op_find(NULL, &op));
    fails(HW_INVALID, "NULL", hw_op_find("matmul", NULL));
}

/* Each field begins where the previous one ends, and the last one ends with the struct. */
static void no_gaps(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < HW_OP_COUNT; op++) {
        struct hw_field_info info = { .size = sizeof info };
        uint32_t end = 0, i = 0;
        for (; hw_op_field(op, i, &info) == HW_OK; i++) {
            assert_int_equal(info.offset, end);
            assert_int_equal(info.size, sizeof info);
            end += info.bytes;
        }
        assert_int_equal(hw_op_field(op, i, &info), HW_END);
        assert_int_equal(end, hw_op_size(op));
        assert_int_equal(end, op_rows[op].size);
    }
    assert_int_equal(hw_op_size(HW_OP_COUNT), 0);
}

static void field_properties(void **state)
{
    (void)state;
    const struct hw_field_info k = named(HW_OP_ATTENTION, "k"),
                               bias = named(HW_OP_ATTENTION, "bias"),
                               scale = named(HW_OP_ATTENTION, "scale"),
                               causal = named(HW_OP_ATTENTION, "causal"),
                               start = named(HW_OP_ROPE, "start"),
                               eps = named(HW_OP_RMSNORM, "eps");
    assert_int_equal(k.offset, offsetof(struct hw_attention, k));
    assert_int_equal(k.type, HW_FIELD_TENSOR);
    assert_int_equal(k.bytes, sizeof(struct hw_tensor));
    assert_int_equal(k.role, HW_ROLE_IN);
    assert_string_equal(k.zero, "");
    assert_int_equal(bias.role, HW_ROLE_OPT_IN);
    assert_string_equal(bias.zero, "absent");
    assert_int_equal(scale.offset, offsetof(struct hw_attention, scale));
    assert_int_equal(scale.type, HW_FIELD_F32);
    assert_string_equal(scale.zero, "1/sqrt(D)");
    assert_int_equal(causal.type, HW_FIELD_FLAG);
    assert_string_equal(causal.zero, "0");
    assert_int_equal(start.type, HW_FIELD_I64);
    assert_int_equal(start.bytes, 8);
    assert_string_equal(eps.zero, "0");
    assert_int_equal(named(HW_OP_ATTENTION, "reserved").type, HW_FIELD_RESERVED);
    assert_int_equal(named(HW_OP_ADD_RMSNORM, "residual").role, HW_ROLE_INOUT);
}

/* A caller built against an older library passes a shorter struct. */
static void sizes(void **state)
{
    struct hw_field_info info = { .name = "kept" };
    (void)state;
    fails(HW_INVALID, "set it to sizeof", hw_op_field(HW_OP_ADD, 0, &info));
    fails(HW_INVALID, "NULL", hw_op_field(HW_OP_ADD, 0, NULL));
    info.size = offsetof(struct hw_field_info, name);
    fails(HW_INVALID, "is not an op", hw_op_field(HW_OP_COUNT, 0, &info));
    ok(hw_op_field(HW_OP_ADD, 2, &info));
    assert_int_equal(info.role, HW_ROLE_OUT);
    assert_string_equal(info.name, "kept");
    assert_int_equal(info.size, offsetof(struct hw_field_info, name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(no_gaps),
        cmocka_unit_test(field_properties),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
