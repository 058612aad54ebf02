/* SPDX-License-Identifier: MIT */
/* build.c - makes the operands for the parameters of a case, op by op. */
#include "problem.h"

#include "storage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---------------------------------------------------------------------------- */

void problem_fail(struct problem *p, const char *format, ...)
{
    if (p->error[0])
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->error, sizeof p->error, format, arguments);
    va_end(arguments);
}

void problem_no_memory(struct problem *p)
{
    p->no_memory = p->no_memory || !p->error[0];
    problem_fail(p, "out of memory");
}

static const char *text(const struct problem *p, const char *key)
{
    return parameter(&p->parameters, key);
}

static bool is(const struct problem *p, const char *key, const char *value)
{
    return !strcmp(text(p, key), value);
}

static int64_t integer(struct problem *p, const char *key, int64_t low, int64_t high)
{
    const char *value = text(p, key);
    char *end = NULL;
    const long long number = strtoll(value, &end, 10);

    if (end == value || *end || number < low || number > high) {
        problem_fail(p, "%s=%s: must be a whole number from %lld to %lld", key, value,
                     (long long)low, (long long)high);
        return low;
    }
    return number;
}

static float real(struct problem *p, const char *key)
{
    char *end = NULL;
    const float number = strtof(text(p, key), &end);

    if (end == text(p, key) || *end)
        problem_fail(p, "%s=%s: must be a number", key, text(p, key));
    return number;
}

static uint32_t flag(struct problem *p, const char *key)
{
    return (uint32_t)integer(p, key, 0, 1);
}

/* Reads a dtype by name; "same" is the dtype of parameter `same`, "none" is HW_NONE. */
static int32_t dtype(struct problem *p, const char *key, const char *same)
{
    const char *name = is(p, key, "same") ? text(p, same) : text(p, key);
    const int32_t type = storage_named(name);

    if (type == HW_NONE && strcmp(name, "none"))
        problem_fail(p, "%s=%s: no such dtype", key, name);
    return type;
}

/* "33x1000"; "-" has rank 0. */
static int32_t extents(struct problem *p, const char *key, int64_t extent[HW_MAX_RANK])
{
    const char *value = text(p, key);
    int32_t rank = 0;

    if (!strcmp(value, "-"))
        return 0;
    for (char *end = NULL;; value = end + 1) {
        const long long number = strtoll(value, &end, 10);
        if (end == value || number < 0 || number > INT32_MAX || rank == HW_MAX_RANK ||
            (*end && *end != 'x')) {
            problem_fail(p, "%s=%s: must be 1 to 4 extents, like 33x1000", key,
                         text(p, key));
            return 0;
        }
        extent[rank++] = number;
        if (!*end)
            return rank;
    }
}

/* ---- operands ------------------------------------------------------------------------------ */

enum { MOST_ELEMENTS = 1 << 28 };

/* Makes operand `i` with numbers of the kind `data`, or nothing if the dtype is HW_NONE. */
static void make(struct problem *p, int i, int32_t type, int32_t rank,
                 const int64_t *extent, const char *data)
{
    int64_t count = 1;

    if (p->error[0] || type == HW_NONE)
        return;
    if (rank < 1 || rank > HW_MAX_RANK) {
        problem_fail(p, "%s: rank is %d, must be 1 to 4", p->operand[i].name, (int)rank);
        return;
    }
    for (int32_t axis = 0; axis < rank; axis++) {
        if (extent[axis] && count > MOST_ELEMENTS / extent[axis]) {
            problem_fail(p, "%s: more than %d elements", p->operand[i].name, MOST_ELEMENTS);
            return;
        }
        count *= extent[axis];
    }
    p->layout[i].data = data_named(data);
    if (!p->layout[i].data)
        problem_fail(p, "no kind of data is called '%s'", data);
    else if (extent[rank - 1] % hw_dtype_block(type))
        problem_fail(p, "%s: rows of %lld elements of %s are not whole blocks",
                     p->operand[i].name, (long long)extent[rank - 1], storage_name(type));
    else if (!operand_make(&p->operand[i], type, rank, extent, p->detail == DETAIL_NUMBERS))
        problem_no_memory(p);
}

/* Gives operand `i`, of integers, the values pick(p, j). */
static void pick_integers(struct problem *p, int i,
                          int64_t (*pick)(const struct problem *p, int64_t j))
{
    const int64_t count = p->error[0] ? 0 : p->operand[i].count;
    int64_t *index = calloc((size_t)count + 1, sizeof *index);
    if (!index)
        problem_no_memory(p);
    for (int64_t j = 0; index && j < count; j++)
        index[j] = pick(p, j);
    p->layout[i].index = index;
}

/* Makes an i32 operand whose element j is pick(p, j). */
static void make_indices(struct problem *p, int i, int64_t count,
                         int64_t (*pick)(const struct problem *p, int64_t j))
{
    make(p, i, HW_I32, 1, &count, "zero");
    pick_integers(p, i, pick);
}

static void in_place(struct problem *p, int i, int same_as)
{
    p->layout[i].same_as = same_as;
}

static void check(struct problem *p, bool fine, const char *what)
{
    if (!fine)
        problem_fail(p, "%s", what);
}

static bool repeats(const struct operand *small, const struct operand *big)
{
    for (int32_t i = 1; i <= small->rank; i++)
        if (i > big->rank ||
            (small->extent[small->rank - i] != big->extent[big->rank - i] &&
             (small->extent[small->rank - i] == 0 ||
              big->extent[big->rank - i] % small->extent[small->rank - i])))
            return false;
    return true;
}

/* Makes an f32 operand with one number per head, unless parameter `key` is none. */
static void make_per_head(struct problem *p, int i, const char *key, int64_t heads)
{
    if (!is(p, key, "none"))
        make(p, i, HW_F32, 1, &heads, text(p, key));
}

/* ---- the ops ------------------------------------------------------------------------------- */

static int32_t matrix(struct problem *p, const char *batch, int64_t rows, int64_t cols,
                      int64_t extent[HW_MAX_RANK])
{
    int32_t rank = extents(p, batch, extent);

    check(p, rank <= 2, "abatch, bbatch: must be at most 2 extents");
    rank = rank > 2 ? 2 : rank;
    extent[rank] = rows;
    extent[rank + 1] = cols;
    return rank + 2;
}

static void build_matmul(struct problem *p)
{
    struct hw_matmul *op = &p->args.matmul;
    const int64_t m = integer(p, "m", 0, 1 << 20), n = integer(p, "n", 0, 1 << 20),
                  k = integer(p, "k", 0, 1 << 20);
    int64_t a[HW_MAX_RANK], b[HW_MAX_RANK], c[HW_MAX_RANK];

    op->transpose_a = flag(p, "ta");
    op->transpose_b = flag(p, "tb");
    const int32_t a_rank = matrix(p, "abatch", op->transpose_a ? k : m,
                                  op->transpose_a ? m : k, a);
    const int32_t b_rank = matrix(p, "bbatch", op->transpose_b ? n : k,
                                  op->transpose_b ? k : n, b);
    const int32_t rank = a_rank > b_rank ? a_rank : b_rank;
    for (int32_t i = 0; i < rank - 2; i++) {
        const int32_t at_a = i - (rank - a_rank), at_b = i - (rank - b_rank);
        const int64_t x = at_a < 0 ? 1 : a[at_a], y = at_b < 0 ? 1 : b[at_b];
        const bool more = x && y % x == 0; /* b has as many batches as a, or a multiple */
        check(p, more || (y && x % y == 0), "abatch must divide bbatch, or bbatch abatch");
        c[i] = more ? y : x;
    }
    c[rank - 2] = m;
    c[rank - 1] = n;
    make(p, operand_matmul_a, dtype(p, "a", ""), a_rank, a, text(p, "data"));
    make(p, operand_matmul_b, dtype(p, "b", "a"), b_rank, b,
         is(p, "data", "mixed") ? "mixed" : "uniform");
    make(p, operand_matmul_bias, dtype(p, "bias", "a"), 1, &n, "uniform");
    make(p, operand_matmul_c, dtype(p, "c", "a"), rank, c, "zero");
}

static int64_t expert_id(const struct problem *p, int64_t j)
{
    static const int32_t outside[] = { -1, INT32_MIN, INT32_MAX };
    const int64_t experts = p->operand[operand_matmul_id_b].extent[0];

    if (is(p, "pick", "wild") && j % 2)
        return j % 8 == 7 ? experts : outside[j % 8 / 2];
    if (is(p, "pick", "one"))
        return experts - 1;
    return experts ? (j * 7 + j / 5 + 3) % experts : 0;
}

static void build_matmul_id(struct problem *p)
{
    const int64_t tokens = integer(p, "tokens", 0, 1 << 20),
                  used = integer(p, "used", 0, 1 << 10),
                  experts = integer(p, "experts", 0, 1 << 16),
                  n = integer(p, "n", 0, 1 << 20), k = integer(p, "k", 0, 1 << 20);
    struct operand *ids = &p->operand[operand_matmul_id_ids];

    make(p, operand_matmul_id_a, dtype(p, "a", ""), 3,
         (int64_t[]){ tokens, flag(p, "shared") ? 1 : used, k }, text(p, "data"));
    make(p, operand_matmul_id_b, dtype(p, "b", "a"), 3, (int64_t[]){ experts, n, k },
         "uniform");
    make_indices(p, operand_matmul_id_ids, tokens * used, expert_id);
    ids->rank = 2;
    ids->extent[0] = tokens;
    ids->extent[1] = used;
    make(p, operand_matmul_id_bias, dtype(p, "bias", "a"), 2, (int64_t[]){ experts, n },
         "uniform");
    make(p, operand_matmul_id_c, dtype(p, "c", "a"), 3, (int64_t[]){ tokens, used, n },
         "zero");
}

static void build_rmsnorm(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent), type = dtype(p, "type", "");

    p->args.rmsnorm.eps = real(p, "eps");
    make(p, operand_rmsnorm_x, type, rank, extent, text(p, "data"));
    make(p, operand_rmsnorm_weight, dtype(p, "weight", "type"), 1,
         &extent[rank ? rank - 1 : 0], "uniform");
    make(p, operand_rmsnorm_y, type, rank, extent, "zero");
    if (flag(p, "inplace"))
        in_place(p, operand_rmsnorm_y, operand_rmsnorm_x);
}

static void build_layernorm(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent), type = dtype(p, "type", "");
    const int32_t weight = dtype(p, "weight", "type"), bias = dtype(p, "bias", "type");
    const int64_t *cols = &extent[rank ? rank - 1 : 0];

    check(p, weight == HW_NONE || bias == HW_NONE || weight == bias,
          "weight and bias must have one dtype");
    p->args.layernorm.eps = real(p, "eps");
    make(p, operand_layernorm_x, type, rank, extent, text(p, "data"));
    make(p, operand_layernorm_weight, weight, 1, cols, "uniform");
    make(p, operand_layernorm_bias, bias, 1, cols, "uniform");
    make(p, operand_layernorm_y, type, rank, extent, "zero");
    if (flag(p, "inplace"))
        in_place(p, operand_layernorm_y, operand_layernorm_x);
}

static void build_softmax(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 }, mask[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent), type = dtype(p, "type", "");
    const int32_t mask_rank = extents(p, "mshape", mask);

    p->args.softmax.scale = real(p, "scale");
    p->args.softmax.log = flag(p, "log");
    make(p, operand_softmax_x, type, rank, extent, text(p, "data"));
    make(p, operand_softmax_mask, dtype(p, "mask", "type"), mask_rank ? mask_rank : rank,
         mask_rank ? mask : extent, text(p, "mdata"));
    make(p, operand_softmax_y, type, rank, extent, "zero");
    check(p, repeats(&p->operand[operand_softmax_mask], &p->operand[operand_softmax_x]),
          "mshape does not repeat to shape");
    check(p,
          !mask_rank || !rank || mask[mask_rank - 1] == 1 ||
              mask[mask_rank - 1] == extent[rank - 1],
          "mshape: its last extent must be 1 or the last one of shape");
    make_per_head(p, operand_softmax_slopes, "slopes", rank < 3 ? 1 : extent[rank - 3]);
    make_per_head(p, operand_softmax_sinks, "sinks", rank < 3 ? 1 : extent[rank - 3]);
    if (flag(p, "inplace"))
        in_place(p, operand_softmax_y, operand_softmax_x);
}

static void build_silu(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent), type = dtype(p, "type", "");

    make(p, operand_silu_x, type, rank, extent, text(p, "data"));
    make(p, operand_silu_y, type, rank, extent, "zero");
    if (flag(p, "inplace"))
        in_place(p, operand_silu_y, operand_silu_x);
}

static int64_t far_position(const struct problem *p, int64_t j)
{
    (void)p;
    return (1000003 + j * 7919) % 1048576;
}

static void build_rope(struct problem *p)
{
    struct hw_rope *op = &p->args.rope;
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent), type = dtype(p, "type", "");

    check(p, rank >= 3, "shape: must have 3 or 4 extents");
    if (p->error[0])
        return;
    op->dims = (int32_t)integer(p, "dims", 0, extent[rank - 1]);
    op->start = integer(p, "start", 0, INT32_MAX);
    op->interleaved = flag(p, "interleaved");
    op->theta = real(p, "theta");
    op->scale = real(p, "scale");
    op->yarn = real(p, "yarn");
    op->context = integer(p, "context", 0, INT32_MAX);
    op->magnitude = real(p, "magnitude");
    op->beta_fast = real(p, "beta_fast");
    op->beta_slow = real(p, "beta_slow");
    const int64_t dims = op->dims ? op->dims : extent[rank - 1], pairs = dims / 2;
    check(p, dims % 2 == 0, "dims: must be even");
    make(p, operand_rope_x, type, rank, extent, text(p, "data"));
    if (is(p, "positions", "far"))
        make_indices(p, operand_rope_positions, extent[rank - 3], far_position);
    else
        check(p, is(p, "positions", "none"), "positions: must be none or far");
    if (flag(p, "factors"))
        make(p, operand_rope_factors, HW_F32, 1, &pairs, "factors");
    make(p, operand_rope_y, type, rank, extent, "zero");
    if (flag(p, "inplace"))
        in_place(p, operand_rope_y, operand_rope_x);
}

static int64_t kv_length(const struct problem *p, int64_t batch)
{
    static const int32_t wild[] = { INT32_MIN, INT32_MAX, -1 };
    const struct operand *k = &p->operand[operand_attention_k];
    const int64_t most = k->extent[k->rank - 3];

    if (is(p, "lengths", "full"))
        return most;
    if (is(p, "lengths", "mixed"))
        return (3 + batch * 17) % (most + 1);
    if (is(p, "lengths", "wild"))
        return batch % 4 < 3 ? wild[batch % 4] : most + 1;
    return is(p, "lengths", "one");
}

static void make_attention_bias(struct problem *p, const int64_t full[4])
{
    static const char axes[] = "bhqk";
    const char *shape = text(p, "bshape");
    const size_t rank = strlen(shape);
    int64_t extent[HW_MAX_RANK] = { 0 };

    check(p, rank >= 1 && rank <= 4 && shape[rank - 1] == 'k',
          "bshape: must be bhqk, hqk, qk or k, with a digit for an extent that repeats");
    for (size_t i = 0; i < rank && i < 4; i++) {
        const int64_t whole = full[4 - rank + i];
        const int64_t own = shape[i] == axes[4 - rank + i] ? whole : shape[i] - '0';
        check(p, own == whole || (own >= 1 && own <= 9 && whole % own == 0),
              "bshape: axes out of order, or a digit that does not divide the extent");
        extent[i] = own;
    }
    make(p, operand_attention_bias, dtype(p, "bias", "type"), (int32_t)rank, extent,
         text(p, "bdata"));
}

static void build_attention(struct problem *p)
{
    struct hw_attention *op = &p->args.attention;
    const int64_t batch = integer(p, "batch", 0, 1 << 16),
                  tq = integer(p, "tq", 0, 1 << 16), tmax = integer(p, "tmax", 0, 1 << 20),
                  hq = integer(p, "hq", 1, 1 << 10), hkv = integer(p, "hkv", 1, 1 << 10),
                  d = integer(p, "d", 0, HW_MAX_HEAD),
                  dv = integer(p, "dv", 1, HW_MAX_HEAD), batches = batch ? batch : 1;
    const int32_t type = dtype(p, "type", ""), k = dtype(p, "kv", ""),
                  v = dtype(p, "v", "kv"), rank = batch ? 4 : 3;
    const int skip = batch ? 0 : 1;

    check(p, hq % hkv == 0, "hq: must be a multiple of hkv");
    op->length = integer(p, "length", 0, tmax);
    op->window = integer(p, "window", 0, 1 << 20);
    op->causal = flag(p, "causal");
    op->scale = real(p, "scale");
    op->softcap = real(p, "softcap");
    make(p, operand_attention_q, type, rank, (int64_t[]){ batch, tq, hq, d } + skip,
         text(p, "data"));
    make(p, operand_attention_k, k, rank, (int64_t[]){ batch, tmax, hkv, d } + skip,
         "uniform");
    make(p, operand_attention_v, v, rank, (int64_t[]){ batch, tmax, hkv, dv } + skip,
         text(p, "vdata"));
    if (!is(p, "bias", "none"))
        make_attention_bias(p, (int64_t[]){ batches, hq, tq, tmax });
    make_per_head(p, operand_attention_slopes, "slopes", hq);
    make_per_head(p, operand_attention_sinks, "sinks", hq);
    if (!is(p, "lengths", "none"))
        make_indices(p, operand_attention_lengths, batches, kv_length);
    make(p, operand_attention_y, type, rank, (int64_t[]){ batch, tq, hq, dv } + skip,
         "zero");
}

/* add, mul, sub and div have the same operands in the same places. */
static void build_add(struct problem *p)
{
    static const char *const shapes[] = { "ashape", "bshape" }, *const names[] = { "a",
                                                                                   "b" };
    const int32_t type = dtype(p, "type", "");
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent);

    make(p, operand_add_y, type, rank, extent, "zero");
    for (int i = operand_add_a; i <= operand_add_b; i++) {
        int64_t own[HW_MAX_RANK] = { 0 };
        const int32_t own_rank = extents(p, shapes[i], own),
                      own_type = dtype(p, names[i], "type");
        make(p, i, own_type, own_rank ? own_rank : rank, own_rank ? own : extent,
             i == operand_add_a ? text(p, "data") : "uniform");
        check(p, repeats(&p->operand[i], &p->operand[operand_add_y]),
              "ashape and bshape must divide shape");
        if (is(p, "inplace", names[i])) {
            check(p, !own_rank && own_type == type,
                  "inplace: the input must have the dtype and the extents of y");
            in_place(p, operand_add_y, i);
        }
    }
}

static void build_mul(struct problem *p)
{
    build_add(p);
}

static void build_sub(struct problem *p)
{
    build_add(p);
}

static void build_div(struct problem *p)
{
    build_add(p);
}

static void build_scale(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent), type = dtype(p, "type", "");

    p->args.scale.scale = real(p, "scale");
    p->args.scale.bias = real(p, "bias");
    make(p, operand_scale_x, type, rank, extent, text(p, "data"));
    make(p, operand_scale_y, type, rank, extent, "zero");
    if (flag(p, "inplace"))
        in_place(p, operand_scale_y, operand_scale_x);
}

/* swiglu and glu have the same operands in the same places. */
static void build_swiglu(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 }, twice[HW_MAX_RANK];
    const int32_t rank = extents(p, "shape", extent), type = dtype(p, "type", "");
    const bool packed = flag(p, "packed");

    memcpy(twice, extent, sizeof twice);
    if (rank)
        twice[rank - 1] *= 2;
    make(p, operand_swiglu_gate, type, rank, packed ? twice : extent, text(p, "data"));
    make(p, operand_swiglu_up, packed ? HW_NONE : type, rank, extent, "uniform");
    make(p, operand_swiglu_y, type, rank, extent, "zero");
    if (!is(p, "inplace", "none")) {
        check(p, !packed, "inplace: must be none if packed=1");
        in_place(p, operand_swiglu_y,
                 is(p, "inplace", "up") ? operand_swiglu_up : operand_swiglu_gate);
    }
}

static int32_t activation_kind(struct problem *p)
{
    static const char *const names[] = {
        [HW_ACT_RELU] = "relu",
        [HW_ACT_LEAKY_RELU] = "leaky_relu",
        [HW_ACT_ELU] = "elu",
        [HW_ACT_SIGMOID] = "sigmoid",
        [HW_ACT_TANH] = "tanh",
        [HW_ACT_GELU] = "gelu",
        [HW_ACT_GELU_TANH] = "gelu_tanh",
        [HW_ACT_GELU_QUICK] = "gelu_quick",
        [HW_ACT_SILU] = "silu",
        [HW_ACT_CLIP] = "clip",
    };
    for (int32_t kind = HW_ACT_RELU; kind < HW_ACT_END; kind++)
        if (is(p, "kind", names[kind]))
            return kind;
    problem_fail(p, "kind=%s: no such activation", text(p, "kind"));
    return 0;
}

static void build_glu(struct problem *p)
{
    p->args.glu.kind = activation_kind(p);
    p->args.glu.alpha = real(p, "alpha");
    p->args.glu.lo = real(p, "lo");
    p->args.glu.hi = real(p, "hi");
    build_swiglu(p);
}

static void build_activation(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent), type = dtype(p, "type", "");

    p->args.activation.kind = activation_kind(p);
    p->args.activation.alpha = real(p, "alpha");
    p->args.activation.lo = real(p, "lo");
    p->args.activation.hi = real(p, "hi");
    make(p, operand_activation_x, type, rank, extent, text(p, "data"));
    make(p, operand_activation_y, type, rank, extent, "zero");
    if (flag(p, "inplace"))
        in_place(p, operand_activation_y, operand_activation_x);
}

static void build_add_rmsnorm(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent), type = dtype(p, "type", "");

    p->args.add_rmsnorm.eps = real(p, "eps");
    make(p, operand_add_rmsnorm_residual, type, rank, extent, text(p, "data"));
    make(p, operand_add_rmsnorm_x, type, rank, extent, "uniform");
    make(p, operand_add_rmsnorm_weight, dtype(p, "weight", "type"), 1,
         &extent[rank ? rank - 1 : 0], "uniform");
    make(p, operand_add_rmsnorm_y, type, rank, extent, "zero");
    if (flag(p, "inplace"))
        in_place(p, operand_add_rmsnorm_y, operand_add_rmsnorm_x);
}

static int64_t row_index(const struct problem *p, int64_t j)
{
    static const int64_t outside[] = { -1, INT32_MIN, INT32_MAX },
                         outside64[] = { INT64_C(1) << 32, INT64_MIN, INT64_MAX };
    const int64_t rows = strtoll(text(p, "rows"), NULL, 10);
    const int64_t step = rows > 7 && rows % 7 ? 7 : 1;

    if (is(p, "pick", "wild") && j % 2)
        return j % 8 == 7 ? rows : (is(p, "index", "i64") ? outside64 : outside)[j % 8 / 2];
    return rows ? (j * step + 3) % rows : 0;
}

/* The extents: the batches of `key`, then `first` and, unless it is negative, `second`. */
static int32_t batched(struct problem *p, const char *key, int64_t first, int64_t second,
                       int64_t extent[HW_MAX_RANK])
{
    int32_t rank = extents(p, key, extent);

    check(p, rank <= 2, "batch, tbatch, rbatch: must be at most 2 extents");
    rank = rank > 2 ? 2 : rank;
    extent[rank++] = first;
    if (second >= 0)
        extent[rank++] = second;
    return rank;
}

/* Makes the operands of get_rows and set_rows: `narrow` with the batches of `batch`, the table with
 * the batches of `tbatch`, the row numbers with the batches of `rbatch`. */
struct row_operands {
    int narrow, table, rows;
    const char *narrow_dtype, *tbatch, *narrow_data, *table_data;
};

static void make_rows(struct problem *p, struct row_operands o)
{
    const int64_t rows = integer(p, "rows", 0, 1 << 20),
                  cols = integer(p, "cols", 0, 1 << 20);
    const int64_t count = integer(p, "count", 0, 1 << 20);
    int64_t extent[HW_MAX_RANK];

    int32_t rank = batched(p, o.tbatch, rows, cols, extent);
    make(p, o.table, dtype(p, "table", ""), rank, extent, o.table_data);
    rank = batched(p, "rbatch", count, -1, extent);
    make(p, o.rows, dtype(p, "index", ""), rank, extent, "zero");
    pick_integers(p, o.rows, row_index);
    rank = batched(p, "batch", count, cols, extent);
    make(p, o.narrow, dtype(p, o.narrow_dtype, ""), rank, extent, o.narrow_data);
}

static void build_get_rows(struct problem *p)
{
    make_rows(p, (struct row_operands){ .narrow = operand_get_rows_y,
                                        .table = operand_get_rows_table,
                                        .rows = operand_get_rows_rows,
                                        .narrow_dtype = "y",
                                        .tbatch = "tbatch",
                                        .narrow_data = "zero",
                                        .table_data = text(p, "data") });
}

static void build_set_rows(struct problem *p)
{
    check(p, integer(p, "count", 0, 1 << 20) <= integer(p, "rows", 0, 1 << 20),
          "count: must not exceed rows, so that no two write the same row");
    make_rows(p, (struct row_operands){ .narrow = operand_set_rows_x,
                                        .table = operand_set_rows_table,
                                        .rows = operand_set_rows_rows,
                                        .narrow_dtype = "x",
                                        .tbatch = "batch",
                                        .narrow_data = text(p, "data"),
                                        .table_data = "uniform" });
}

static void build_copy(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent);

    make(p, operand_copy_src, dtype(p, "src", ""), rank, extent, text(p, "data"));
    make(p, operand_copy_dst, dtype(p, "dst", "src"), rank, extent, "zero");
}

static void build_argmax(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent);

    make(p, operand_argmax_x, dtype(p, "type", ""), rank, extent, text(p, "data"));
    if (p->error[0])
        return;
    const int64_t cols = extent[rank - 1];
    check(p, cols > 0, "shape: the last extent must not be 0");
    extent[rank - 1] = 1;
    make(p, operand_argmax_y, HW_I32, rank > 1 && !flag(p, "keep") ? rank - 1 : rank,
         extent, "zero");
}

static void build_top_k(struct problem *p)
{
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent), type = dtype(p, "type", "");

    make(p, operand_top_k_x, type, rank, extent, text(p, "data"));
    if (p->error[0])
        return;
    const int64_t cols = extent[rank - 1];
    extent[rank - 1] = integer(p, "k", 0, cols < HW_MAX_K ? cols : HW_MAX_K);
    make(p, operand_top_k_values, flag(p, "values") ? type : HW_NONE, rank, extent, "zero");
    make(p, operand_top_k_indices, HW_I32, rank, extent, "zero");
}

/* The extents of y are the shape's, without the last one or with 1 in its place. */
static void build_dot(struct problem *p)
{
    static const char *const keys[] = { "ashape", "bshape" }, *const names[] = { "a", "b" };
    int64_t extent[HW_MAX_RANK] = { 0 };
    const int32_t rank = extents(p, "shape", extent);

    for (int i = operand_dot_a; i <= operand_dot_b; i++) {
        int64_t own[HW_MAX_RANK] = { 0 };
        const int32_t own_rank = extents(p, keys[i], own);
        make(p, i, dtype(p, names[i], ""), own_rank ? own_rank : rank,
             own_rank ? own : extent, i == operand_dot_a ? text(p, "data") : "uniform");
    }
    if (p->error[0])
        return;
    const struct operand *a = &p->operand[operand_dot_a], *b = &p->operand[operand_dot_b];
    for (int32_t i = 1; i <= rank; i++) {
        const int64_t of_a = i > a->rank ? 1 : a->extent[a->rank - i],
                      of_b = i > b->rank ? 1 : b->extent[b->rank - i];
        check(p,
              i > 1 ? (of_a == 1 ? of_b : of_a) == extent[rank - i] &&
                          (of_b == 1 || of_b == extent[rank - i])
                    : of_a == of_b && of_a == extent[rank - 1],
              "ashape and bshape must broadcast to shape and share its last extent");
    }
    check(p, rank == a->rank || rank == b->rank, "ashape or bshape must have shape's rank");
    extent[rank - 1] = 1;
    make(p, operand_dot_y, dtype(p, "y", ""),
         rank > 1 && !flag(p, "keep") ? rank - 1 : rank, extent, "zero");
}

/* The number of places of a kernel along one axis. */
static int64_t places(int64_t extent, int64_t kernel, int32_t stride, int32_t pad,
                      int32_t dilation)
{
    const int64_t reach = (kernel - 1) * (dilation ? dilation : 1) + 1;
    const int64_t padded = extent + 2 * (int64_t)pad;
    return padded < reach ? 0 : (padded - reach) / (stride ? stride : 1) + 1;
}

static void build_conv2d(struct problem *p)
{
    struct hw_conv2d *op = &p->args.conv2d;
    const int64_t batch = integer(p, "batch", 0, 1 << 16),
                  cin = integer(p, "cin", 0, 1 << 16),
                  cout = integer(p, "cout", 0, 1 << 16), h = integer(p, "h", 0, 1 << 16),
                  w = integer(p, "w", 0, 1 << 16), kh = integer(p, "kh", 1, 1 << 16),
                  kw = integer(p, "kw", 1, 1 << 16);

    op->stride_h = (int32_t)integer(p, "sh", 0, 1 << 16);
    op->stride_w = (int32_t)integer(p, "sw", 0, 1 << 16);
    op->pad_h = (int32_t)integer(p, "ph", 0, 1 << 16);
    op->pad_w = (int32_t)integer(p, "pw", 0, 1 << 16);
    op->dilation_h = (int32_t)integer(p, "dh", 0, 1 << 16);
    op->dilation_w = (int32_t)integer(p, "dw", 0, 1 << 16);
    op->groups = (int32_t)integer(p, "groups", 0, 1 << 16);
    const int64_t groups = op->groups ? op->groups : 1;
    check(p, cin % groups == 0 && cout % groups == 0, "groups must divide cin and cout");
    make(p, operand_conv2d_x, dtype(p, "x", ""), 4, (int64_t[]){ batch, cin, h, w },
         text(p, "data"));
    make(p, operand_conv2d_weight, dtype(p, "weight", "x"), 4,
         (int64_t[]){ cout, cin / groups, kh, kw }, "uniform");
    make(p, operand_conv2d_bias, dtype(p, "bias", "x"), 1, &cout, "uniform");
    make(p, operand_conv2d_y, dtype(p, "y", "x"), 4,
         (int64_t[]){ batch, cout, places(h, kh, op->stride_h, op->pad_h, op->dilation_h),
                      places(w, kw, op->stride_w, op->pad_w, op->dilation_w) },
         "zero");
}

/* ---- all of them --------------------------------------------------------------------------- */

void problem_build(struct problem *p)
{
    switch (p->op) {
#define X(NAME, name)                                                                      \
    case HW_OP_##NAME:                                                                     \
        build_##name(p);                                                                   \
        break;
        HW_OPS(X)
#undef X
    default:
        break;
    }
}
