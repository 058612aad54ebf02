/* SPDX-License-Identifier: MIT */
/* depends_write.c - see depends_write.h. */
#include "probe/depends_write.h"

#include "cache/depends.h"

static bool is_plain(const char *text)
{
    while ((unsigned char)*text >= 0x20 && *text != 0x7f)
        text++;
    return !*text;
}

void depends_add_file(char **lines, const char *path)
{
    char state[DEPENDS_STATE];
    depends_state(path, state);
    if (is_plain(path))
        lines_add(lines, "file %s %s", state, path);
    else
        lines_drop(lines);
}

void depends_add_library(char **lines, const char *name, const char *used,
                         const char *found)
{
    char state[DEPENDS_STATE];
    depends_state(used, state);
    if (is_plain(name) && (!found || is_plain(found)))
        lines_add(lines, "library %s %s\t%s", state, name, found ? found : "-");
    else
        lines_drop(lines);
}
