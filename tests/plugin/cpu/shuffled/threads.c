/* SPDX-License-Identifier: MIT */
/* Replaces plugins/cpu/threads.c by a team that divides every op, of any size: it cuts the groups
 * at random and computes the pieces out of order, each with the number of a random thread. The
 * caller computes all of them, so that every run is the same. Results that depend on the division
 * of groups then differ. */
#include "cpu.h"

#include <stdlib.h>

enum { MOST_PIECES = 16 };

struct team {
    uint32_t threads, seed;
};

struct piece {
    int64_t first, end;
};

struct team *team_create(uint32_t threads, uint32_t processors)
{
    struct team *team = malloc(sizeof *team);
    (void)processors;
    if (team)
        *team = (struct team){ .threads = threads, .seed = 1 };
    return team;
}

void team_ask(struct team *team, team_count_fn *count, void *user)
{
    team->threads = count(user);
}

void team_destroy(struct team *team)
{
    free(team);
}

uint32_t team_size(const struct team *team)
{
    return team->threads;
}

uint32_t team_limit(struct team *team)
{
    return team->threads;
}

static int64_t below(struct team *team, int64_t n)
{
    team->seed = team->seed * 1664525u + 1013904223u;
    return (int64_t)(team->seed >> 8) % n;
}

/* Cuts the range 0 .. count - 1 into n pieces; count is at least n. */
static void cut(struct team *team, int64_t count, struct piece *pieces, int64_t n)
{
    int64_t first = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t after = n - 1 - i, most = (count - first - after) * 2 / (after + 1);
        const int64_t groups = after ? 1 + below(team, most ? most : 1) : count - first;
        pieces[i] = (struct piece){ first, first + groups };
        first += groups;
    }
}

static void shuffle(struct team *team, struct piece *pieces, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t other = below(team, i + 1);
        const struct piece piece = pieces[i];
        pieces[i] = pieces[other];
        pieces[other] = piece;
    }
}

/* Ops too small for two threads use the workspace of one. */
void team_run(struct team *team, const struct team_work *work)
{
    struct piece pieces[MOST_PIECES];
    const int64_t most = work->count < MOST_PIECES ? work->count : MOST_PIECES;
    const int64_t n = team->threads > 1 && most ? 1 + below(team, most) : 1;
    const bool alone = work->count < 2 * work->grain;
    cut(team, work->count, pieces, n);
    shuffle(team, pieces, n);
    for (int64_t i = 0; i < n; i++)
        work->fn(work->user, pieces[i].first, pieces[i].end,
                 alone ? 0 : (uint32_t)below(team, team->threads));
}
