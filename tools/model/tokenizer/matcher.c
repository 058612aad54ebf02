/* SPDX-License-Identifier: MIT */
/* matcher.c - the automaton of Aho and Corasick (1975, "Efficient string matching"), of the words
 * from end to start, which reads the text from its end. In the state after a byte, the longest
 * word that ends the reversed text is the longest one that begins at that byte.
 *
 * States are numbered by depth, so the children of a state are neighbours, in the order of their
 * bytes. */
#include "matcher.h"

#include <stdlib.h>

struct state {
    uint32_t children; /* the first; they end where those of the next state begin */
    uint32_t shorter;  /* the longest other state that ends as this one does */
    int32_t id;        /* of the longest word that ends here, or -1 */
    uint8_t byte;      /* that leads here */
};

struct matcher {
    struct state *states; /* and one behind the last */
};

/* The words that go through a state. */
struct range {
    uint32_t begin, end;
};

static uint8_t byte_at(const struct match_word *word, size_t depth)
{
    return (uint8_t)word->text.bytes[word->text.length - 1 - depth];
}

/* In the order of their bytes from the end; one that ends another goes before it. */
static int by_end(const void *a, const void *b)
{
    const struct match_word *x = a, *y = b;
    const size_t x_length = x->text.length, y_length = y->text.length;
    for (size_t i = 0; i < x_length && i < y_length; i++)
        if (byte_at(x, i) != byte_at(y, i))
            return byte_at(x, i) - byte_at(y, i);
    return x_length != y_length ? (x_length > y_length) - (x_length < y_length)
                                : (x->id > y->id) - (x->id < y->id);
}

/* The child of a state for a byte, or 0. */
static uint32_t child_of(const struct state *states, uint32_t state, uint8_t byte)
{
    uint32_t low = states[state].children, high = states[state + 1].children;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (states[middle].byte == byte)
            return middle;
        if (states[middle].byte < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* The state after one more byte; 0 is the first, where no word has begun. */
static uint32_t next_state(const struct state *states, uint32_t state, uint8_t byte)
{
    for (;; state = states[state].shorter) {
        const uint32_t next = child_of(states, state, byte);
        if (next || state == 0)
            return next;
    }
}

/* Adds the children of a state, whose words have `depth` bytes in common. */
static void add_children(struct state *states, struct range *ranges, uint32_t parent,
                         const struct match_word *words, size_t depth, uint32_t *count)
{
    uint32_t at = ranges[parent].begin;
    while (at < ranges[parent].end && words[at].text.length == depth)
        at++;
    while (at < ranges[parent].end) {
        const uint8_t byte = byte_at(&words[at], depth);
        const uint32_t child = (*count)++, begin = at;
        while (at < ranges[parent].end && byte_at(&words[at], depth) == byte)
            at++;
        ranges[child] = (struct range){ begin, at };
        states[child].byte = byte;
        states[parent + 1].children = *count;
    }
}

/* Sets what a child needs beside its byte. All states of less depth are complete. */
static void complete(struct state *states, const struct range *ranges, uint32_t parent,
                     uint32_t child, const struct match_word *words, size_t depth)
{
    const uint32_t shorter =
        parent ? next_state(states, states[parent].shorter, states[child].byte) : 0;
    const struct match_word *first = &words[ranges[child].begin];
    states[child].shorter = shorter;
    states[child].id = first->text.length == depth ? first->id : states[shorter].id;
}

static void build(struct state *states, struct range *ranges,
                  const struct match_word *words, size_t count)
{
    uint32_t made = 1, level_end = 1;
    size_t depth = 0;
    ranges[0] = (struct range){ 0, (uint32_t)count };
    states[0] = (struct state){ .children = 1, .id = -1 };
    for (uint32_t state = 0; state < made; state++) {
        if (state == level_end) {
            depth++;
            level_end = made;
        }
        states[state + 1].children = made;
        add_children(states, ranges, state, words, depth, &made);
        for (uint32_t child = states[state].children; child < made; child++)
            complete(states, ranges, state, child, words, depth + 1);
    }
}

struct matcher *matcher_create(struct match_word *words, size_t count)
{
    size_t room = 2; /* the first state, and the one behind the last */
    bool good = count < UINT32_MAX;
    for (size_t i = 0; i < count; i++)
        good = good && !__builtin_add_overflow(room, words[i].text.length, &room);
    if (!good || room > UINT32_MAX)
        return NULL;
    if (count)
        qsort(words, count, sizeof *words, by_end);
    struct matcher *matcher = calloc(1, sizeof *matcher);
    struct range *ranges = calloc(room, sizeof *ranges);
    if (matcher)
        matcher->states = calloc(room, sizeof *matcher->states);
    good = matcher && ranges && matcher->states;
    if (good)
        build(matcher->states, ranges, words, count);
    free(ranges);
    if (good)
        return matcher;
    matcher_free(matcher);
    return NULL;
}

void matcher_free(struct matcher *matcher)
{
    if (!matcher)
        return;
    free(matcher->states);
    free(matcher);
}

void matcher_find(const struct matcher *matcher, const char *text, size_t length,
                  int32_t *ids)
{
    uint32_t state = 0;
    for (size_t at = length; at-- > 0;) {
        state = next_state(matcher->states, state, (uint8_t)text[at]);
        ids[at] = matcher->states[state].id;
    }
}
