/* SPDX-License-Identifier: MIT */
/* config.c - reads the settings, once: options override the environment, which overrides
 * the configuration file, which overrides the defaults. */
#define _POSIX_C_SOURCE 200809L
#include "settings/config.h"

#include "base/message.h"
#include "base/platform.h"
#include "base/text.h"
#include "settings/config_file.h"
#include "settings/config_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const setting_fields[SETTING_COUNT] = {
#define X(field, variable, fallback) #field,
    SETTINGS(X)
#undef X
};

const char *const setting_variables[SETTING_COUNT] = {
#define X(field, variable, fallback) variable,
    SETTINGS(X)
#undef X
};

enum setting setting_named(const char *const list[SETTING_COUNT], const char *name)
{
    int setting = 0;
    while (setting < SETTING_COUNT && strcmp(list[setting], name) != 0)
        setting++;
    return (enum setting)setting;
}

static const char defaults[SETTING_COUNT][8] = {
#define X(field, variable, fallback) fallback,
    SETTINGS(X)
#undef X
};

static const size_t offsets[SETTING_COUNT] = {
#define X(field, variable, fallback) offsetof(struct hw_options, field),
    SETTINGS(X)
#undef X
};

void settings_warn(struct settings *settings, char *text)
{
    size_t length = text ? strlen(text) + 1 : 0;
    struct note *note = text ? malloc(sizeof *note + length) : NULL;
    if (note) {
        memcpy(note->text, text, length);
        note->next = NULL;
        struct note **end = &settings->warnings;
        while (*end)
            end = &(*end)->next;
        *end = note;
    }
    free(text);
}

/* The text of an option; NULL if it is not set. */
static const char *option_text(const struct hw_options *options, int setting)
{
    const char *text;
    memcpy(&text, (const char *)options + offsets[setting], sizeof text);
    return text && *text ? text : NULL;
}

static const char *variable_text(const struct settings *settings, const char *name)
{
    const char *text = settings->elevated ? NULL : getenv(name);
    return text && *text ? text : NULL;
}

static enum hw_status value_keep(struct setting_value *value, const char *text,
                                 char *source)
{
    free(value->text);
    free(value->source);
    value->text = strdup(text);
    value->source = source;
    return value->text && source ? HW_OK
                                 : fail(HW_NO_MEMORY, "out of memory for the settings");
}

/* OMP_NUM_THREADS applies if HW_THREADS is not set. It may be a list, with a number for
 * each level of nesting. The variable belongs to OpenMP, so an invalid value is not an
 * error here. */
static bool omp_threads(const struct settings *settings, char text[16])
{
    const char *omp = variable_text(settings, "OMP_NUM_THREADS");
    if (!omp)
        return false;
    char *end;
    errno = 0;
    unsigned long threads = strtoul(omp, &end, 10);
    if (errno || end == omp || (*end && *end != ',') || threads < 1 || threads > 4096)
        return false;
    snprintf(text, 16, "%lu", threads);
    return true;
}

/* "$<variable>/<rest>", else "~/<folder>/<rest>", as in the XDG Base Directory Specification;
 * NULL if neither variable is an absolute path. */
static char *user_path(const struct settings *settings, const char *variable,
                       const char *folder, const char *rest)
{
    const char *base = variable_text(settings, variable);
    const char *home = variable_text(settings, "HOME");
    if (base && *base == '/')
        return text_format("%s/%s", base, rest);
    if (home && *home == '/')
        return text_format("%s/%s/%s", home, folder, rest);
    return NULL;
}

/* The default cache directory, if there is one. */
static bool user_cache(const struct settings *settings, char path[VALUE_BYTES])
{
    char *text = user_path(settings, "XDG_CACHE_HOME", ".cache", "hw");
    const bool good = text && config_is_line(text);
    if (good)
        strcpy(path, text);
    free(text);
    return good;
}

/* The first source that has a value decides. */
static enum hw_status value_resolve(struct settings *settings,
                                    const struct hw_options *options,
                                    const struct file_values *file, int setting)
{
    struct setting_value *value = &settings->value[setting];
    const char *text = option_text(options, setting);
    if (text)
        return value_keep(value, text, text_format("option"));
    text = variable_text(settings, setting_variables[setting]);
    if (text)
        return value_keep(value, text, text_format("%s", setting_variables[setting]));
    text = file->text[setting];
    if (text && *text)
        return value_keep(value, text,
                          text_format("%s:%u", settings->value[SETTING_config].text,
                                      file->line[setting]));
    char omp[16];
    if (setting == SETTING_threads && omp_threads(settings, omp))
        return value_keep(value, omp, text_format("OMP_NUM_THREADS"));
    char cache[VALUE_BYTES];
    if (setting == SETTING_cache_dir && user_cache(settings, cache))
        return value_keep(value, cache, text_format("default"));
    return value_keep(value, defaults[setting], text_format("default"));
}

/* ---- two older spellings ---- */

#define ONLY    "HW_PLUGIN_PATH_ONLY"
#define TIMEOUT "HW_WORKER_TIMEOUT"

/* "a,b=5" and "60" give "a=60,b=5". NULL if memory runs out. */
static char *with_seconds(const char *list, const char *seconds)
{
    char *text = strdup("");
    for (const char *end; text && *list; list = end + (*end == ',')) {
        int length = (int)strcspn(list, ",");
        const bool has = memchr(list, '=', (size_t)length) != NULL;
        end = list + length;
        while (!has && length > 0 && list[length - 1] == ' ')
            length--;
        char *longer = text_format("%s%.*s%s%s%s", text, length, list, has ? "" : "=",
                                   has ? "" : seconds, *end ? "," : "");
        free(text);
        text = longer;
    }
    return text;
}

/* Adds what an option or a variable of older programs says to the setting that took it over. */
static enum hw_status older_add(const struct settings *settings, int setting,
                                struct setting_value *value, const char *option,
                                const char *variable)
{
    const char *text = option && *option ? option : variable_text(settings, variable);
    char *whole;
    if (!text || (setting == SETTING_worker && !*value->text))
        return HW_OK;
    if (setting == SETTING_worker)
        whole = with_seconds(value->text, text);
    else
        whole = text_format("%s%s%s:!", value->text, *value->text ? ":" : "", text);
    const char *source = text == option ? "option" : variable;
    const enum hw_status status = value_keep(value, whole ? whole : "",
                                             whole ? text_format("%s", source) : NULL);
    free(whole);
    return status;
}

static enum hw_status value_find(struct settings *settings,
                                 const struct hw_options *options,
                                 const struct file_values *file, int setting)
{
    struct setting_value *value = &settings->value[setting];
    enum hw_status status = value_resolve(settings, options, file, setting);
    if (!status && setting == SETTING_plugin_path)
        status = older_add(settings, setting, value, options->plugin_path_only, ONLY);
    if (!status && setting == SETTING_worker)
        status = older_add(settings, setting, value, options->worker_timeout, TIMEOUT);
    return status;
}

/* ---- all settings ---- */

/* The default configuration file, if it exists; or NULL. */
static char *default_file(const struct settings *settings)
{
    char *path = user_path(settings, "XDG_CONFIG_HOME", ".config", "hw/hw.conf");
    if (path && access(path, F_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static bool trust_wanted(const struct settings *settings, const struct hw_options *options)
{
    const char *text = option_text(options, SETTING_trust);
    if (!text)
        text = variable_text(settings, setting_variables[SETTING_trust]);
    return settings->elevated || !text || strcmp(text, "off") != 0;
}

static enum hw_status read_file(struct settings *settings, const struct hw_options *options,
                                struct file_values *file)
{
    struct setting_value *value = &settings->value[SETTING_config];
    enum hw_status status = value_resolve(settings, options, file, SETTING_config);
    if (status)
        return status;
    if (!*value->text) {
        char *path = default_file(settings);
        if (!path)
            return HW_OK;
        free(value->text);
        value->text = path;
    }
    if (settings->elevated) {
        settings_warn(
            settings,
            text_format("configuration file %s: ignored in a program with elevated "
                        "rights",
                        value->text));
        return HW_OK;
    }
    return config_load(file, value->text, trust_wanted(settings, options));
}

/* Warns about variables HW_* that are not settings: they are probably typing errors. HW_TEST_* and
 * HW_CI_* belong to the tests. */
static void warn_unknown(struct settings *settings)
{
    extern char **environ;
    for (char **entry = environ; entry && *entry; entry++) {
        char name[64];
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "HW_", 3) != 0 || length >= sizeof name ||
            strncmp(*entry, "HW_TEST_", 8) == 0 || strncmp(*entry, "HW_CI_", 6) == 0)
            continue;
        memcpy(name, *entry, length);
        name[length] = '\0';
        if (setting_named(setting_variables, name) != SETTING_COUNT ||
            strcmp(name, ONLY) == 0 || strcmp(name, TIMEOUT) == 0)
            continue;
        const char *near = nearest(name, setting_variables, SETTING_COUNT);
        settings_warn(settings,
                      text_format("environment variable %s: there is no such setting%s%s%s",
                                  name, near ? "; did you mean " : "", near ? near : "",
                                  near ? "?" : ""));
    }
}

/* Parses all values. With `anyway`, the default replaces an invalid value. Returns the last error,
 * with its message. */
static enum hw_status apply_all(struct settings *settings, const struct hw_options *options,
                                const struct file_values *file, bool anyway)
{
    enum hw_status last = HW_OK;
    for (int i = 0; i < SETTING_COUNT; i++) {
        struct setting_value *value = &settings->value[i];
        enum hw_status status = i == SETTING_config
                                    ? HW_OK
                                    : value_find(settings, options, file, i);
        if (status)
            return status;
        status = config_apply(settings, (enum setting)i, value->text, value->source);
        if (!status)
            continue;
        last = status;
        if (!anyway)
            return status;
        settings_warn(settings, text_format("%s", hw_message()));
        if (value_keep(value, defaults[i], text_format("default")))
            return HW_NO_MEMORY;
        config_apply(settings, (enum setting)i, value->text, value->source);
    }
    return last;
}

enum hw_status config_read(struct settings *settings, const struct hw_options *options,
                           bool anyway)
{
    struct file_values file = { 0 };
    settings->elevated = process_elevated();
    settings->trust = true;
    settings->log_level = HW_LOG_WARN;
    settings->fallback = FALLBACK_WARN;

    enum hw_status status = read_file(settings, options, &file);
    if (status && anyway && status != HW_NO_MEMORY)
        settings_warn(settings, text_format("%s", hw_message()));
    if (!status || (anyway && status != HW_NO_MEMORY)) {
        enum hw_status applied = apply_all(settings, options, &file, anyway);
        status = applied ? applied : status;
    }
    file_values_free(&file);
    if (!settings->elevated)
        warn_unknown(settings);
    if (!settings->trust)
        settings_warn(settings,
                      text_format("HW_TRUST=off (%s): plugins are loaded no matter "
                                  "who can write to them",
                                  settings->value[SETTING_trust].source));
    return status;
}

void config_free(struct settings *settings)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        free(settings->value[i].text);
        free(settings->value[i].source);
    }
    while (settings->warnings) {
        struct note *next = settings->warnings->next;
        free(settings->warnings);
        settings->warnings = next;
    }
}
