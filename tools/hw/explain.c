/* SPDX-License-Identifier: MIT */
/* explain.c - `hw explain`: how far up the ladder each plugin file got, step by step; or all
 * that the library knows, as JSON. */
#include "command.h"
#include "options.h"
#include "output.h"
#include "report.h"

#include <hw/hw.h>

#include <stdio.h>
#include <string.h>

static const struct manual manual = {
    .about = "hw explain - how far each plugin file got, step by step\n\n"
             "Each file climbs the same ladder: list (is it named like a plugin), filter (do the\n"
             "settings want it), trust (who could have written it), preflight (what is in it, without\n"
             "running it), match (is there hardware for it), probe (does it run), cache (what is\n"
             "known from before), bind (into the process). Where it stops, there is a reason.",
    .arguments = "[OPTION...] [NAME]",
    .notes = "  hw explain                     every file\n"
             "  hw explain cuda                files of this backend\n"
             "  hw explain /opt/hw/hw_foo.so   one file\n"
             "  hw explain --json              all that the library knows: files, settings, devices,\n"
             "                                 selection, calls (hw_explain() as it is)\n\n"
             "Exit status 1: NAME is none that was looked at, or no file got to the end.",
};

/* What each stage asks, in the words for its having passed. */
static const struct stage {
    const char *name, *passed;
} stages[] = {
    { "list", "named like a plugin, and the first of its name" },
    { "filter", "wanted by the settings" },
    { "trust", "only its owner, or root, could have written it" },
    { "preflight", "a plugin for this machine that needs nothing that is missing" },
    { "match", "there may be hardware for it" },
    { "probe", "loads, answers, has devices" },
    { "cache", "known from before" },
    { "bind", "in use" },
};
enum { STAGES = sizeof stages / sizeof stages[0] };
