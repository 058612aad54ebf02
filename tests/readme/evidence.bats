#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The support table of the README is generated from the records in docs/evidence, independent of this machine's devices;
# and this machine confirms the records of the CPU. CHECKOPS is the conformance program, DISCRETE a second plugin.

bats_require_minimum_version 1.5.0

# The CPU is tested once. $REPLAY repeats its answers, for the tests of how tools/evidence judges them.
setup_file()
{
    export ANSWERS=$BATS_FILE_TMPDIR REPLAY=$BATS_FILE_TMPDIR/replay
    # Whether the ops are right, the suite checkops shows: for the quick cases, one is enough here.
    "$CHECKOPS" --json --device cpu --test --quick ${HW_TEST_QUICK:+--op add} >"$ANSWERS/test" || [ $? -eq 1 ]
    export HW_TEST_QUICK=
    "$CHECKOPS" --json --device cpu --support >"$ANSWERS/support" 2>/dev/null || return 0
    cat >"$REPLAY" <<'EOF'
#!/bin/sh
case "$*" in
'--json --device cpu --support') cat "$ANSWERS/support" ;;
'--json --device cpu --test --quick') cat "$ANSWERS/test" ;;
*) exit 2 ;;
esac
EOF
    chmod +x "$REPLAY"
}

setup()
{
    cd "$SOURCE" || exit 1
    cp -r docs/evidence "$BATS_TEST_TMPDIR/records"
}

evidence()
{
    run tools/evidence --checkops "$CHECKOPS" --records "$BATS_TEST_TMPDIR/records" "$@"
    echo "$output"
}

needs_cpu()
{
    [ -x "$REPLAY" ] || skip "not applicable: built without the CPU plugin"
}

# change FROM TO: edits the records of the CPU. They must not contain TO before.
change()
{
    sed -i "s|$1|$2|" "$BATS_TEST_TMPDIR"/records/cpu-*.json
    grep -q "$2" "$BATS_TEST_TMPDIR"/records/cpu-*.json
}

@test "the README has the table of the records" {
    diff <(sed -n '/<!-- support:begin -->/,/<!-- support:end -->/p' README.md | sed '1d;$d') <(tools/evidence table)
}

@test "the CPU of this machine computes what is recorded of it" {
    needs_cpu
    CHECKOPS=$REPLAY
    evidence check cpu
    [ "$status" -eq 0 ]
}

@test "so it does beside another device" {
    needs_cpu
    export HW_PLUGIN_PATH=$DISCRETE
    "$CHECKOPS" --support --device discrete >/dev/null
    diff <("$CHECKOPS" --json --device cpu --support 2>/dev/null | tail -n +2) <(tail -n +2 "$ANSWERS/support")
}

@test "a computed op without a record is named, with the command that records it" {
    needs_cpu
    CHECKOPS=$REPLAY
    # Older records may have another number of cases.
    sed -i -E 's|("matmul": .*"f16": )"([0-9]+)/\2"|\1"0/\2"|' "$BATS_TEST_TMPDIR"/records/cpu-*.json
    run ! grep -qE '"matmul": .*"f16": "[1-9]' "$BATS_TEST_TMPDIR"/records/cpu-*.json
    evidence check cpu
    [ "$status" -eq 1 ]
    [[ $output =~ ^"matmul f16: computed here "[0-9]+/[0-9]+", recorded 0/"[0-9]+"; "(.*)$ ]]
    [ "${BASH_REMATCH[1]}" = "record it: tools/evidence record cpu executed && tools/evidence readme" ]
}

@test "a recorded op that is not computed is named" {
    needs_cpu
    CHECKOPS=$REPLAY
    change '"i8": "0/0", "i32": "0/0"' '"i8": "7/7", "i32": "0/0"'
    evidence check cpu
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "matmul i8: recorded 7/7, computed here 0/0" ]
}

@test "a record of another label does not claim that the op was computed" {
    needs_cpu
    CHECKOPS=$REPLAY
    change '"label": "executed"' '"label": "stand-in"'
    evidence check cpu
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "matmul f32: computed here "*", recorded 0/0; record it: "* ]]
}

@test "records of one backend are merged, the best label first" {
    change '"label": "executed"' '"label": "compiled"'
    printf '%s' '{"label": "stand-in", "backend": "cpu", "device": "D", "arch": "a", "driver": "7.1", "library": "l",' \
        '"date": "d", "command": "c", "conformance": {}, "support": {"matmul": {"f32": "2/3", "f16": "0/9"}}}' \
        >"$BATS_TEST_TMPDIR/records/other.json"
    evidence table
    [ "$status" -eq 0 ]
    grep -qxE '\| `matmul` \| f32 \| stand-in 2/3 \|.*' <<<"$output"
    grep -qxE '\| `matmul` \| blocks, f16, bf16 \| compiled \|.*' <<<"$output"
    grep -qxF -- '- cpu: stand-in on D (a, driver 7.1), hw l, d' <<<"$output"
}

@test "a record that lacks something is refused" {
    change '"driver"' '"drivers"'
    evidence table
    [ "$status" -eq 1 ]
    [[ $output == *"json: no driver"* ]]
    change '"drivers"' '"driver"'
    change '"executed"' '"works"'
    evidence table
    [ "$status" -eq 1 ]
    [[ $output == *"json: bad label"* ]]
}

# fake LIBRARY: makes a checkops that reports a device with one op.
fake()
{
    CHECKOPS=$BATS_TEST_TMPDIR/fake
    cat >"$CHECKOPS" <<EOF
#!/bin/sh
case "\$*" in
*--support*)
    echo '{"device":"x:0","backend":"x","name":"X 1","arch":"x1","driver":"9","library":"$1"}'
    echo '{"device":"x:0","op":"silu","dtype":"f16","asked":3,"supported":2}'
    ;;
*)
    echo '{"op":"silu","verdict":"passed"}'
    echo '{"passed":1,"failed":0}'
    ;;
esac
EOF
    chmod +x "$CHECKOPS"
}

@test "a record names device, driver, commit and label" {
    fake 0.1.0+abc
    evidence record x stand-in
    [ "$status" -eq 0 ]
    [ "$output" = "$BATS_TEST_TMPDIR/records/x-x1.json" ]
    evidence table
    grep -qE '^\| op \| types \|.* x \|$' <<<"$output"
    grep -qE '^\| `silu` \| f16 \|.* stand-in 2/3 \|$' <<<"$output"
    grep -qE '^- x: stand-in on X 1 \(x1, driver 9\), hw 0\.1\.0\+abc, 20[0-9-]+$' <<<"$output"
}

@test "a build without a commit, or with other changes, is not recorded" {
    fake 0.1.0+abc-dirty
    evidence record x executed
    [ "$status" -eq 1 ]
    [[ $output == *"changes that are not committed"* ]]
    fake 0.1.0
    evidence record x executed
    [ "$status" -eq 1 ]
    [[ $output == *"--commit"* ]]
    evidence record x executed --commit def
    [ "$status" -eq 0 ]
    grep -q '"library": "0.1.0+def"' "$BATS_TEST_TMPDIR/records/x-x1.json"
}

@test "a device that is not there cannot be asked" {
    evidence check cpu:9
    [ "$status" -eq 1 ]
    [[ $output == *'device "cpu:9": no such device'*'cannot ask cpu:9' ]]
}

# Its other ops, which would be tested with it, are right.
@test "a backend whose cases fail is not recorded" {
    export HW_PLUGIN_PATH=$WRONG:! WHOLE=$CHECKOPS
    CHECKOPS=$BATS_TEST_TMPDIR/silu
    printf '%s\n' '#!/bin/sh' 'exec "$WHOLE" --op silu "$@"' >"$CHECKOPS"
    chmod +x "$CHECKOPS"
    evidence record silu_tail executed
    [ "$status" -eq 1 ]
    [[ $output == *"evidence: not recorded: silu: "*" cases failed"* ]]
    [ "$(ls "$BATS_TEST_TMPDIR/records")" = "$(ls docs/evidence)" ]
}
