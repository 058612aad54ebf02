/* SPDX-License-Identifier: MIT */
/* main.c - hw-probe: tries one plugin for the library, which starts it when a context is
 * opened. core/open/child.h has the arguments; the reply, a verdict, goes to descriptor 3. */
#define _GNU_SOURCE
#include "base/message.h"
#include "base/platform.h"
#include "base/process.h"
#include "open/child.h"
#include "open/config.h"
#include "open/config_value.h"
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

enum { BAD_USAGE = 2, OTHER_BUILD = 3, NO_MEMORY = 4, NO_READER = 5 };

static const char usage[] =
    "hw-probe tries a plugin in a process of its own. The library of hw starts it; there is\n"
    "no use in starting it by hand: `hw status` shows what it found, `hw verify FILE` tests a\n"
    "plugin.\n";

/* If memory runs out, this goes before any program of the user. If the application ends, this
 * ends; and orphans of the plugin become children of this process. */
static void settle(void)
{
#if defined(__linux__)
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
    close_from(PROCESS_ANSWER + 1);
}

static bool read_number(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return !errno && end != text && !*end;
}

/* "<field>=<value>" */
static bool read_setting(struct settings *settings, char *text)
{
    const size_t length = strcspn(text, "=");
    for (int i = 0; i < SETTING_COUNT && text[length]; i++) {
        if (strlen(setting_fields[i]) != length ||
            strncmp(setting_fields[i], text, length) != 0)
            continue;
        settings->value[i].text = text + length + 1;
        return !config_apply(settings, (enum setting)i, text + length + 1, "hw-probe");
    }
    return false;
}

/* "library=<path>", or a setting. */
static bool read_rest(struct request *request, char *text)
{
    static const char library[] = "library=";
    const size_t length = sizeof library - 1;
    if (strncmp(text, library, length) != 0)
        return read_setting(&request->settings, text);
    if (request->library_count == LOADED_MAX)
        return false;
    request->libraries[request->library_count++] = text + length;
    return true;
}

static bool read_request(struct request *request, int count, char **arguments)
{
    static char empty[] = "", all[] = "*", source[] = "hw-probe";
    uint64_t seconds, nanoseconds;
    *request =
        (struct request){ .file = arguments[PROBE_FILE],
                          .settings = { .trust = true, .elevated = process_elevated() } };
    for (int i = 0; i < SETTING_COUNT; i++)
        request->settings.value[i] = (struct setting_value){ empty, source };
    request->settings.value[SETTING_backends].text = all;
    if (!read_number(arguments[PROBE_DEVICE], &request->device) ||
        !read_number(arguments[PROBE_INODE], &request->inode) ||
        !read_number(arguments[PROBE_SIZE], &request->size) ||
        !read_number(arguments[PROBE_SECONDS], &seconds) ||
        !read_number(arguments[PROBE_NANOSECONDS], &nanoseconds))
        return false;
    request->seconds = (int64_t)seconds;
    request->nanoseconds = (int64_t)nanoseconds;
    for (int i = PROBE_SETTINGS; i < count; i++)
        if (!read_rest(request, arguments[i]))
            return false;
    return request->settings.probe_timeout != 0;
}

int main(int count, char **arguments)
{
    struct request request;
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (count < PROBE_SETTINGS) {
        fputs(usage, stderr);
        return BAD_USAGE;
    }
    if (strcmp(arguments[PROBE_STAMP], HW_BUILD_STAMP) != 0) {
        reply(probe_other, sizeof probe_other);
        return OTHER_BUILD;
    }
    settle();
    if (!read_request(&request, count, arguments))
        return BAD_USAGE;
    /* The beginning is sent at once: a helper that cannot run is another thing than one that a
     * plugin has ended. */
    if (!reply(verdict_magic, sizeof verdict_magic))
        return NO_READER;
    if (!watch(&request, &bytes, &size))
        return NO_MEMORY;
    const bool sent = reply(bytes + sizeof verdict_magic, size - sizeof verdict_magic);
    free(bytes);
    /* Nothing of a plugin is in this process, so that it ends in the usual way. */
    return sent ? 0 : NO_READER;
}
