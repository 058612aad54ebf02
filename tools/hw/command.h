/* SPDX-License-Identifier: MIT */
/* command.h - the commands that `hw` has.
 *
 * Each is one file with one function. It is called once, with argv[0] as "hw NAME" and the
 * words after it, NULL-terminated as main's; what it answers is the exit status. */
#ifndef HW_TOOL_COMMAND_H
#define HW_TOOL_COMMAND_H

/* Exit statuses: EXIT_SUCCESS (0); 1: what was asked for failed, or is not so; 2: what was
 * asked cannot be understood, and nothing was done. */
enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
    const char *name;
    const char *summary; /* one line of `hw --help` */
    int (*run)(int argc, const char **argv);
};

int cmd_status(int argc, const char **argv);
int cmd_devices(int argc, const char **argv);
int cmd_explain(int argc, const char **argv);
int cmd_env(int argc, const char **argv);
int cmd_verify(int argc, const char **argv);
int cmd_bench(int argc, const char **argv);
int cmd_run(int argc, const char **argv);
int cmd_abi(int argc, const char **argv);

#endif
