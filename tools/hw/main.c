/* SPDX-License-Identifier: MIT */
/* main.c - `hw`: finds the command and runs it. */
#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "command/report.h"
#include "command/watch.h"

#include <build_stamp.h>
#include <hw/hw.h>
#include <hw/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_version(void)
{
    if (hw_version() >> 8 != HW_VERSION >> 8)
        complain("built with the headers of version %d.%d, but the library is version %s",
                 HW_VERSION_MAJOR, HW_VERSION_MINOR, hw_version_string());
    if (out_json) {
        out_tree(json_pack("{s:i, s:s, s:s, s:i}", "schema", 1, "version", HW_BUILD_STAMP,
                           "library", hw_version_string(), "plugin_abi", HW_ABI_VERSION));
        return 0;
    }
    say("hw %s (library %s, plugin ABI %d)\n", HW_BUILD_STAMP, hw_version_string(),
        HW_ABI_VERSION);
    return 0;
}

static int cmd_version(int argc, const char **argv)
{
    static const struct manual manual = {
        .about = "hw version - versions of the command, the library and the plugin ABI",
        .arguments = "[OPTION...]",
        .notes = "  hw version\n"
                 "  hw version --json",
    };
    const struct poptOption table[] = { OPTIONS_COMMON, POPT_TABLEEND };
    struct arguments arguments;
    int status;

    if (options_read(&arguments, &manual, table, argc, argv, 0, &status))
        status = print_version();
    options_close(&arguments);
    return status;
}

static const struct command commands[] = {
    { "status", "which hardware can be used; for the rest, why not and what to do",
      cmd_status, true },
    { "devices", "all facts about each device", cmd_devices, true },
    { "explain", "how far each plugin file got, stage by stage", cmd_explain, true },
    { "env", "the settings: value, source, meaning", cmd_env, true },
    { "doctor", "what is wrong on this machine, and what to do about it", cmd_doctor,
      true },
    { "report", "one file with everything that a bug report needs", cmd_report, false },
    { "cache", "show or remove cached verdicts on plugins and compiled programs", cmd_cache,
      false },
    { "plugin", "show and check plugin files; lock a plugin directory", cmd_plugin, false },
    { "run", "generate text from a model file, score a text, or measure the model", cmd_run,
      false },
    { "inspect", "show the metadata and tensors of a model file", cmd_inspect, false },
    { "quantize", "write a model file with its matrices in another type", cmd_quantize,
      false },
    { "verify", "compare a plugin's results with a reference", cmd_verify, false },
    { "bench", "measure calls, opening, copies and ops", cmd_bench, false },
    { "abi", "sizes and offsets of the public structs, for bindings", cmd_abi, false },
    { "version", "versions of the command, the library and the plugin ABI", cmd_version,
      false },
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* Returns NULL, with a complaint, if there is no command of that name. */
static const struct command *find_command(const char *name)
{
    const char *names[COMMANDS + 1] = { NULL };
    for (size_t i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
        if (!strcmp(name, names[i]))
            return &commands[i];
    }
    is_known("command", name, names);
    return NULL;
}

static int print_commands(void)
{
    if (out_json) {
        json_t *list = json_array();
        for (size_t i = 0; i < COMMANDS; i++)
            json_array_append_new(list, json_pack("{s:s, s:s}", "name", commands[i].name,
                                                  "summary", commands[i].summary));
        out_tree(json_pack("{s:i, s:o}", "schema", 1, "commands", list));
        return 0;
    }
    say("Transformer math on any hardware that has a plugin.\n\n"
        "Usage: hw COMMAND [OPTION...]\n\n");
    for (size_t i = 0; i < COMMANDS; i++)
        say("  %s%-9s%s%s\n", ink(BOLD), commands[i].name, ink(PLAIN), commands[i].summary);
    say("\n"
        "  hw help COMMAND   options and examples of one command\n"
        "  --json            with any command: the result as JSON\n"
        "  --replay FILE     before status, devices, explain, env or doctor: as in this file\n"
        "                    of 'hw report'\n\n"
        "Start with 'hw status'. The exit status is 0 on success, 1 on failure or a negative\n"
        "result, and 2 on a usage error.\n");
    return 0;
}

static int run_command(const struct command *command, int argc, const char **argv)
{
    static char name[32];
    snprintf(name, sizeof name, "hw %s", command->name);
    complain_as(name);
    argv[0] = name;
    return command->run(argc, argv);
}

static int help(int argc, const char **argv)
{
    const char *name = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            out_json = 1;
        else if (!name && argv[i][0] != '-')
            name = argv[i];
    }
    if (!name)
        return print_commands();
    const struct command *command = find_command(name);
    const char *words[] = { NULL, "--help", NULL };
    return command ? run_command(command, 2, words) : EXIT_USAGE;
}

/* Reads the options before the command's name; the command reads the rest. */
static int run(int argc, const char **argv)
{
    int version = 0, status, own = 1;
    static char *replay; /* as long as the process lives */
    const struct poptOption table[] = { { "version", 'V', POPT_ARG_NONE, &version, 0,
                                          "print the version", NULL },
                                        { "replay", '\0', POPT_ARG_STRING, &replay, 0,
                                          "show this file of 'hw report'", "FILE" },
                                        OPTIONS_COMMON,
                                        POPT_TABLEEND };
    const struct manual manual = { "", "", NULL };
    struct arguments arguments;

    while (own < argc && argv[own][0] == '-')
        own += 1 + !strcmp(argv[own], "--replay");
    own = own < argc ? own : argc;
    for (int i = 1; i < own; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return help(argc, argv);
    argv[0] = "hw";
    if (options_read(&arguments, &manual, table, own, argv, 0, &status))
        status = version ? print_version() : -1;
    options_close(&arguments);
    if (status >= 0)
        return status;
    if (own == argc)
        return print_commands();

    argc -= own;
    argv += own;
    if (!strcmp(argv[0], "help"))
        return help(argc, argv);
    const struct command *command = find_command(argv[0]);
    if (command && (!replay || command->replays)) {
        report_replay(replay);
        return run_command(command, argc, argv);
    }
    if (command)
        complain(
            "%s: cannot be shown from a report; status, devices, explain, env and doctor "
            "can",
            command->name);
    out_look_for_json(argc, argv);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    out_begin();
    watch_begin();
    int status = out_end(run(argc, (const char **)argv));
    watch_end();
    return status;
}
