#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Where the answer goes: colours, closed pipes, full disks, and JSON that a program can read.

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

@test "no colours under NO_COLOR, nor where the terminal has none" {
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

@test "a reader that leaves early is no failure" {
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

@test "a full disk is a failure, and said" {
    needs_cpu
    [ -w /dev/full ] || skip "not applicable: this system has no /dev/full"
    for words in status "status --json" "explain --json" help env --version devices; do
        # shellcheck disable=SC2086 # several words, on purpose
        run bash -c '"$@" 2>&1 >/dev/full' _ "$COMMAND" $words
        echo "$words: $status: $output"
        [ "$status" -eq 1 ]
        [[ $output == *"can not write the output: No space left on device"* ]]
    done
}

@test "a closed standard output is a failure, and said" {
    run bash -c '"$@" 2>&1 >&-' _ "$COMMAND" status
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"can not write the output"* ]]
}

@test "closed standard input and error are no trouble" {
    needs_cpu
    run bash -c '"$@" <&- 2>&-' _ "$COMMAND" status
    [ "$status" -eq 0 ]
    [[ $output == *"Available Backends"* ]]
}
