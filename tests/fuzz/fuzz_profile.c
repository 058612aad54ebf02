/* SPDX-License-Identifier: MIT */
/* fuzz_profile.c - device profiles with arbitrary bytes: unchanged, and with a correct checksum, so
 * that the rest is read as well. */
#include "base/hash.h"
#include "open/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char key[] = "device A\ndriver 1\nplugin a\n";
static const char start[] = "hw-profile 1 ";

enum { HASH = 16, HEAD = sizeof start - 1 + HASH };

static void check_row(const struct cost_row *row)
{
    if (row->count > PROFILE_POINTS)
        abort();
    for (uint32_t i = 0; i < row->count; i++)
        if (row->at[i].amount == 0 ||
            (i > 0 && (row->at[i].amount <= row->at[i - 1].amount ||
                       row->at[i].ns < row->at[i - 1].ns)))
            abort();
}

static void check(const struct profile *profile)
{
    check_row(&profile->up);
    check_row(&profile->down);
    check_row(&profile->wait);
    for (int op = 0; op < HW_OP_COUNT; op++)
        for (int c = 0; c < CLASS_COUNT; c++)
            for (int f = 0; f < FORM_COUNT; f++)
                check_row(&profile->op[op][c][f]);
}

/* A rejected profile has a reason and no figures. */
static void parse(char *data, size_t size)
{
    static struct profile profile;
    static const struct profile none;
    const bool good = profile_parse(data, size, key, &profile);
    if (good != (profile.written > 0) || good == (profile.why[0] != '\0') ||
        !memchr(profile.why, '\0', sizeof profile.why))
        abort();
    for (const char *c = profile.why; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            abort();
    check(&profile);
    memset(profile.why, 0, sizeof profile.why);
    if (!good && memcmp(&profile, &none, sizeof none) != 0)
        abort();
}

/* In a copy of exactly this size, so that a sanitizer detects reads past the end. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1), text[HASH + 1];
    if (!copy)
        abort();
    memcpy(copy, data, size);
    parse(copy, size);
    memcpy(copy, data, size);
    if (size >= HEAD) {
        memcpy(copy, start, sizeof start - 1);
        snprintf(text, sizeof text, "%016llx",
                 (unsigned long long)hash_add(HASH_START, copy + HEAD, size - HEAD));
        memcpy(copy + sizeof start - 1, text, HASH);
        parse(copy, size);
    }
    free(copy);
    return 0;
}
