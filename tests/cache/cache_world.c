/* SPDX-License-Identifier: MIT */
/* cache_world.c - see cache_world.h. */
#define _GNU_SOURCE
#include "cache_world.h"

#include "cache/key.h"
#include "load/preflight.h"
#include "load/trust.h"
#include "settings/config.h"

#include "fixture.h" /* after those: cmocka has a macro fail */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

time_t clock_time = 1000000;

time_t time(time_t *where)
{
    if (where)
        *where = clock_time;
    return clock_time;
}

unsigned told;
int32_t told_level;

static void count_line(void *user, int32_t level, const char *text)
{
    (void)user;
    assert_non_null(strstr(text, "not kept"));
    assert_int_equal(level == HW_LOG_WARN, strstr(text, "; run chmod go-w /") != NULL);
    told_level = level;
    told++;
}

/* ---- a context and a candidate, as the ladder has them after preflight ---- */

char cache[4096], place[4200];

void set(struct world *w, enum setting setting, const char *text)
{
    free(w->context.settings.value[setting].text);
    w->context.settings.value[setting].text = strdup(text);
    free(w->found.key);
    w->found.key = NULL;
}

void look(struct world *w)
{
    struct candidate *c = &w->candidate;
    c->found = &w->found;
    if (c->fd >= 0)
        close(c->fd);
    free(c->real);
    free(c->manifest);
    c->manifest = NULL;
    assert_true(trust_check(&w->context, c));
    assert_true(preflight(&w->context, c));
    assert_true(key_end(&w->context, c));
    assert_non_null(c->key);
}

void begin(struct world *w)
{
    static int number;
    *w = (struct world){
        .candidate = { .fd = -1, .probe_lock = -1, .bind_lock = -1, .name = "good" }
    };
    snprintf(cache, sizeof cache, "%s", lair("cache-%d/above/hw", number++));
    snprintf(place, sizeof place, "%s/" CACHE_PLACE, cache);
    for (int i = 0; i < SETTING_COUNT; i++)
        w->context.settings.value[i].text = strdup("");
    set(w, SETTING_cache_dir, cache);
    w->context.settings.trust = true;
    w->context.settings.probe = PROBE_CHILD;
    w->context.log = (struct log){ .level = HW_LOG_DEBUG, .fn = count_line };
    pthread_mutex_init(&w->context.log.lock, NULL);
    make_directory(lair("plugins-%d", number));
    put_plugin(lair("plugins-%d", number), "good");
    w->candidate.path = strdup(lair("plugins-%d/hw_good.so", number));
    w->candidate.file = "hw_good.so";
    clock_time = 1000000;
    told = 0;
    look(w);
}

void end(struct world *w)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        free(w->context.settings.value[i].text);
    close(w->candidate.fd);
    free(w->candidate.path);
    free(w->candidate.real);
    free(w->candidate.key);
    free(w->candidate.manifest);
    free(w->found.key);
    pthread_mutex_destroy(&w->context.log.lock);
}

static unsigned char verdict_bytes[VERDICT_BYTES] = "forty-two\0devices";

bool keep(struct world *w, struct cached *verdict)
{
    verdict->written = clock_time;
    const bool kept = cache_store(&w->context, &w->candidate, verdict);
    if (!kept)
        cache_tell(&w->context, &w->candidate);
    return kept;
}

struct cached store(struct world *w, enum cache_kind kind)
{
    struct cached verdict = {
        .bytes = verdict_bytes, .size = sizeof verdict_bytes, .kind = kind, .outcome = "ok"
    };
    keep(w, &verdict);
    return verdict;
}

bool is_there(struct world *w)
{
    struct cached found;
    if (!cache_find(&w->context, &w->candidate, &found))
        return false;
    assert_int_equal(found.size, sizeof verdict_bytes);
    assert_memory_equal(found.bytes, verdict_bytes, found.size);
    assert_string_equal(found.outcome, "ok");
    free(found.bytes);
    return true;
}

unsigned count_files(const char *path)
{
    DIR *list = opendir(path);
    unsigned count = 0;
    for (const struct dirent *item; list && (item = readdir(list));)
        count += item->d_name[0] != '.';
    if (list)
        closedir(list);
    return count;
}

const char *entry(void)
{
    static char path[4600];
    DIR *list = opendir(place);
    assert_non_null(list);
    for (const struct dirent *item; (item = readdir(list));)
        if (item->d_name[0] != '.')
            snprintf(path, sizeof path, "%s/%s", place, item->d_name);
    closedir(list);
    assert_int_equal(count_files(place), 1);
    return path;
}
