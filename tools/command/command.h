/* SPDX-License-Identifier: MIT */
/* command.h - the commands of `hw`.
 *
 * Each is a function in its own file, called once. argv[0] is "hw NAME", the arguments follow, and
 * NULL ends them. It returns the exit status. */
#ifndef HW_TOOL_COMMAND_H
#define HW_TOOL_COMMAND_H

#include <stdbool.h>

/* Exit statuses: 0 (EXIT_SUCCESS) on success, 1 on failure or a negative result, 2 on a
 * usage error, after which nothing was done. */
enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
    const char *name;
    const char *summary; /* one line of `hw --help` */
    int (*run)(int argc, const char **argv);
    bool replays; /* also works on a file of `hw report` */
};

int cmd_status(int argc, const char **argv);
int cmd_devices(int argc, const char **argv);
int cmd_explain(int argc, const char **argv);
int cmd_doctor(int argc, const char **argv);
int cmd_report(int argc, const char **argv);
int cmd_env(int argc, const char **argv);
int cmd_cache(int argc, const char **argv);
int cmd_plugin(int argc, const char **argv);
int cmd_verify(int argc, const char **argv);
int cmd_bench(int argc, const char **argv);
int cmd_run(int argc, const char **argv);
int cmd_inspect(int argc, const char **argv);
int cmd_quantize(int argc, const char **argv);
int cmd_abi(int argc, const char **argv);

#endif
