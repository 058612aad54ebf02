/* SPDX-License-Identifier: MIT */
/* attention_bytes.h - attention of BLOCK rows to a tile of q8_0 keys and values, in integers, for
 * HW_PRECISION=int8. Queries are rounded to 8 bits, in runs of 32 neighbours. The weights of a
 * tile's values are rounded, too, after multiplying them by the scale of the run of values.
 *
 * In products with keys, the lanes of a vector are keys, so nothing is summed across lanes. In sums
 * of values, lanes are columns, and a word has one number of each of four values. Both transpose
 * bytes in registers. Loops use few pointers: otherwise gcc 12 keeps some in vector registers,
 * which took 1.5 times as long. */
#ifndef CPU_ATTENTION_BYTES_H
#define CPU_ATTENTION_BYTES_H

#include "attention_part.h"
#include "rounded.h"

#if defined(HAS_PIECES)
enum {
    KEYS = 4,       /* whose bytes are together in a word */
    MOST_RUNS = 16, /* of a head */
    RUN_BYTES = 34, /* of q8_0: a scale, then codes */
    SCALE_BYTES = 2,
    PIECE = 16 /* bytes */
};

/* ---- queries ---- */

/* Turns the codes of a run of a query into numbers. */
struct factors {
    float scale;
    /* the start of sums; it compensates for keys' codes taken without a sign */
    int32_t start;
};

/* The bytes of a row: codes, then factors. */
static inline int64_t bytes_of_query(int64_t dim)
{
    return dim + dim / RUN * (int64_t)sizeof(struct factors);
}

/* Returns false if bytes cannot represent the query. */
static inline bool round_query(const float *query, int64_t dim, char *to)
{
    struct factors *f = (struct factors *)(void *)(to + dim);
    bool good = true;
    for (int64_t d = 0; d < dim; d += RUN, f++) {
        const struct rounded_run run = round_run((int8_t *)to + d, query + d);
        f->scale = run.scale;
        f->start = -DOT_ZERO * (run.sum[0] + run.sum[1]);
        good &= run.good;
    }
    return good;
}

/* ---- tiles ---- */

/* The keys or values of a tile, LANES at a time. If the last ones are fewer, they are copied and
 * padded with zeros. */
struct source {
    const char *from;
    int64_t stride, n;
    float scale[MOST_RUNS][TILE];
    char rest[LANES * MOST_RUNS * RUN_BYTES];
};

/* LANES of them. */
struct several {
    const char *from;
    int64_t stride;
};

INLINE struct several several_at(const struct source *s, int64_t k)
{
    return k + LANES <= s->n ? (struct several){ s->from + k * s->stride, s->stride }
                             : (struct several){ s->rest, MOST_RUNS * RUN_BYTES };
}

static void copy_rest(struct source *s, int64_t runs)
{
    const int64_t first = s->n / LANES * LANES;
    memset(s->rest, 0, sizeof s->rest);
    for (int64_t k = first; k < s->n; k++)
        memcpy(s->rest + (k - first) * MOST_RUNS * RUN_BYTES, s->from + k * s->stride,
               (size_t)(runs * RUN_BYTES));
}

/* The f16 of KEYS keys, the first at p. */
INLINE uint64_t halves_at(const char *p, int64_t stride)
{
    uint64_t all = 0;
    EACH (i, KEYS) {
        uint16_t half;
        memcpy(&half, p + i * stride, sizeof half);
        all |= (uint64_t)half << i * 16;
    }
    return all;
}

/* Returns false if a scale is negative or not finite. Words are read long after they were written,
 * because a processor stalls when it reads several recent ones at once. */
static bool read_scales(struct source *s, int64_t runs)
{
    const vf largest_half = vf_set(65504.0f);
    uint64_t half[MOST_RUNS][TILE / KEYS];
    bool wrong = false;
    for (int64_t k = 0; k < s->n; k += LANES) {
        const struct several keys = several_at(s, k);
        for (int64_t r = 0; r < runs; r++)
            EACH (i, LANES / KEYS) {
                half[r][k / KEYS + i] = halves_at(
                    keys.from + r * RUN_BYTES + i * KEYS * keys.stride, keys.stride);
                STAY_IN_ORDER; /* or gcc makes vectors of words, piece by piece */
            }
    }
    for (int64_t r = 0; r < runs; r++)
        for (int64_t k = 0; k < s->n; k += LANES) {
            const vf v = vf_load_f16((const uint16_t *)(const void *)half[r] + k);
            vf_store(&s->scale[r][k], v);
            wrong |= vf_any_above(v, largest_half) || vf_any_above(vf_set(0), v);
        }
    return !wrong;
}

/* The largest ratio of two scales in one run's column of a tile. Weights times scales are rounded
 * to steps, and the largest product is MOST_WEIGHT steps. If all weights are alike, half a step is
 * MOST_RATIO / 2 / MOST_WEIGHT = 3 % of the smallest product. Without a bound, one large scale
 * would round all other values to nothing, even if its own codes are 0. */
static const float most_ratio = 16.0f;

/* Whether one step suits all scales of `runs` runs. If `zeros`, scales of 0 are skipped: they need
 * no step. Otherwise they make the answer false. */
INLINE bool within_ratio(const struct source *s, int64_t first, int64_t runs, bool zeros)
{
    const vf zero = vf_set(0), endless = vf_set(INFINITY);
    vf most = zero, least = endless;
    for (int64_t r = first; r < first + runs; r++)
        for (int64_t k = 0; k < s->n; k += LANES) {
            const vf v = vf_load(&s->scale[r][k]);
            most = vf_max(v, most);
            least = vf_clamp(zeros ? vf_if_less(zero, v, v, endless) : v, zero, least);
        }
    return !vf_any_above(vf_set(vf_greatest(most)), least * vf_set(most_ratio));
}

/* Whether the ratio holds in each run. Usually it holds for all runs together, which is tested
 * first. */
static bool scales_are_alike(const struct source *s, int64_t runs)
{
    if (within_ratio(s, 0, runs, false))
        return true;
    bool alike = true;
    for (int64_t r = 0; r < runs; r++)
        alike &= within_ratio(s, r, 1, true);
    return alike;
}

/* The source of `runs` runs of `n` keys or values. Returns false if integers cannot represent
 * them. */
static bool open_source(struct source *s, const char *from, int64_t stride, int64_t n,
                        int64_t runs)
{
    s->from = from;
    s->stride = stride;
    s->n = n;
    if (s->n % LANES)
        copy_rest(s, runs);
    return read_scales(s, runs);
}

/* Fetches `n` keys. A loop, so that registers are left to the caller. */
INLINE void fetch_apart(uintptr_t from, int64_t step, int n, int64_t bytes)
{
    ROLLED
    for (int i = 0; i < n; i++, from += (uintptr_t)step)
        fetch(from, bytes);
}

/* Prefetches `runs` runs of `keys` keys of the next tile, from key k and run `run` on. If the whole
 * next tile is contiguous, prefetches the same number of bytes in order instead. */
INLINE void fetch_runs(const struct ahead *next, int64_t k, int keys, int64_t run, int runs)
{
    const int64_t group = k / LANES * LANES, bytes = runs * RUN_BYTES;
    if (next->packed)
        fetch(next->base + (uintptr_t)(group * next->step + run * LANES * RUN_BYTES +
                                       (k - group) * bytes),
              keys * bytes);
    else
        fetch_apart(next->base + (uintptr_t)(k * next->step + run * RUN_BYTES), next->step,
                    keys, bytes);
}

/* ---- products ---- */

/* Half a run of LANES keys: vector j holds word j of all keys, and codes have no sign. */
INLINE void load_words(const char *p, int64_t stride, vi *word)
{
    EACH (i, 4)
        word[i] = vi_load_pieces(p + i * stride, 4 * stride);
    vi_transpose(word);
    EACH (i, 4)
        word[i] ^= vi_set((int32_t)0x80808080);
}

/* A run of each of BLOCK queries. */
struct queries {
    const char *codes, *factors;
    int64_t pitch;
};

INLINE const struct factors *factors_of(const struct queries *q, int r)
{
    return (const struct factors *)(const void *)(q->factors + r * q->pitch);
}

/* Adds the products of a run of LANES keys with these scales. */
INLINE void multiply_run(const struct several *keys, const struct queries *q, vf scale,
                         vf *sum)
{
    vi dot[BLOCK];
    EACH (r, BLOCK)
        dot[r] = vi_set(factors_of(q, r)->start);
    EACH (h, RUN / PIECE) {
        vi word[4];
        load_words(keys->from + SCALE_BYTES + h * PIECE, keys->stride, word);
        EACH (j, 4)
            EACH (r, BLOCK) {
                int32_t codes;
                memcpy(&codes, q->codes + r * q->pitch + h * PIECE + j * PACKED_WORDS,
                       sizeof codes);
                dot[r] = dot_add(8, dot[r], word[j], vi_set(codes));
            }
    }
    EACH (r, BLOCK)
        sum[r] = vf_fma(vf_of_vi(dot[r]), scale * vf_set(factors_of(q, r)->scale), sum[r]);
}

static void multiply_bytes(const struct part *p, const struct source *k)
{
    const int64_t dim = p->dim;
    for (int64_t i = 0; i < k->n; i += LANES) {
        struct several keys = several_at(k, i);
        struct queries q = { p->bytes, p->bytes + dim, bytes_of_query(dim) };
        vf sum[BLOCK];
        EACH (r, BLOCK)
            sum[r] = vf_set(0);
        for (int64_t run = 0; run < dim / RUN; run++) {
            fetch_runs(&p->k_ahead, i, LANES, run, 1);
            multiply_run(&keys, &q, vf_load(&k->scale[run][i]), sum);
            keys.from += RUN_BYTES;
            q.codes += RUN;
            q.factors += sizeof(struct factors);
        }
        vf_turn_pieces(sum);
        EACH (j, 4)
            vf_store(p->score + (i + j * KEYS) * BLOCK, sum[j]);
    }
}

/* ---- weights ---- */

/* weigh() reduced to BLOCK rows, each with a piece of a vector of scores. It avoids the stall of
 * loading a vector from numbers that were stored one by one. */
static void weigh_pieces(const struct part *p)
{
    const int64_t all = whole(p->n, KEYS) * BLOCK;
    float apart[3][LANES];
    for (int64_t k = p->n; k % KEYS; k++)
        for (int r = 0; r < BLOCK; r++)
            p->score[place_of(BLOCK, r, k)] = -INFINITY;
    vf most = vf_set(-INFINITY), sum = vf_set(0);
    for (int64_t i = 0; i < all; i += LANES)
        most = vf_max(vf_load(p->score + i), most);
    const vf before = vf_set_pieces(&p->row->top, sizeof *p->row);
    const vf top = vf_max(vf_greatest_of_pieces(most), before);
    const vf from = vf_if_less(vf_set(-INFINITY), top, top, vf_set(0));
    const vf shrink = vf_exp(vf_if_less(before, top, before - from, vf_set(0)));
    for (int64_t i = 0; i < all; i += LANES) {
        const vf weight = vf_exp(vf_load(p->score + i) - from);
        vf_store(p->score + i, weight);
        sum += weight;
    }
    sum = vf_fma(vf_set_pieces(&p->row->sum, sizeof *p->row), shrink,
                 vf_sum_of_pieces(sum));
    vf_store(apart[0], top);
    vf_store(apart[1], sum);
    vf_store(apart[2], shrink);
    for (int r = 0; r < BLOCK; r++) {
        const float factor = apart[2][r * KEYS];
        p->row[r].top = apart[0][r * KEYS];
        p->row[r].sum = apart[1][r * KEYS];
        if (factor != 1.0f)
            rescale(p->out + r * p->value_dim, p->value_dim, factor);
    }
}

/* ---- weighted values ---- */

/* The weights of a run's codes as bytes, and the size of their step in the lanes of each row's
 * piece. A word has KEYS keys of a row. */
struct weights {
    float step[LANES];
    int32_t word[TILE];
};
_Static_assert(TILE *BLOCK == sizeof((struct weights *)0)->word, "a byte each");

/* Weights become 0 if a run's largest weight is below this. */
static const float least_weight = 1e-30f;

enum { TOGETHER = 2, MOST_WEIGHT = 255 }; /* runs whose values are summed up together */

/* The largest relative change that rounding may cause in the sum of a row's weights in a tile.
 * Without it, many weights below half a step would be lost beside a large one. */
static const float most_loss = 0.01f;

/* Whether rounding changes the sum of a row by more than that. Compares the sum of the weights
 * times a run's scales, in steps, with the sum rounded at each addition; adding to `rounder`
 * rounds. */
static bool loses_weight(const struct part *p, const float *scale, vf inverse)
{
    const vf rounder = vf_set(0x1p23f);
    vf steps = rounder, exact = vf_set(0);
    for (int64_t k = 0; k < p->n; k += KEYS) {
        const vf product = vf_load(p->score + k * BLOCK) * vf_set_piece(&scale[k]);
        steps = vf_fma(product, inverse, steps);
        exact = vf_fma(product, inverse, exact);
    }
    exact = vf_sum_of_pieces(exact);
    return vf_any_above(vf_abs(exact - vf_sum_of_pieces(steps - rounder)),
                        exact * vf_set(most_loss));
}

/* Whether the sum of a row may be so small that TILE halves of a step exceed the largest loss. This
 * is rare. */
INLINE bool may_lose_weight(vf most, vf sum)
{
    const float halves = (float)TILE / 2 / MOST_WEIGHT;
    return vf_any_above(most * vf_set(halves), vf_sum_of_pieces(sum) * vf_set(most_loss));
}

/* Adding a number to `rounder` leaves its integer in the low bits. Returns false if bytes cannot
 * represent the weights. */
INLINE bool round_weights(const struct part *p, const float (*scale)[TILE],
                          struct weights *to)
{
    const vf rounder = vf_set(0x1p23f), highest = vf_set(MOST_WEIGHT);
    vf most[TOGETHER], inverse[TOGETHER], sum[TOGETHER];
    EACH (r, TOGETHER)
        most[r] = sum[r] = vf_set(0);
    for (int64_t k = 0; k < p->n; k += KEYS) {
        const vf weight = vf_load(p->score + k * BLOCK);
        EACH (r, TOGETHER) {
            const vf scaled = vf_set_piece(&scale[r][k]);
            most[r] = vf_max(weight * scaled, most[r]);
            sum[r] = vf_fma(weight, scaled, sum[r]);
        }
    }
    EACH (r, TOGETHER) {
        most[r] = vf_greatest_of_pieces(most[r]);
        inverse[r] = vf_if_less(vf_set(least_weight), most[r], highest / most[r],
                                vf_set(0));
        vf_store(to[r].step, most[r] / highest);
        if (may_lose_weight(most[r], sum[r]) && loses_weight(p, scale[r], inverse[r]))
            return false;
    }
    for (int64_t k = 0; k < p->n; k += KEYS) {
        const vf weight = vf_load(p->score + k * BLOCK);
        EACH (r, TOGETHER)
            vi_store_i8(
                (int8_t *)&to[r].word[k],
                (vi)vf_fma(weight * vf_set_piece(&scale[r][k]), inverse[r], rounder));
    }
    return true;
}

/* Adds the weighted codes of KEYS values, whose runs begin at `from`. */
INLINE void add_values(const char *from, int64_t stride, const struct weights *w, int64_t k,
                       vi *sum)
{
    vi value[KEYS];
    EACH (i, KEYS)
        value[i] = vi_load_two(from + SCALE_BYTES + i * stride, RUN_BYTES);
    vi_turn_bytes(value);
    EACH (r, BLOCK) {
        const vi weight = vi_set_halves(w[0].word[k + r], w[1].word[k + r]);
        EACH (j, 4)
            sum[r * 4 + j] = dot_add(8, sum[r * 4 + j], weight, value[j]);
    }
}

/* Adds the integer sums, scaled, to each row's values, from column d on. */
INLINE void add_integers(const struct part *p, int64_t d, const struct weights *w,
                         const vi *sum)
{
    EACH (r, BLOCK) {
        float *out = p->out + r * p->value_dim + d;
        vf of[4];
        EACH (j, 4)
            of[j] = vf_of_vi(sum[r * 4 + j]);
        vf_turn_pieces(of);
        EACH (j, 4)
            vf_store(out + j * LANES, vf_fma(of[j], vf_set(w[j / 2].step[r * KEYS]),
                                             vf_load(out + j * LANES)));
    }
}

/* The values of TOGETHER runs in floats, from column d on. */
static void gather_floats(const struct part *p, int64_t d)
{
    gather_columns(HW_Q8_0, BLOCK, BLOCK, 0, TOGETHER * RUN_VECTORS, p, d, LANES);
}

static void gather_bytes(const struct part *p, const struct source *v)
{
    for (int64_t run = 0; run < p->value_dim / RUN; run += TOGETHER) {
        struct weights w[TOGETHER];
        vi sum[4 * BLOCK];
        if (!round_weights(p, &v->scale[run], w)) {
            gather_floats(p, run * RUN);
            continue;
        }
        EACH (i, 4 * BLOCK)
            sum[i] = vi_set(0);
        for (int64_t k = 0; k < p->n; k += LANES) {
            struct several values = several_at(v, k);
            values.from += run * RUN_BYTES;
            for (int64_t i = k; i < k + LANES && i < p->n; i += KEYS) {
                fetch_runs(&p->v_ahead, i, KEYS, run, TOGETHER);
                add_values(values.from, values.stride, w, i, sum);
                values.from += KEYS * values.stride;
            }
        }
        add_integers(p, run * RUN, w, sum);
    }
}

/* ---- parts ---- */

/* attend_part() in bytes, where bytes can represent everything. Values are opened after the
 * products, so that their scales are still in the first-level cache when values are summed up. If
 * bytes cannot represent the values, the products are computed again in floats. */
static void attend_in_bytes(const struct part *p, int rows)
{
    const int64_t k_runs = p->dim / RUN, v_runs = p->value_dim / RUN;
    struct source k, v;
    if (rows < BLOCK || !p->bytes || k_runs > MOST_RUNS || v_runs > MOST_RUNS ||
        v_runs % TOGETHER || !open_source(&k, p->k, p->a->k.stride[1], p->n, k_runs)) {
        attend_part(p, rows);
        return;
    }
    multiply_bytes(p, &k);
    if (!open_source(&v, p->v, p->a->v.stride[1], p->n, v_runs) ||
        !scales_are_alike(&v, v_runs)) {
        attend_part(p, rows);
        return;
    }
    adjust_part(p, rows);
    weigh_pieces(p);
    gather_bytes(p, &v);
}
#else
static inline int64_t bytes_of_query(int64_t dim)
{
    (void)dim;
    return 0;
}

static inline bool round_query(const float *query, int64_t dim, char *to)
{
    (void)query, (void)dim, (void)to;
    return false;
}

static void attend_in_bytes(const struct part *p, int rows)
{
    attend_part(p, rows);
}
#endif

#endif
