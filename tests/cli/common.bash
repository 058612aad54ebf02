# SPDX-License-Identifier: MIT
# What every test of the command starts from: a clean environment, and ways to look at an answer.
# Meson sets COMMAND (the command), PLUGINS (the directory of the built plugins), TEST_PLUGINS (that of the plugins of
# tests/fixtures), CPU (yes: with the CPU plugin).

bats_require_minimum_version 1.5.0

setup()
{
    local variable
    for variable in $(compgen -e HW_); do
        unset "$variable"
    done
    unset OMP_NUM_THREADS NO_COLOR XDG_CONFIG_HOME XDG_CACHE_HOME
    export HOME=$BATS_TEST_TMPDIR TERM=xterm
    [ -n "${COMMAND-}" ] || skip "not applicable: run by meson test, on what it built"
}

# hw WORD...: status and output (both streams) as bats has them, standard error alone in $stderr.
hw()
{
    run --separate-stderr "$COMMAND" "$@"
    # Without the messages of the sanitizers.
    if [[ $stderr == *Sanitizer* || $stderr == *"runtime error"* ]]; then
        printf '%s\n' "$stderr"
        return 1
    fi
}

# interrupted WORDS WORD...: the same, interrupted by Ctrl-C as soon as its standard error has the words.
interrupted()
{
    run --separate-stderr python3 -c 'import subprocess, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
command = subprocess.Popen(sys.argv[2:], stderr=subprocess.PIPE, text=True)
for line in command.stderr:
    sys.stderr.write(line)
    if sys.argv[1] in line:
        command.send_signal(signal.SIGINT)
sys.exit(command.wait() % 256)' "$1" "$COMMAND" "${@:2}"
    echo "$stderr"
}

# fails STATUS PATTERN: the last hw ended so, with one line on standard error that matches.
fails()
{
    printf 'status %s, expected %s\n%s\n%s\n' "$status" "$1" "$output" "$stderr"
    [ "$status" -eq "$1" ]
    [ "$(printf '%s\n' "$stderr" | wc -l)" -eq 1 ]
    [[ $stderr =~ $2 ]]
}

# succeeds: the last hw ended with 0 and had nothing to complain of.
succeeds()
{
    printf 'status %s\n%s\n%s\n' "$status" "$output" "$stderr"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
}

# says PATTERN: the last output has a line that matches all of it.
says()
{
    printf '%s\n' "$output"
    printf '%s\n' "$output" | grep -qE "^($1)$"
}

# json EXPRESSION...: the last output is JSON, and these Python expressions of it (called d) are true.
json()
{
    printf '%s\n' "$output"
    printf '%s\n' "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
for expression in sys.argv[1:]:
    if not eval(expression):
        sys.exit("not so: " + expression)' "$@"
}

# On a terminal of its own.
on_terminal()
{
    script -qefc "$*" /dev/null </dev/null
}

needs_cpu()
{
    [ "$CPU" = yes ] || skip "not applicable: built without the CPU plugin"
}
