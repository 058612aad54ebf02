#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# verify: that it runs the conformance on devices and on files, and that its answer is the exit status.

load common

@test "a backend is verified, op by op" {
    needs_cpu
    hw verify cpu --quick -o argmax
    succeeds
    says 'cpu:0'
    says ' +argmax +[1-9][0-9]* passed +0 failed.*'
    says ' +all +[1-9][0-9]* passed +0 failed.*'
}

@test "its answer as JSON" {
    needs_cpu
    hw verify cpu:0 --quick -o get_rows --json
    succeeds
    json "d['good'] and d['devices'][0]['device'] == 'cpu:0' and d['devices'][0]['failures'] == []"
    json "d['devices'][0]['counts']['passed'] > 0 and d['devices'][0]['ops'][0]['op'] == 'get_rows'"
    json "d['machine']['cpu'] and d['version'] and d['date'] and d['command'].startswith('hw verify')"
}

@test "a plugin file is verified where it lies, by a relative path too" {
    needs_cpu
    mkdir "$BATS_TEST_TMPDIR/mine"
    chmod 755 "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/mine"
    cp "$PLUGINS/hw_cpu.so" "$BATS_TEST_TMPDIR/mine/"
    cd "$BATS_TEST_TMPDIR/mine"
    HW_BACKENDS=other hw verify ./hw_cpu.so --quick -o copy
    succeeds
    says ' +all +[1-9][0-9]* passed +0 failed.*'
}

@test "a file that is not a plugin, with its reason" {
    chmod 755 "$BATS_TEST_TMPDIR"
    echo "not a plugin" >"$BATS_TEST_TMPDIR/hw_words.so"
    hw verify "$BATS_TEST_TMPDIR/hw_words.so"
    fails 1 "hw_words.so: stopped at preflight"
    mkdir "$BATS_TEST_TMPDIR/hw_folder.so"
    hw verify "$BATS_TEST_TMPDIR/hw_folder.so"
    fails 1 "hw_folder.so: is a directory, no plugin file"
    hw verify "$BATS_TEST_TMPDIR/hw_none.so"
    fails 1 "hw_none.so: no such file"
}

@test "a case is its own reproduction line" {
    needs_cpu
    hw verify cpu --list -o silu
    succeeds
    case=$(printf '%s\n' "$output" | grep -v 'hw bench' | head -n 1)
    [[ $case == silu\(*\) ]]
    hw verify cpu -c "$case"
    succeeds
    says ' +silu +[1-9][0-9]* passed +0 failed.*'
    hw verify cpu --list --json
    succeeds
    json "len(d['cases']) > 100 and all('(' in c['case'] for c in d['cases'])"
}

@test "the support matrix" {
    needs_cpu
    hw verify cpu --support
    succeeds
    says 'matmul +(yes|some) +(yes|some) +(yes|some) .*'
    hw verify cpu --support --json
    succeeds
    json "d['devices'][0]['support']['matmul']['q8_0']['supported'] > 0"
}

@test "a plugin of one op: the rest is neither a pass nor supported" {
    [ -n "${BEGUN-}" ] || skip "not applicable: built without the wrong plugins"
    hw verify "$BEGUN" -q -o silu
    succeeds
    says ' +silu +[1-9][0-9]* passed +0 failed +[1-9][0-9]* not supported'
    hw verify "$BEGUN" -q -o matmul
    says ' +matmul +0 passed +0 failed +[1-9][0-9]* not supported'
    fails 1 'begun:0: it has computed no case'
    hw verify "$BEGUN" -q -o softmax
    says ' +softmax +[1-9][0-9]* passed .*all that passed were empty.*'
    fails 1 'begun:0: it has computed no case'
    hw verify "$BEGUN" -q -o softmax --json
    [ "$status" -eq 1 ]
    json "not d['good'] and d['devices'][0]['counts']['empty'] == d['devices'][0]['counts']['passed'] > 0"
    hw verify "$BEGUN" --support
    succeeds
    says 'silu +some +- +- *'
    says 'matmul +- +- +- .*'
}

@test "what cannot be meant" {
    needs_cpu
    hw verify cpu -o slu
    fails 2 "did you mean 'silu'"
    hw verify nonsense
    fails 1 "nonsense"
    hw verify cpu -c 'silu(type=f33)'
    fails 1 "f33"
    hw verify cpu -k no_such_kernel
    fails 1 "no_such_kernel: no kernel of cpu:0 is called so"
}

@test "a wrong plugin fails, with the line that shows it again" {
    [ -n "${WRONG-}" ] || skip "not applicable: built without the wrong plugins"
    hw verify "$WRONG" -q -o silu
    echo "$output"
    [ "$status" -eq 1 ]
    says '.*FAILED.*'
    again=$(printf '%s\n' "$output" | sed -n "s/^ *again: hw //p" | head -n 1)
    [ -n "$again" ]
    eval "hw $again" # quoted by the command itself
    [ "$status" -eq 1 ]
    hw verify "$WRONG" -q -o silu --json
    [ "$status" -eq 1 ]
    json "not d['good'] and d['devices'][0]['failures'][0]['case']"
}
