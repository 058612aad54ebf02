/* SPDX-License-Identifier: MIT */
/* storage.c - see storage.h. */
#include "storage.h"

#include "blocks.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A binary float of fewer than 32 bits: IEEE 754 with these field widths. */
struct format {
    int mantissa, exponent;
};
static const struct format f16 = { 10, 5 }, bf16 = { 7, 8 };

static int lowest_exponent(struct format f)
{
    return 2 - (1 << (f.exponent - 1));
}

/* 2^exponent, -1022 to 1023. */
static double power(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The exponent of the leading bit of a finite value; for zero and subnormals, a very low
 * number. */
static int exponent_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

static double decode(struct format f, uint32_t code)
{
    const int special = (1 << f.exponent) - 1;
    const int exponent = (int)(code >> f.mantissa) & special;
    const int fraction = (int)(code & ((1u << f.mantissa) - 1));
    const double sign = code >> (f.mantissa + f.exponent) & 1 ? -1.0 : 1.0;

    if (exponent == special)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * fraction * power(lowest_exponent(f) - f.mantissa);
    return sign * (fraction + (1 << f.mantissa)) *
           power(exponent - 1 + lowest_exponent(f) - f.mantissa);
}

/* The significand is rounded to an integer of mantissa + 1 bits. Its top bit carries into the field
 * of the exponent, and so does rounding up to the next power of two. */
static uint32_t encode(struct format f, double value)
{
    const uint32_t sign = signbit(value) ? 1u << (f.mantissa + f.exponent) : 0;
    const uint32_t infinity = ((1u << f.exponent) - 1) << f.mantissa;
    const int lowest = lowest_exponent(f);

    if (isnan(value))
        return sign | infinity | 1u << (f.mantissa - 1);
    if (isinf(value) || exponent_of(value) >= 1 << (f.exponent - 1))
        return sign | infinity;
    const int exponent = exponent_of(value) > lowest ? exponent_of(value) : lowest;
    const double significand = nearbyint(fabs(value) * power(f.mantissa - exponent));
    return sign | (((uint32_t)(exponent - lowest) << f.mantissa) + (uint32_t)significand);
}

static uint32_t read16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static void write16(unsigned char *p, uint32_t code)
{
    p[0] = (unsigned char)code;
    p[1] = (unsigned char)(code >> 8);
}

size_t storage_bytes(int32_t dtype, int64_t elements)
{
    const int64_t block = hw_dtype_block(dtype);
    return block ? (size_t)(elements / block * hw_dtype_bytes(dtype)) : 0;
}

static double read_f32(const unsigned char *p)
{
    float f;
    memcpy(&f, p, sizeof f);
    return (double)f;
}

static double read_i32(const unsigned char *p)
{
    int32_t i;
    memcpy(&i, p, sizeof i);
    return i;
}

static double read_i64(const unsigned char *p)
{
    int64_t i;
    memcpy(&i, p, sizeof i);
    return (double)i;
}

double storage_read(int32_t dtype, const unsigned char *packed, int64_t i)
{
    const int64_t block = hw_dtype_block(dtype);

    if (block > 1)
        return (double)block_read(dtype, packed + i / block * hw_dtype_bytes(dtype),
                                  (int)(i % block));
    switch (dtype) {
    case HW_F32:
        return read_f32(packed + 4 * i);
    case HW_F16:
        return decode(f16, read16(packed + 2 * i));
    case HW_BF16:
        return decode(bf16, read16(packed + 2 * i));
    case HW_I8:
        return (signed char)packed[i];
    case HW_I32:
        return read_i32(packed + 4 * i);
    case HW_I64:
        return read_i64(packed + 8 * i);
    default:
        return (double)NAN;
    }
}

void storage_read_all(int32_t dtype, const unsigned char *packed, double *values,
                      int64_t count)
{
    const int64_t block = hw_dtype_block(dtype);

    for (int64_t i = 0; i < count; i += block)
        if (block > 1)
            block_read_all(dtype, packed + storage_bytes(dtype, i), values + i);
        else
            values[i] = storage_read(dtype, packed, i);
}

static void write_block(int32_t dtype, unsigned char *block, const double *values)
{
    float x[256];
    for (int64_t i = 0; i < hw_dtype_block(dtype); i++)
        x[i] = (float)values[i];
    block_write(dtype, block, x);
}

void storage_write(int32_t dtype, unsigned char *packed, const double *values,
                   int64_t count)
{
    const int64_t block = hw_dtype_block(dtype), bytes = hw_dtype_bytes(dtype);

    for (int64_t i = 0; i < count; i += block) {
        unsigned char *p = packed + i / block * bytes;
        const float f = (float)values[i];
        switch (dtype) {
        case HW_F32:
            memcpy(p, &f, sizeof f);
            break;
        case HW_F16:
            write16(p, encode(f16, values[i]));
            break;
        case HW_BF16:
            write16(p, encode(bf16, values[i]));
            break;
        case HW_I8:
            *p = (unsigned char)(signed char)values[i];
            break;
        case HW_I32:
            memcpy(p, &(int32_t){ (int32_t)values[i] }, 4);
            break;
        case HW_I64:
            memcpy(p, &(int64_t){ (int64_t)values[i] }, 8);
            break;
        default:
            write_block(dtype, p, values + i);
            break;
        }
    }
}

double storage_round(int32_t dtype, double value)
{
    unsigned char packed[8] = { 0 };
    storage_write(dtype, packed, &value, 1);
    return storage_read(dtype, packed, 0);
}

double storage_unit(int32_t dtype)
{
    return dtype == HW_F16 ? 0x1p-11 : dtype == HW_BF16 ? 0x1p-8 : 0x1p-24;
}

double storage_largest(int32_t dtype)
{
    return dtype == HW_F16 ? 65504.0 : dtype == HW_BF16 ? 0x1.fep127 : (double)FLT_MAX;
}

double storage_floor(int32_t dtype)
{
    return dtype == HW_F16 ? 0x1p-25 : 0x1p-120;
}

bool storage_is_float(int32_t dtype)
{
    return dtype == HW_F32 || dtype == HW_F16 || dtype == HW_BF16;
}

bool storage_is_block(int32_t dtype)
{
    return hw_dtype_block(dtype) > 1;
}

static const struct {
    int32_t dtype;
    const char *name;
} names[] = {
#define X(NAME, value, name, elements, bytes) { HW_##NAME, name },
    HW_DTYPES(X)
#undef X
};

int32_t storage_named(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i].name, name))
            return names[i].dtype;
    return HW_NONE;
}

const char *storage_name(int32_t dtype)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].dtype == dtype)
            return names[i].name;
    return "none";
}

int64_t storage_count(const struct hw_tensor *tensor)
{
    int64_t count = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        count *= tensor->extent[i];
    return count;
}

/* Units (elements, or blocks of a block type) along the innermost axis of a tensor. */
struct line {
    int64_t offset; /* of the first unit in the tensor, in bytes */
    int64_t index;  /* of the first unit in row-major order */
    int64_t count, stride;
    size_t bytes; /* of a unit */
};
typedef void (*line_fn)(void *user, const struct line *line);

/* Moves `position` to the next line; returns by how many bytes. */
static int64_t line_step(const struct hw_tensor *tensor, int64_t *position)
{
    int64_t step = 0;
    for (int32_t axis = tensor->rank - 2; axis >= 0; axis--) {
        step += tensor->stride[axis];
        if (++position[axis] < tensor->extent[axis])
            break;
        step -= tensor->extent[axis] * tensor->stride[axis];
        position[axis] = 0;
    }
    return step;
}

/* Calls `fn` for each line in row-major order. */
static void walk(const struct hw_tensor *tensor, line_fn fn, void *user)
{
    const int64_t units = storage_count(tensor) / hw_dtype_block(tensor->dtype);
    const int64_t count = tensor->extent[tensor->rank - 1] / hw_dtype_block(tensor->dtype);
    int64_t position[HW_MAX_RANK] = { 0 };
    struct line line = { .count = count,
                         .stride = tensor->stride[tensor->rank - 1],
                         .bytes = (size_t)hw_dtype_bytes(tensor->dtype) };

    for (; line.index < units; line.index += line.count) {
        fn(user, &line);
        line.offset += line_step(tensor, position);
    }
}

struct sides {
    unsigned char *strided, *packed;
    int value;
};

/* Copies units between two places; the usual sizes without a call for each. */
static void move_units(unsigned char *to, int64_t to_stride, const unsigned char *from,
                       int64_t from_stride, const struct line *line)
{
    for (int64_t i = 0; i < line->count; i++, to += to_stride, from += from_stride)
        if (line->bytes == 4)
            memcpy(to, from, 4);
        else if (line->bytes == 2)
            memcpy(to, from, 2);
        else
            memcpy(to, from, line->bytes);
}

static void to_packed(void *user, const struct line *line)
{
    const struct sides *s = user;
    const int64_t bytes = (int64_t)line->bytes;
    move_units(s->packed + line->index * bytes, bytes, s->strided + line->offset,
               line->stride, line);
}

static void to_strided(void *user, const struct line *line)
{
    const struct sides *s = user;
    const int64_t bytes = (int64_t)line->bytes;
    move_units(s->strided + line->offset, line->stride, s->packed + line->index * bytes,
               bytes, line);
}

static void to_value(void *user, const struct line *line)
{
    const struct sides *s = user;
    for (int64_t i = 0; i < line->count; i++)
        memset(s->strided + line->offset + i * line->stride, s->value, line->bytes);
}

/* Whether the elements are contiguous, so that one move suffices. */
static bool is_packed(const struct hw_tensor *tensor)
{
    int64_t bytes = hw_dtype_bytes(tensor->dtype);
    for (int32_t axis = tensor->rank - 1; axis >= 0; axis--) {
        if (tensor->stride[axis] != bytes)
            return false;
        bytes *= axis == tensor->rank - 1
                     ? tensor->extent[axis] / hw_dtype_block(tensor->dtype)
                     : tensor->extent[axis];
    }
    return true;
}

void storage_gather(const struct hw_tensor *tensor, const unsigned char *first,
                    unsigned char *packed)
{
    if (is_packed(tensor)) {
        memcpy(packed, first, storage_bytes(tensor->dtype, storage_count(tensor)));
        return;
    }
    walk(tensor, to_packed, &(struct sides){ (unsigned char *)first, packed, 0 });
}

void storage_scatter(const struct hw_tensor *tensor, unsigned char *first,
                     const unsigned char *packed)
{
    if (is_packed(tensor)) {
        memcpy(first, packed, storage_bytes(tensor->dtype, storage_count(tensor)));
        return;
    }
    walk(tensor, to_strided, &(struct sides){ first, (unsigned char *)packed, 0 });
}

void storage_set(const struct hw_tensor *tensor, unsigned char *first, int value)
{
    if (is_packed(tensor)) {
        memset(first, value, storage_bytes(tensor->dtype, storage_count(tensor)));
        return;
    }
    walk(tensor, to_value, &(struct sides){ first, NULL, value });
}
