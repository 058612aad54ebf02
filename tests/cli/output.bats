#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Where the result goes: colours, closed pipes, full disks, and JSON that a program can read.

load common

@test "no colours in a pipe" {
    hw status
    [[ $output == *"Available Backends"* ]]
    [[ $output != *$'\e['* ]]
}

@test "colours on a terminal" {
    run on_terminal "$COMMAND" status
    [[ $output == *$'\e['*"Available Backends"* ]]
}

@test "no colours with NO_COLOR, or on a terminal without colours" {
    NO_COLOR=1 run on_terminal "$COMMAND" status
    [[ $output == *"Available Backends"* && $output != *$'\e['* ]]
    TERM=dumb run on_terminal "$COMMAND" status
    [[ $output == *"Available Backends"* && $output != *$'\e['* ]]
    # https://no-color.org: when present and not empty
    NO_COLOR='' run on_terminal "$COMMAND" status
    [[ $output == *$'\e['* ]]
}

@test "JSON is JSON on a terminal too" {
    run on_terminal "$COMMAND" status --json
    output=${output//$'\r'/}
    json 'd["schema"] == 1'
}

# refuses STATUS PATTERN: the last hw ended with STATUS; its JSON and its one line on standard error agree.
refuses()
{
    fails "$1" "$2"
    json 'd["schema"] == 1 and d["exit_status"] == '"$1"
    [[ $stderr == *": $(python3 -c 'import json, sys; print(json.load(sys.stdin)["error"])' <<<"$output")" ]]
}

@test "errors are in the JSON, too" {
    hw run /nonexistent.gguf --json
    refuses 1 "/nonexistent.gguf: cannot be opened"
    for words in devices verify "bench open" "bench copy" "bench ops"; do
        # shellcheck disable=SC2086 # several words, on purpose
        HW_THREADS=-1 hw $words --json
        refuses 1 "HW_THREADS"
    done
    hw devices nosuch --json
    refuses 1 "nosuch"
    hw verify -c 'silu(type=f33)' --list --json
    refuses 2 "f33"
    hw bench nosuch --json
    refuses 2 "nosuch"
    hw devcies --json
    refuses 2 "did you mean 'devices'"
    hw --json devcies
    refuses 2 "did you mean 'devices'"
    hw run --bogus --json # behind the word that was not understood
    refuses 2 "--bogus"
    hw run --json $'\xff.gguf'
    [ "$status" -eq 1 ]
    json 'd["error"] and d["exit_status"] == 1'
    hw run /nonexistent.gguf
    [ -z "$output" ]
}

@test "a reader that closes the pipe early is not a failure" {
    needs_cpu
    export errors=$BATS_TEST_TMPDIR/errors result=$BATS_TEST_TMPDIR/result
    for words in status "status --json" "explain --json" help env; do
        # shellcheck disable=SC2086 # several words, on purpose
        bash -c '{ sleep 0.1; "$@" 2>"$errors"; echo $? >"$result"; } | true' _ "$COMMAND" $words
        echo "$words: $(cat "$result") $(cat "$errors")"
        [ "$(cat "$result")" -eq 0 ]
        [ ! -s "$errors" ]
    done
}

@test "a full disk is an error" {
    needs_cpu
    [ -w /dev/full ] || skip "not applicable: this system has no /dev/full"
    for words in status "status --json" "explain --json" help env --version devices; do
        # shellcheck disable=SC2086 # several words, on purpose
        run bash -c '"$@" 2>&1 >/dev/full' _ "$COMMAND" $words
        echo "$words: $status: $output"
        [ "$status" -eq 1 ]
        [[ $output == *"cannot write the output: No space left on device"* ]]
    done
}

@test "a closed standard output is an error" {
    run bash -c '"$@" 2>&1 >&-' _ "$COMMAND" status
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"cannot write the output"* ]]
}

@test "closed standard input and error do no harm" {
    needs_cpu
    run bash -c '"$@" <&- 2>&-' _ "$COMMAND" status
    [ "$status" -eq 0 ]
    [[ $output == *"Available Backends"* ]]
}
