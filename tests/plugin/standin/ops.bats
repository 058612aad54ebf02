#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Every op by its portable row, on a stand-in without a fallback device, and a model. $CHECKOPS and $HW are programs,
# $HW empty if it was not built, $DEVICE is the device, $MODEL a model. Tuned rows have code of their own, which a
# stand-in cannot run.

bats_require_minimum_version 1.5.0

@test "every op is right" {
    for op in $("$CHECKOPS" --list --quick | sed 's/(.*//' | sort -u); do
        HW_BACKENDS=${DEVICE%:*} "$CHECKOPS" --quick -d "$DEVICE" -o "$op" -k "$op"
    done
}

@test "what rows need is text for people" {
    [ "$HW" ] || skip "not applicable: built without the command"
    HW_BACKENDS=${DEVICE%:*} "$HW" devices --kernels "$DEVICE" >"$BATS_TEST_TMPDIR/rows"
    grep -q 'b stored \[n,k\]' "$BATS_TEST_TMPDIR/rows"
    run ! grep -E 'op->|&&|[!<=>]=|; *1?$' "$BATS_TEST_TMPDIR/rows"
}

@test "the same program, unchanged, says the same as on the CPU" {
    local backend
    [ "$HW" ] || skip "not applicable: built without the command"
    for backend in cpu "${DEVICE%:*}"; do
        HW_BACKENDS=$backend HW_KERNEL=portable "$HW" run "$MODEL" --prompt 'ROMEO:' -n 16 --precision fp32 \
            >"$BATS_TEST_TMPDIR/$backend" 2>"$BATS_TEST_TMPDIR/err"
        grep -q "^device  *$backend:0" "$BATS_TEST_TMPDIR/err"
        grep -q "^ops  *[0-9]* on $backend:0\$" "$BATS_TEST_TMPDIR/err"
    done
    [ "$(wc -c <"$BATS_TEST_TMPDIR/cpu")" -gt 16 ]
    diff "$BATS_TEST_TMPDIR/cpu" "$BATS_TEST_TMPDIR/${DEVICE%:*}"
}
