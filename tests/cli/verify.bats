#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# verify: conformance of devices and of plugin files, with its result as exit status.

load common

@test "a backend is verified, op by op" {
    needs_cpu
    hw verify cpu --quick -o argmax
    succeeds
    says 'cpu:0'
    says ' +argmax +[1-9][0-9]* passed +0 failed.*'
    says ' +all +[1-9][0-9]* passed +0 failed.*'
}

@test "the result as JSON" {
    needs_cpu
    hw verify cpu:0 --quick -o scale --json
    succeeds
    json "d['good'] and d['devices'][0]['device'] == 'cpu:0' and d['devices'][0]['failures'] == []"
    json "d['devices'][0]['counts']['passed'] > 0 and d['devices'][0]['ops'][0]['op'] == 'scale'"
    json "d['machine']['cpu'] and d['version'] and d['date'] and d['command'].startswith('hw verify')"
}

@test "a plugin file is verified where it lies, by a relative path too" {
    needs_cpu
    mkdir "$BATS_TEST_TMPDIR/mine"
    chmod 755 "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/mine"
    cp "$PLUGINS/hw_cpu.so" "$BATS_TEST_TMPDIR/mine/"
    cd "$BATS_TEST_TMPDIR/mine"
    HW_BACKENDS=other hw verify ./hw_cpu.so --quick -o argmax
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
    fails 1 "hw_folder.so: is a directory"
    hw verify "$BATS_TEST_TMPDIR/hw_none.so"
    fails 1 "hw_none.so: No such file"
}

@test "the text of a case reproduces it" {
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

@test "a plugin of one op: the other ops are unsupported, not passed" {
    [ -n "${BEGUN-}" ] || skip "not applicable: built without the wrong plugins"
    hw verify "$BEGUN" -q -o silu
    succeeds
    says ' +silu +[1-9][0-9]* passed +0 failed +[1-9][0-9]* unsupported'
    hw verify "$BEGUN" -q -o matmul
    says ' +matmul +0 passed +0 failed +[1-9][0-9]* unsupported'
    fails 1 'begun:0: the device computed no case'
    hw verify "$BEGUN" -q -o softmax
    says ' +softmax +[1-9][0-9]* passed .*all that passed were empty.*'
    fails 1 'begun:0: the device computed no case'
    hw verify "$BEGUN" -q -o softmax --json
    [ "$status" -eq 1 ]
    json "not d['good'] and d['devices'][0]['counts']['empty'] == d['devices'][0]['counts']['passed'] > 0"
    hw verify "$BEGUN" --support
    succeeds
    says 'silu +some +- +- *'
    says 'matmul +- +- +- .*'
}

@test "unknown ops, devices, cases and kernels" {
    needs_cpu
    hw verify cpu -o slu
    fails 2 "did you mean 'silu'"
    hw verify nonsense
    fails 1 "nonsense"
    hw verify cpu -c 'silu(type=f33)'
    fails 1 "f33"
    hw verify cpu -k no_such_kernel
    fails 1 "no_such_kernel: cpu:0 has no kernel of that name"
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
    hw verify "$WRONG" -q -o silu -v
    [ "$(grep -c 'again: hw verify' <<<"$output")" -gt 10 ]
    hw verify "$WRONG" -q -o silu --json
    [ "$status" -eq 1 ]
    json "not d['good'] and d['devices'][0]['failures'][0]['case']"
}

@test "why cases are unsupported, counted" {
    [ -n "${BEGUN-}" ] || skip "not applicable: built without the wrong plugins"
    hw verify "$BEGUN" -q -o silu
    says ' +[1-9][0-9]* unsupported: .*the plugin has no copy'
    hw verify "$BEGUN" -q -o matmul
    says ' +[1-9][0-9]* unsupported: the plugin has no matmul'
    hw verify "$BEGUN" -q -o matmul --json
    json "d['devices'][0]['ops'][0]['reasons'][0]['reason'] == 'the plugin has no matmul'"
    json "d['devices'][0]['ops'][0]['reasons'][0]['count'] == d['devices'][0]['counts']['unsupported']"
}

@test "every case, and the table as CSV" {
    needs_cpu
    hw verify cpu -q -o argmax --verbose
    succeeds
    says 'passed argmax\(.*\), kernel argmax.*'
    hw verify cpu -q -o argmax --csv
    succeeds
    [ "${lines[0]}" = "device,op,passed,empty,failed,skipped,unsupported" ]
    [[ ${lines[1]} == cpu:0,argmax,* ]]
    hw verify cpu --support --csv
    [[ ${lines[1]} == cpu:0,matmul,f32,* ]]
}

@test "buffers that are not aligned are a failure" {
    [ -n "${UNALIGNED-}" ] || skip "not applicable: built without the wrong plugins"
    hw verify "$UNALIGNED" -q -o silu
    [ "$status" -eq 1 ]
    [[ $output == *FAILED* && $output == *"multiple of 256"* ]]
}

@test "a plugin that exports more than its entry, or has unknown keys in its manifest, gets a warning" {
    [ -n "${SLOPPY_PLUGIN-}" ] || skip "not applicable: the plugin was not built"
    export HW_TRUST=off
    hw verify "$SLOPPY_PLUGIN" -q -o silu
    says 'Warning: .*hw_sloppy.so exports sloppy_helper besides hw_plugin_entry.*'
    says 'Warning: .*hw_sloppy.so has in its manifest the unknown key maker and 1 other, which is ignored; .*'
    hw verify "$SLOPPY_PLUGIN" -q -o silu --json
    json "d['files'][0]['exports'] == ['sloppy_helper'] and d['files'][0]['unknown_keys'] == ['maker', 'color']"
    hw verify "$DEADLY_PLUGIN" -q -o silu --json
    json "d['files'][0]['exports'] == [] and d['files'][0]['unknown_keys'] == []"
}

@test "the manifests of these plugins have no unknown key" {
    export HW_TRUST=off
    for file in "$PLUGINS"/hw_*.so; do
        hw verify "$file" -q -o silu --json
        json "all(f['unknown_keys'] == [] for f in d.get('files', []))"
    done
}

@test "a plugin that links the library is told so" {
    command -v cc >/dev/null || skip "missing tool: cc"
    core=$(dirname "$COMMAND")/../core
    chmod 755 "$BATS_TEST_TMPDIR"
    cc -shared -fPIC -fvisibility=hidden -I "$BATS_TEST_DIRNAME/../../include" -I "$BATS_TEST_DIRNAME/../fixtures" \
        -o "$BATS_TEST_TMPDIR/hw_sloppy.so" "$BATS_TEST_DIRNAME/sloppy.c" -L "$core" -Wl,--no-as-needed -lhw \
        -Wl,-rpath,"$core"
    chmod 755 "$BATS_TEST_TMPDIR/hw_sloppy.so"
    HW_PROBE=inproc hw verify "$BATS_TEST_TMPDIR/hw_sloppy.so" -q -o silu
    says 'Warning: .*hw_sloppy.so links the library, libhw.so.0; .*leave out -lhw.*'
}

@test "the author of a faulty plugin is not sent to its author" {
    command -v cc >/dev/null || skip "missing tool: cc"
    chmod 755 "$BATS_TEST_TMPDIR"
    cat >"$BATS_TEST_TMPDIR/bad.c" <<'END'
#include <hw/plugin.h>
static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host, (void)table;
    return HW_OK;
}
HW_PLUGIN("bad", "", fill)
END
    cc -shared -fPIC -I "$BATS_TEST_DIRNAME/../../include" -o "$BATS_TEST_TMPDIR/hw_bad.so" "$BATS_TEST_TMPDIR/bad.c"
    chmod 755 "$BATS_TEST_TMPDIR/hw_bad.so"
    hw verify "$BATS_TEST_TMPDIR/hw_bad.so"
    fails 1 'stopped at probe \(bad-table\): .*\. Remedy: mend the plugin$'
}

@test "code for a fixed address: how to compile it instead" {
    command -v cc >/dev/null || skip "missing tool: cc"
    chmod 755 "$BATS_TEST_TMPDIR"
    cc -shared -fno-pic -mcmodel=large -fvisibility=hidden -Wl,-z,notext -I "$BATS_TEST_DIRNAME/../../include" \
        -o "$BATS_TEST_TMPDIR/hw_minimal.so" "$BATS_TEST_DIRNAME/../../examples/minimal/hw_minimal.c" -lm ||
        skip "missing tool: cc for code with text relocations"
    chmod 755 "$BATS_TEST_TMPDIR/hw_minimal.so"
    readelf -d "$BATS_TEST_TMPDIR/hw_minimal.so" | grep TEXTREL || skip "not applicable: no text relocations"
    hw verify "$BATS_TEST_TMPDIR/hw_minimal.so" -q -o rmsnorm
    fails 1 'it has text relocations: its code is for a fixed address. Remedy: Compile it with -fPIC'
}

@test "an op has one line" {
    needs_cpu
    hw verify cpu -o argmax --json
    json "[o['op'] for o in d['devices'][0]['ops']] == ['argmax']"
}

@test "progress stays on one line of the terminal" {
    needs_cpu
    # These cases have the longest text.
    run on_terminal "stty cols 50; $COMMAND verify cpu -q -o attention -c lengths=mixed,view=swapped"
    printf '%s\n' "$output" | tr '\r' '\n' | sed 's/\x1b\[[0-9;]*[mK]//g' >"$BATS_TEST_TMPDIR/lines"
    grep -q 'attention: ' "$BATS_TEST_TMPDIR/lines"
    awk '/attention: .*passed, .*failed: / && length($0) > 49 { bad = 1 } END { exit bad }' "$BATS_TEST_TMPDIR/lines"
}
