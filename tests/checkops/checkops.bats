#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# checkops as a program: its answers to correct and incorrect use. Meson sets CHECKOPS, and RIGHT, a plugin.

@test "one case by its text, in the registry or not" {
    run "$CHECKOPS" --plugin "$RIGHT" -p 'silu(type=f16,shape=3x5)'
    echo "$output"
    [ "$status" = 0 ]
    [ "${lines[-1]}" = "1 passed, 0 failed, 0 skipped" ]
}

@test "every listed case can be run by its text" {
    "$CHECKOPS" --list --quick | awk 'NR % 401 == 7' >"$BATS_TEST_TMPDIR/cases"
    [ -s "$BATS_TEST_TMPDIR/cases" ]
    while IFS= read -r case; do
        run "$CHECKOPS" --plugin "$RIGHT" -p "$case"
        echo "$output"
        [ "${lines[-1]}" = "1 passed, 0 failed, 0 skipped" ]
    done <"$BATS_TEST_TMPDIR/cases"
}

@test "a filter that matches nothing is a usage error" {
    for bad in '-o nosuchop' '-p nosuchcase' '-p silu(shape=3x)' '-p silu(shape=99999x99999x9)' '-p silu(what=1)' \
        '-p silu(type=f17)' '-p what(x=1)' '-p silu(view=odd)' '-p add(shape=3x5,bshape=4)' '-p attention(hq=3,hkv=2)' \
        '-p matmul(b=q8_0,tb=1,k=31)' '-p argmax(shape=3x0)' '-p rope(dims=3)' '-p silu(shape=1x2x3x4x5)' \
        '-p silu(type=none)' '-p silu(data=odd)' '-p silu(shape)'; do
        # shellcheck disable=SC2086 # an option and its value
        run "$CHECKOPS" --plugin "$RIGHT" $bad
        echo "$bad: $status: $output"
        [ "$status" = 2 ]
        [ "${#lines[@]}" = 1 ]
    done
}

@test "an unknown option or an extra argument is a usage error" {
    run "$CHECKOPS" --what
    [ "$status" = 2 ]
    run "$CHECKOPS" --list what
    [ "$status" = 2 ]
    run "$CHECKOPS" --perf --seconds soon
    [ "$status" = 2 ]
}

@test "with an unknown row, nothing was tested" {
    run "$CHECKOPS" --plugin "$RIGHT" -o silu -k nosuchrow
    [ "$status" = 1 ]
    [[ "$output" = *"nothing was tested"* ]]
}

@test "a case that one of several rows takes is supported" {
    run "$CHECKOPS" --device cpu:0 --quick --test -o rmsnorm
    echo "$output"
    [ "$status" = 0 ]
    [[ "$output" != *unsupported* ]]
}

@test "rows that cannot be listed are an error, not the end of the rows" {
    for question in '--test -o silu' '--test -o silu -k oracle' '--perf -p add(shape=3x5) --seconds 0.001'; do
        # shellcheck disable=SC2086 # words
        run "$CHECKOPS" --plugin "$ROWLESS" --quick $question
        echo "$question: $status: $output"
        [ "$status" = 1 ]
        [[ "$output" = *"rows of "*" on rowless:0: the list of kernels is torn"* ]]
    done
}

@test "a plugin that is named is tested alone, whatever HW_PLUGIN_PATH has" {
    HW_PLUGIN_PATH=$RIGHT run "$CHECKOPS" --plugin "$BEGUN" --support
    echo "$output"
    [ "$status" = 0 ]
    [[ "$output" = *begun:0* && "$output" != *right* ]]
}

@test "a missing plugin is an error" {
    run "$CHECKOPS" --plugin /nonexistent/hw_what.so
    echo "$output"
    [ "$status" = 1 ]
}

@test "JSON is JSON, in every question" {
    objects='import json, sys; print(sum(1 for line in sys.stdin if json.loads(line)))'
    "$CHECKOPS" --plugin "$BEGUN" --json --support | python3 -c "$objects"
    for question in '--test -o silu' '--list --quick'; do
        # shellcheck disable=SC2086 # words
        "$CHECKOPS" --plugin "$RIGHT" --quick --json $question | python3 -c "$objects"
    done
    # The peak needs large products, which take RIGHT many seconds.
    "$CHECKOPS" --device cpu:0 --json --perf -p 'add(shape=3x5)' --seconds 0.001 | python3 -c "$objects"
}

@test "ops that a plugin lacks or rejects do not pass, even if supports() is missing" {
    run "$CHECKOPS" --plugin "$BEGUN" -q -o matmul
    echo "$output"
    [ "$status" = 1 ]
    [[ "$output" = *"nothing was tested"* ]]
    [ "${lines[-1]}" = "0 passed, 0 failed, 0 skipped" ]
    run "$CHECKOPS" --plugin "$BEGUN" -q -o softmax # the library's own answers to empty tensors
    echo "$output"
    [ "$status" = 1 ]
    [[ "$output" = *"all that passed were empty"* ]]
    [[ "$output" = *"nothing was tested"* ]]
    run "$CHECKOPS" --plugin "$BEGUN" -q -o silu
    echo "$output"
    [ "$status" = 0 ]
}

@test "support reports computed results, not the plugin's claims" {
    run "$CHECKOPS" --plugin "$BEGUN" --support
    echo "$output"
    [ "$status" = 0 ]
    grep -qE '^  silu +[1-9][0-9]*/[0-9]+ +no +no +- ' <<<"$output"
    [ "$(grep -cE 'yes|/' <<<"$output")" = 1 ]
}
