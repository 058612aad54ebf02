/* SPDX-License-Identifier: MIT */
/* argmax and top_k, as defined by the portable kernels of these names. argmax finds the largest
 * element of each block in vectors, and searches only the best block for its index. top_k compares
 * vectors with the last of the k best so far: in a long row, few elements are above it, and these
 * go into a heap. */
#include "words.h"

DECLARE_PLAN(argmax);
DECLARE_PLAN(top_k);

enum {
    BLOCK = 1024, /* elements; a multiple of SUMS vectors */
    SUMS = 4      /* side by side: an addition takes several cycles */
};

INLINE int64_t lanes_of(int64_t left)
{
    return left < LANES ? left : LANES;
}

/* ---- the order of elements ---- */

enum { ORDER_NAN = INT32_MAX };

/* Like order_of() of prelude/math.h. */
static int32_t order_of(float v)
{
    int32_t bits;
    memcpy(&bits, &v, sizeof bits);
    const int32_t size = bits & INT32_MAX;
    return v != v ? ORDER_NAN : bits < 0 ? -size : size;
}

static float of_order(int32_t order)
{
    const uint32_t bits = order < 0 ? UINT32_C(1) << 31 | (uint32_t)-order
                                    : (uint32_t)order;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ---- argmax ---- */

struct block {
    float greatest; /* of numbers */
    float sum;      /* NaN if an element is */
};

INLINE struct block block_of(int type, const char *x, int64_t first, int64_t end)
{
    vf best[SUMS], sum[SUMS];
    int64_t i = first;
    EACH (k, SUMS) {
        best[k] = vf_set(-INFINITY);
        sum[k] = vf_set(0);
    }
    for (; i + SUMS * LANES <= end; i += SUMS * LANES)
        EACH (k, SUMS) {
            const vf v = vf_load_as(type, x, i + k * LANES);
            best[k] = vf_max(v, best[k]);
            sum[k] += v;
        }
    for (; i < end; i += LANES) {
        const int64_t n = lanes_of(end - i);
        const vf v = vf_load_part_as(type, x, i, n);
        best[0] = vf_max(vf_part(v, n, vf_set(-INFINITY)), best[0]);
        sum[0] += v;
    }
    return (struct block){
        vf_greatest(vf_max(vf_max(best[0], best[1]), vf_max(best[2], best[3]))),
        vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3])),
    };
}

INLINE vf load_lanes(int type, const char *x, int64_t i, int64_t n)
{
    return n < LANES ? vf_load_part_as(type, x, i, n) : vf_load_as(type, x, i);
}

/* The index of the first element in first .. end - 1 that equals `greatest`, the maximum of all, or
 * that is a NaN if `greatest` is one. Returns `end` if there is none. */
INLINE int64_t index_of(int type, const char *x, int64_t first, int64_t end, float greatest)
{
    const bool nan = greatest != greatest;
    const vf below = vf_set(nan ? INFINITY : of_order(order_of(greatest) - 1));
    for (int64_t i = first; i < end; i += LANES) {
        const int64_t n = lanes_of(end - i);
        const vf some = load_lanes(type, x, i, n);
        float v[LANES];
        if (!vf_any_above(some, below))
            continue;
        vf_store(v, some);
        for (int64_t l = 0; l < n; l++)
            if (nan ? v[l] != v[l] : v[l] == greatest)
                return i + l;
    }
    return end;
}

/* The sum of infinities may be NaN, too, where no element is. */
INLINE int64_t argmax_of(int type, const char *x, int64_t cols)
{
    float top = -INFINITY;
    int64_t at = 0;
    for (int64_t i = 0; i < cols; i += BLOCK) {
        const int64_t end = i + BLOCK < cols ? i + BLOCK : cols;
        const struct block b = block_of(type, x, i, end);
        const int64_t bad = b.sum == b.sum ? end : index_of(type, x, i, end, b.sum);
        if (bad < end)
            return bad;
        if (b.greatest > top) {
            top = b.greatest;
            at = i;
        }
    }
    return index_of(type, x, at, cols, top);
}

/* ---- top_k ---- */

/* An entry is a single number. A larger element has a larger entry; among equal elements, a smaller
 * index has. The heap has its smallest entry first: entry i is not above entries 2 i + 1 and 2 i +
 * 2. */
struct heap {
    int64_t entry[TOP_K_MAX];
    int k, have;
    float least; /* of the k best so far */
};

enum { INDEX_LAST = INT32_MAX };

static int64_t entry_of(int32_t order, int64_t index)
{
    return (int64_t)order * (INT64_C(1) << 32) + (INDEX_LAST - index);
}

/* Puts an entry at place i or below. */
static void sift_down(int64_t *entry, int n, int i, int64_t x)
{
    for (int next; (next = 2 * i + 1) < n; i = next) {
        next += next + 1 < n && entry[next + 1] < entry[next];
        if (x <= entry[next])
            break;
        entry[i] = entry[next];
    }
    entry[i] = x;
}

static void sift_up(int64_t *entry, int i, int64_t x)
{
    for (; i > 0 && x < entry[(i - 1) / 2]; i = (i - 1) / 2)
        entry[i] = entry[(i - 1) / 2];
    entry[i] = x;
}

/* The first elements, from index `first` on. */
static void fill(struct heap *h, const float *v, int64_t n, int64_t first)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = entry_of(order_of(v[i]), first + i);
        if (h->have < h->k)
            sift_up(h->entry, h->have++, x);
        else if (x > h->entry[0])
            sift_down(h->entry, h->k, 0, x);
    }
    h->least = of_order((int32_t)(h->entry[0] >> 32));
}

/* Adds those of n elements that are among the best so far. */
static void consider(struct heap *h, const float *v, int64_t n, int64_t first)
{
    for (int64_t i = 0; i < n; i++) {
        if (v[i] <= h->least || h->least != h->least)
            continue;
        sift_down(h->entry, h->k, 0, entry_of(order_of(v[i]), first + i));
        h->least = of_order((int32_t)(h->entry[0] >> 32));
    }
}

/* Adds the elements above `least` of at most SUMS vectors from index `first` on. */
INLINE void consider_some(int type, struct heap *h, const char *x, int64_t first,
                          int64_t end)
{
    float v[LANES];
    for (int64_t i = first; i < end; i += LANES) {
        const int64_t n = lanes_of(end - i);
        const vf some = load_lanes(type, x, i, n);
        if (!vf_any_above(some, vf_set(h->least)))
            continue;
        vf_store(v, some);
        consider(h, v, n, i);
    }
}

INLINE void scan(int type, struct heap *h, const char *x, int64_t cols)
{
    float v[LANES];
    int64_t i = 0;
    for (; h->have < h->k; i += LANES) {
        vf_store(v, load_lanes(type, x, i, lanes_of(cols - i)));
        fill(h, v, lanes_of(cols - i), i);
    }
    vf least = vf_set(h->least);
    for (; i + SUMS * LANES <= cols; i += SUMS * LANES) {
        bool above = false;
        EACH (k, SUMS)
            above |= vf_any_above(vf_load_as(type, x, i + k * LANES), least);
        if (!above)
            continue;
        consider_some(type, h, x, i, i + SUMS * LANES);
        least = vf_set(h->least);
    }
    consider_some(type, h, x, i, cols);
}

/* Sorts with the largest entry first. */
static void sort(struct heap *h)
{
    for (int n = h->k - 1; n > 0; n--) {
        const int64_t x = h->entry[n];
        h->entry[n] = h->entry[0];
        sift_down(h->entry, n, 0, x);
    }
}

/* ---- the rows of kernels.def ---- */

static void run_argmax(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct argmax_args *a = &plan->lowered.args.argmax;
    const int32_t type = ((const struct hw_argmax *)plan->op)->x.dtype;
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        const char *x = row_of(plan->pointer[1], &a->x, a->n1, a->n2, i);
        const int64_t at = type == HW_F32   ? argmax_of(HW_F32, x, a->cols)
                           : type == HW_F16 ? argmax_of(HW_F16, x, a->cols)
                                            : argmax_of(HW_BF16, x, a->cols);
        *(int32_t *)(void *)row_of(plan->pointer[0], &a->y, a->n1, a->n2, i) = (int32_t)at;
    }
}

const char *PLAN(argmax)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    plan->run = run_argmax;
    return plan_lowered(plan, row, args);
}

static void store_best(const struct plan *plan, const struct heap *h, int64_t i,
                       const char *x, size_t bytes)
{
    const struct top_k_args *a = &plan->lowered.args.top_k;
    int32_t *indices = (void *)row_of(plan->pointer[0], &a->indices, a->n1, a->n2, i);
    char *values = a->has_values ? row_of(plan->pointer[2], &a->values, a->n1, a->n2, i)
                                 : NULL;
    for (int n = 0; n < h->k; n++) {
        indices[n] = (int32_t)(INDEX_LAST - (h->entry[n] & INDEX_LAST));
        if (values)
            memcpy(values + (size_t)n * bytes, x + (size_t)indices[n] * bytes, bytes);
    }
}

static void run_top_k(const struct plan *plan, int64_t first, int64_t end, uint32_t thread)
{
    const struct top_k_args *a = &plan->lowered.args.top_k;
    const int32_t type = ((const struct hw_top_k *)plan->op)->x.dtype;
    (void)thread;
    for (int64_t i = first; i < end && a->k > 0; i++) {
        const char *x = row_of(plan->pointer[1], &a->x, a->n1, a->n2, i);
        struct heap h;
        h.k = a->k;
        h.have = 0;
        h.entry[0] = 0; /* otherwise a compiler warns that it is read before */
        if (type == HW_F32)
            scan(HW_F32, &h, x, a->cols);
        else if (type == HW_F16)
            scan(HW_F16, &h, x, a->cols);
        else
            scan(HW_BF16, &h, x, a->cols);
        sort(&h);
        store_best(plan, &h, i, x, type == HW_F32 ? 4 : 2);
    }
}

const char *PLAN(top_k)(struct plan *plan, const struct kernel_row *row, const void *args)
{
    plan->run = run_top_k;
    return plan_lowered(plan, row, args);
}
