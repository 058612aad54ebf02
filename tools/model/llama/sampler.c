/* SPDX-License-Identifier: MIT */
/* sampler.c - temperature, then top-k, then top-p, then one draw. The best tokens are taken
 * from a heap, so only those that are kept are sorted. The random numbers are from
 * SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
 * OOPSLA 2014): 64 bits of state, any seed is good. */
#include "sampler.h"

#include <math.h>
#include <stdlib.h>

struct candidate {
    double weight; /* exp((score - best) / temperature) */
    int32_t id;
};

struct sampler {
    struct sampler_settings settings;
    uint64_t state;
    int32_t count;
    struct candidate candidates[];
};

struct sampler *sampler_create(const struct sampler_settings *settings, int32_t count)
{
    struct sampler *s = malloc(sizeof *s + (size_t)count * sizeof *s->candidates);
    if (!s)
        return NULL;
    s->settings = *settings;
    s->state = settings->seed;
    s->count = count;
    return s;
}

void sampler_destroy(struct sampler *s)
{
    free(s);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in [0, 1): the top 53 bits. */
static double next_uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

/* The first of the best scores; -1 if no score is above minus infinity. NaN is not. */
static int32_t best(const float *scores, int32_t count)
{
    int32_t id = -1;
    for (int32_t i = 0; i < count; i++)
        if (scores[i] > (id < 0 ? -INFINITY : scores[id]))
            id = i;
    return id;
}

static bool goes_before(const struct candidate *a, const struct candidate *b)
{
    return a->weight != b->weight ? a->weight > b->weight : a->id < b->id;
}

/* Restores the heap of `count` candidates below `at`. */
static void sift(struct candidate *heap, int64_t at, int64_t count)
{
    const struct candidate moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && goes_before(&heap[child + 1], &heap[child]))
            child++;
        if (!goes_before(&heap[child], &moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Computes the weight of every token, in order of their ids. Returns their sum, at least 1.
 */
static double weigh(struct sampler *s, const float *scores, float top)
{
    double sum = 0;
    for (int32_t i = 0; i < s->count; i++) {
        const double distance = (double)scores[i] - (double)top;
        const double weight = isnan(distance) ? 0 : exp(distance / s->settings.temperature);
        s->candidates[i] = (struct candidate){ weight, i };
        sum += weight;
    }
    return sum;
}

/* Moves the best `limit` candidates, or fewer if their weights reach `enough` before, to
 * the end of the array, the best one last. Returns how many; `*mass` is the sum of their
 * weights. */
static int32_t select_best(struct sampler *s, int32_t limit, double enough, double *mass)
{
    struct candidate *heap = s->candidates;
    int32_t left = s->count;
    for (int32_t at = left / 2; at-- > 0;)
        sift(heap, at, left);
    *mass = 0;
    while (s->count - left < limit && *mass < enough) {
        const struct candidate found = heap[0];
        heap[0] = heap[--left];
        sift(heap, 0, left);
        heap[left] = found;
        *mass += found.weight;
    }
    return s->count - left;
}

/* Draws one of the last `kept` candidates, each with the probability of its share of
 * `mass`. */
static int32_t draw(struct sampler *s, int32_t kept, double mass)
{
    double point = next_uniform(&s->state) * mass;
    int32_t id = -1;
    for (int32_t i = s->count; i-- > s->count - kept && point >= 0;) {
        if (s->candidates[i].weight > 0) /* rounding must not lead to an impossible one */
            id = s->candidates[i].id;
        point -= s->candidates[i].weight;
    }
    return id;
}

int32_t sampler_choose(struct sampler *s, const float *scores)
{
    const struct sampler_settings *set = &s->settings;
    const int32_t top = best(scores, s->count);
    if (top < 0 || set->temperature <= 0 || isinf(scores[top]))
        return top;

    double mass = weigh(s, scores, scores[top]);
    int32_t kept = s->count;
    if (set->top_k > 0 && set->top_k < kept)
        kept = select_best(s, set->top_k, INFINITY, &mass);
    if (set->top_p < 1)
        kept = select_best(s, kept, set->top_p * mass, &mass);
    return draw(s, kept, mass);
}
