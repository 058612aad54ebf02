/* SPDX-License-Identifier: MIT */
/* replay.c - runs a fuzz target without a fuzzer: on each file named, then on thousands of
 * mutations of these files, always the same ones. tests/README.md says how to use a fuzzer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATIONS  20000
#define MOST_SEEDS 128
#define MOST_BYTES (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seed {
    uint8_t *bytes;
    size_t size;
};

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators". */
static uint64_t random_below(uint64_t *state, uint64_t limit)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return limit ? (*state * UINT64_C(2685821657736338717) >> 16) % limit : 0;
}

static int read_seed(const char *path, struct seed *seed)
{
    FILE *file = fopen(path, "rb");
    seed->bytes = malloc(MOST_BYTES);
    if (!file || !seed->bytes) {
        fprintf(stderr, "%s cannot be read\n", path);
        return 1;
    }
    seed->size = fread(seed->bytes, 1, MOST_BYTES, file);
    fclose(file);
    return 0;
}

/* A copy of exactly this size, so that a sanitizer detects reads past the end. */
static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        abort();
    memcpy(exact, bytes, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

/* Writes a number that often causes errors to a random place, more often near the beginning. */
static void plant(uint64_t *state, uint8_t *bytes, size_t size)
{
    static const uint64_t numbers[] = {
        0,          1,          0x7f,
        0x80,       0xff,       0xffff,
        0x7fffffff, 0xffffffff, UINT64_C(0x7fffffffffffffff),
        UINT64_MAX, 0x1000,     UINT64_C(1) << 40
    };
    size_t width = (size_t)1 << random_below(state, 4);
    size_t reach = random_below(state, 2) && size > 1024 ? 1024 : size;
    size_t at = (size_t)random_below(state, reach);
    uint64_t number = numbers[random_below(state, sizeof numbers / sizeof *numbers)];
    memcpy(bytes + at, &number, width < size - at ? width : size - at);
}

static size_t mutate(uint64_t *state, uint8_t *bytes, size_t size)
{
    for (uint64_t times = 1 + random_below(state, 4); times && size; times--) {
        size_t at = (size_t)random_below(state, size);
        switch (random_below(state, 6)) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << random_below(state, 8));
            break;
        case 1:
            bytes[at] = (uint8_t)random_below(state, 256);
            break;
        case 2: /* cut */
            size = at;
            break;
        case 3: { /* take out */
            size_t count = (size_t)random_below(state, size - at);
            memmove(bytes + at, bytes + at + count, size - at - count);
            size -= count;
            break;
        }
        case 4: { /* repeat */
            size_t count = (size_t)random_below(state, size - at);
            if (size + count > MOST_BYTES)
                break;
            memmove(bytes + at + count, bytes + at, size - at);
            size += count;
            break;
        }
        default:
            plant(state, bytes, size);
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    static struct seed seeds[MOST_SEEDS];
    int count = argc - 1 < MOST_SEEDS ? argc - 1 : MOST_SEEDS;
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    uint8_t *bytes = malloc(2 * MOST_BYTES);
    if (count < 1 || !bytes)
        return 2;
    for (int i = 0; i < count; i++) {
        if (read_seed(argv[i + 1], &seeds[i]))
            return 2;
        run(seeds[i].bytes, seeds[i].size);
    }
    run(bytes, 0);
    for (int i = 0; i < MUTATIONS; i++) {
        const struct seed *seed = &seeds[random_below(&state, (uint64_t)count)];
        memcpy(bytes, seed->bytes, seed->size);
        run(bytes, mutate(&state, bytes, seed->size));
    }
    printf("%d files and %d mutations of them\n", count, MUTATIONS);
    for (int i = 0; i < count; i++)
        free(seeds[i].bytes);
    free(bytes);
    return 0;
}
