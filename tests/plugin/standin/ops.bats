#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Every op by its portable row, on a stand-in, with no other device to fall back to. $CHECKOPS is the program, $DEVICE
# the device. Tuned rows have code of their own, which a stand-in cannot run.

@test "every op is right" {
    for op in $("$CHECKOPS" --list --quick | sed 's/(.*//' | sort -u); do
        "$CHECKOPS" --quick -d "$DEVICE" -o "$op" -k "$op"
    done
}
