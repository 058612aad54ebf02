/* SPDX-License-Identifier: MIT */
/* faults.c - see faults.h. */
#include "faults.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 128, MOST_FAULTS = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;
static unsigned counts[MOST_CALLS];
static struct {
    int call, result;
    unsigned nth;
} faults[MOST_FAULTS];
static int armed;
static bool happened;

static int number_of(const char *name)
{
    int i = 0;
    while (faults_names[i] && strcmp(faults_names[i], name) != 0)
        i++;
    if (!faults_names[i] || i >= MOST_CALLS) {
        fprintf(stderr, "the stand-in has no function \"%s\"\n", name);
        abort();
    }
    return i;
}

/* Called with the lock held. */
static void arm(const char *name, unsigned nth, int result)
{
    if (armed == MOST_FAULTS)
        abort();
    faults[armed].call = number_of(name);
    faults[armed].nth = nth;
    faults[armed++].result = result;
}

static void start(void)
{
    const char *at = getenv("STANDIN_FAIL");
    char name[64];
    unsigned nth;
    int result, length;
    while (at && *at) {
        if (sscanf(at, "%63[a-z_]:%u:%d%n", name, &nth, &result, &length) != 3) {
            fprintf(stderr, "STANDIN_FAIL: cannot read \"%s\"\n", at);
            abort();
        }
        arm(name, nth, result);
        at += length;
        at += *at == ',';
    }
}

static void begin(void)
{
    pthread_once(&started, start);
    pthread_mutex_lock(&lock);
}

int faults_enter(int call)
{
    int result = 0;
    begin();
    counts[call]++;
    for (int i = 0; i < armed && !result; i++)
        if (faults[i].call == call && (!faults[i].nth || faults[i].nth == counts[call]))
            result = faults[i].result;
    happened |= result != 0;
    pthread_mutex_unlock(&lock);
    return result;
}

void faults_reset(void)
{
    begin();
    memset(counts, 0, sizeof counts);
    armed = 0;
    happened = false;
    pthread_mutex_unlock(&lock);
}

void faults_arm(const char *name, unsigned nth, int result)
{
    begin();
    arm(name, nth, result);
    pthread_mutex_unlock(&lock);
}

unsigned faults_count(const char *name)
{
    const int call = number_of(name);
    begin();
    const unsigned count = counts[call];
    pthread_mutex_unlock(&lock);
    return count;
}

bool faults_happened(void)
{
    begin();
    const bool answer = happened;
    pthread_mutex_unlock(&lock);
    return answer;
}
