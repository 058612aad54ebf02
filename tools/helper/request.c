/* SPDX-License-Identifier: MIT */
/* request.c - reads the arguments, and sends answers. */
#define _GNU_SOURCE
#include "request.h"

#include "base/platform.h"
#include "base/process.h"
#include "settings/config.h"
#include "settings/config_value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

enum { PACKET = 4096 }; /* bytes that the library takes at a time */

void close_from(int first)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    closefrom(first);
#else
    const long most = sysconf(_SC_OPEN_MAX);
    for (int fd = first; fd < (most > 0 && most < 65536 ? most : 65536); fd++)
        close(fd);
#endif
}

bool reply(const void *bytes, size_t size)
{
    const unsigned char *rest = bytes;
    while (size) {
        const ssize_t written = write(PROCESS_ANSWER, rest, size < PACKET ? size : PACKET);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        rest += written;
        size -= (size_t)written;
    }
    return true;
}

void helper_volunteer(void)
{
#if defined(__linux__)
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
#endif
}

void helper_settle(void)
{
#if defined(__linux__)
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
        return !config_apply(settings, (enum setting)i, text + length + 1, "library");
    }
    return false;
}

static bool read_library(struct request *request, const char *library)
{
    if (request->library_count == LIBRARIES_MAX)
        return false;
    request->libraries[request->library_count++] = library;
    return true;
}

/* "<device>,<op>,<dtype>,...": always MAX_OPERANDS dtypes. */
static bool read_only(struct request *request, char *text)
{
    uint64_t numbers[MAX_OPERANDS + 2];
    size_t count = 0;
    char *rest = NULL;
    for (char *at = strtok_r(text, ",", &rest); at; at = strtok_r(NULL, ",", &rest))
        if (count == MAX_OPERANDS + 2 || !read_number(at, &numbers[count++]))
            return false;
    if (count != MAX_OPERANDS + 2 || numbers[0] > UINT32_MAX || numbers[1] >= HW_OP_COUNT)
        return false;
    request->has_only = true;
    request->only = (struct only){ (uint32_t)numbers[0], { .op = (uint32_t)numbers[1] } };
    for (int i = 0; i < MAX_OPERANDS; i++) {
        if (numbers[i + 2] >= HW_DTYPE_END)
            return false;
        request->only.form.dtype[i] = (int32_t)numbers[i + 2];
    }
    return true;
}

/* "<time> <name>", newline, and the key. */
static bool read_key(struct request *request, char *text)
{
    char *name = strchr(text, ' '), *key = strchr(text, '\n');
    uint64_t time_there;
    if (!name || !key || name > key)
        return false;
    *name++ = *key++ = '\0';
    if (!read_number(text, &time_there))
        return false;
    request->time = (int64_t)time_there;
    request->name = name;
    request->key = key;
    return name_valid(name, strlen(name));
}

/* Some reasons share a code, so this is a number: the library is of the same build. */
static bool read_ended(struct request *request, const char *text)
{
    uint64_t number;
    if (!read_number(text, &number) || number == REASON_NONE || number >= REASON_COUNT)
        return false;
    request->ended = (enum reason)number;
    return true;
}

static bool read_call_seconds(struct request *request, const char *text)
{
    uint64_t number;
    if (!read_number(text, &number) || number > UINT32_MAX)
        return false;
    request->call_seconds = (uint32_t)number;
    return true;
}

/* "library=<name><path>", "only=<numbers>", "key=<name and key>", "ended=<number>",
 * "call_seconds=<number>", or a setting. */
static bool read_rest(struct request *request, char *text)
{
    static const char library[] = "library=", only[] = "only=", key[] = "key=",
                      ended[] = "ended=", call_seconds[] = "call_seconds=";
    if (!strncmp(text, library, sizeof library - 1))
        return read_library(request, text + sizeof library - 1);
    if (!strncmp(text, only, sizeof only - 1))
        return read_only(request, text + sizeof only - 1);
    if (!strncmp(text, key, sizeof key - 1))
        return read_key(request, text + sizeof key - 1);
    if (!strncmp(text, ended, sizeof ended - 1))
        return read_ended(request, text + sizeof ended - 1);
    if (!strncmp(text, call_seconds, sizeof call_seconds - 1))
        return read_call_seconds(request, text + sizeof call_seconds - 1);
    return read_setting(&request->settings, text);
}

bool request_read(struct request *request, int count, char **arguments)
{
    static char empty[] = "", all[] = "*", source[] = "library";
    *request =
        (struct request){ .found = arguments[PROBE_FOUND],
                          .file = arguments[PROBE_FILE],
                          .identity = arguments[PROBE_IDENTITY],
                          .settings = { .trust = true, .elevated = process_elevated() } };
    for (int i = 0; i < SETTING_COUNT; i++)
        request->settings.value[i] = (struct setting_value){ empty, source };
    request->settings.value[SETTING_backends].text = all;
    for (int i = PROBE_SETTINGS; i < count; i++)
        if (!read_rest(request, arguments[i]))
            return false;
    request->started_us = microseconds_now();
    request->patient = request->has_only || request->settings.probe == PROBE_FULL;
    request->settings.probe = PROBE_INPROC; /* this process is the child */
    return request->settings.probe_timeout != 0;
}
