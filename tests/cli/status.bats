#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# status, devices and explain: the available devices, and for missing ones the reason and the remedy.

load common

size='[0-9]+(\.[0-9][0-9])? GiB'

# A directory of plugin files, some of them bad, found before the built-in one.
make_directory()
{
    directory=$BATS_TEST_TMPDIR/plugins
    mkdir -p "$directory"
    chmod 755 "$BATS_TEST_TMPDIR" "$directory"
    export HW_PLUGIN_PATH=$directory
}

@test "status has its shape" {
    needs_cpu
    hw status
    succeeds
    [ "${lines[0]}" = "=== Available Backends ===" ]
    [ "${lines[1]}" = "✓ CPU (cpu)" ]
    [[ ${lines[2]} =~ ^\ {4}\[0\]\ .+:\ $size\ \($size\ free\)$ ]]
    says 'Recommended backend: cpu'
    says 'Looked in:'
}

@test "the figures are those of this machine" {
    needs_cpu
    hw status --json
    succeeds
    total=$(($(sed -nE 's/^MemTotal: +([0-9]+) kB/\1/p' /proc/meminfo) * 1024))
    json "d['recommended'] == 'cpu' and d['error'] is None"
    # A container's limit may be below the machine's memory; nothing may exceed it.
    json "0 < d['backends'][0]['devices'][0]['memory_total'] <= $total"
    json "0 < d['backends'][0]['devices'][0]['memory_free'] <= d['backends'][0]['devices'][0]['memory_total']"
    if grep -q '^model name' /proc/cpuinfo; then
        model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1 | tr -s ' ')
        json "' '.join(d['backends'][0]['devices'][0]['device'].split()) == '''$model'''"
    fi
}

@test "a backend is called by its plugin's title, or else by its name in capitals" {
    export HW_TRUST=off HW_PLUGIN_PATH=$TEST_PLUGINS:!
    hw status
    succeeds
    says '✓ Discrete test device \(discrete\).*'
    says '✓ NULL \(null\)'
    hw status --json
    json "{('Discrete test device', 'discrete'), ('NULL', 'null')} <= {(b['title'], b['name']) for b in d['backends']}"
    HW_DISABLE=discrete hw status
    says '- DISCRETE \(discrete\)'
}

@test "of two files with one name, the one that works gives the title" {
    make_directory
    cp "$TEST_PLUGINS/hw_discrete.so" "$directory/"
    HW_TRUST=off HW_PLUGIN_PATH=$directory:$TEST_PLUGINS:! hw status
    says '✓ Discrete test device \(discrete\).*'
    head -c 1000 "$TEST_PLUGINS/hw_discrete.so" >"$directory/hw_discrete.so"
    HW_TRUST=off HW_PLUGIN_PATH=$directory:$TEST_PLUGINS:! hw status
    says '✓ Discrete test device \(discrete\).*'
    HW_TRUST=off HW_PLUGIN_PATH=$directory:! hw status
    says '✗ DISCRETE \(discrete\)'
}

@test "a file that is not a plugin has one line, with path, reason and remedy" {
    make_directory
    : >"$directory/hw_empty.so"
    echo "not a plugin" >"$directory/hw_words.so"
    hw status
    says '✗ EMPTY \(empty\)'
    says "    Error: $directory/hw_empty.so: the file is empty\. [A-Z].*\."
    says '✗ WORDS \(words\)'
    says "    Error: $directory/hw_words.so: .+\. [A-Z].*\."
    [ "$(printf '%s\n' "$output" | grep -c hw_words.so)" -eq 1 ]
}

@test "a backend whose driver is missing has the line that helps" {
    command -v cc >/dev/null || skip "missing tool: cc"
    make_directory
    cat >"$BATS_TEST_TMPDIR/absent.c" <<'END'
#include <hw/plugin.h>
static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host, (void)table;
    return HW_OK;
}
HW_PLUGIN("absent", "title=Absent\302\23331m\nneeds=libabsent.so.7\nremedy=install the Absent driver\n", fill)
END
    cc -shared -fPIC -I "$BATS_TEST_DIRNAME/../../include" -o "$directory/hw_absent.so" "$BATS_TEST_TMPDIR/absent.c"
    chmod 755 "$directory/hw_absent.so"
    hw status
    says '- Absent\\xc2\\x9b31m \(absent\)' # its C1 control is for no terminal
    line='it needs libabsent\.so\.7.*\. Install the Absent driver, or HW_DISABLE=absent to stop looking\.'
    says "    Not available: $line"
    HW_DISABLE=absent hw status
    says '    Not used: .*HW_DISABLE.*'
}

@test "hardware that the machine does not have is one short line, and no error" {
    command -v cc >/dev/null || skip "missing tool: cc"
    make_directory
    cat >"$BATS_TEST_TMPDIR/far.c" <<'END'
#include <hw/plugin.h>
static int32_t fill(const struct hw_host *host, struct hw_plugin *table)
{
    (void)host, (void)table;
    return HW_NO_DEVICE;
}
HW_PLUGIN("far", "title=Far\nvendor=Nobody\nmatch=" MATCH "\nremedy=install Far\n", fill)
END
    for match in node:/nonexistent node:/dev/null; do
        cc -shared -fPIC -DMATCH="\"$match\"" -I "$BATS_TEST_DIRNAME/../../include" -o "$directory/hw_far.so" \
            "$BATS_TEST_TMPDIR/far.c"
        chmod 755 "$directory/hw_far.so"
        hw status
        if [ "$match" = node:/dev/null ]; then # the system has the hardware, so the rest of the chain must be mended
            says '✗ Far \(far\)'
            says '    Error: .*'
        else
            says '- Far \(.*\): no Nobody hardware here'
            [[ $output != *✗* && $output != *"the system lists"* ]]
            hw explain far
            says '.*the system lists no Nobody hardware for it.*'
        fi
    done
}

@test "a plugin that lacks most ops is not recommended, even if it comes first" {
    needs_cpu
    command -v cc >/dev/null || skip "missing tool: cc"
    make_directory
    printf '#define NAME "few"\n#define LINES "rank=10\\n"\n#include "minimal.h"\n' >"$BATS_TEST_TMPDIR/few.c"
    cc -shared -fPIC -fvisibility=hidden -I "$BATS_TEST_DIRNAME/../../include" -I "$BATS_TEST_DIRNAME/../fixtures" \
        -o "$directory/hw_few.so" "$BATS_TEST_TMPDIR/few.c"
    cp "$PLUGINS/hw_cpu.so" "$directory/"
    chmod 755 "$directory"/*.so
    export HW_PLUGIN_PATH=$directory:!
    hw explain --json
    json "d['recommended'] == 'few'" # the first one, which programs use
    hw status
    says 'Recommended backend: cpu'
    says '    Programs use few first, although it has only 0 of [0-9]+ ops\. HW_BACKENDS=cpu,few changes the order\.'
    hw status --json
    json "d['recommended'] == 'cpu'"
    hw devices
    says 'cpu:0  \(recommended\)'
    HW_BACKENDS=cpu,few hw status
    says 'Recommended backend: cpu'
    [[ $output != *"Programs use"* ]]
}

@test "devices that a plugin leaves out have a line each" {
    local mode
    make_directory
    cp "$TEST_PLUGINS/hw_picky.so" "$directory/"
    export HW_CACHE_DIR=$BATS_TEST_TMPDIR/cache
    for mode in child inproc; do
        export HW_PROBE=$mode
        hw status
        succeeds
        says '    \[0\] a device of picky'
        says '    \[-\] Old device \(not used: it is older than this plugin\)'
        says '    \[-\] Broken.*device \(not used: it is broken\)'
        says '    \[-\] a device \(not used: the plugin does not say why\)'
        hw explain --json
        json "'$mode' == [('child', 'inproc')[not c['recalled']] for c in d['candidates'] if c['name'] == 'picky'][0]" \
            "[c['left_out'][0]['device'] for c in d['candidates'] if c['left_out']] == ['Old device']"
        PICKY=1 hw status
        says '    Error: no device is good enough: Old device: it is older than this plugin\. Get a better device.*'
        says '    \[-\] Broken.*device \(not used: it is broken\)'
        [ "$(printf '%s\n' "$output" | grep -c 'Old device')" -eq 1 ]
    done
    HW_WORKER=picky hw status # known only to the plugin's own process, because it was not tried
    says '    \[-\] Old device \(not used: it is older than this plugin\)'
}

@test "a truncated plugin is named, and the good one serves" {
    needs_cpu
    make_directory
    head -c 1000 "$PLUGINS/hw_cpu.so" >"$directory/hw_cut.so"
    hw status
    [ "$status" -eq 0 ]
    says '✗ CUT \(cut\)'
    says "    Error: $directory/hw_cut.so: .*the file is truncated.*"
    says '✓ CPU \(cpu\)'
}

@test "a shadowed plugin is not lost" {
    needs_cpu
    make_directory
    cp "$PLUGINS/hw_cpu.so" "$directory/hw_cpu.so"
    hw status
    [ "$status" -eq 0 ]
    says '✓ CPU \(cpu\)'
    says "    Not used: .*/hw_cpu.so: .*comes first.*"
}

@test "a plugin that others may write to is refused, with the way out" {
    needs_cpu
    make_directory
    cp "$PLUGINS"/hw_*.so "$directory/"
    chmod o+w "$directory"/hw_*.so
    export HW_PLUGIN_PATH=$directory:!
    hw status
    [ "$status" -eq 1 ]
    says '    Error: .*all users can write.*chmod.*'
    says 'Recommended backend: none: see the error above'
}

@test "control characters in the name of a file are escaped" {
    make_directory
    : >"$directory/hw_"$'\e[31m'".so"
    hw status
    [[ $output != *$'\e'* && $output == *'\x1b[31m'* ]]
}

@test "without plugins it says where it looked and how to add one" {
    make_directory
    HW_PLUGIN_PATH=$directory:! hw status
    [ "$status" -eq 1 ]
    says 'Error: no plugin was found.*'
    says 'Recommended backend: none: see the error above'
    says "    $directory .*"
    says '.*hw_<name>.so.*'
}

@test "a disabled backend is listed with what disabled it" {
    needs_cpu
    HW_DISABLE='*' hw status
    [ "$status" -eq 1 ]
    says '- CPU \(cpu\)'
    says '    Not used: .*HW_DISABLE.*'
}

@test "an invalid setting comes first, and nothing is recommended" {
    needs_cpu
    for setting in HW_LOG=loud HW_THREADS=0; do
        run --separate-stderr env "$setting" "$COMMAND" status
        [ "$status" -eq 1 ]
        [[ ${lines[0]} == "Error: ${setting%=*}: "* ]]
        says '✓ CPU \(cpu\)'
        says 'Recommended backend: none: see the error above'
        [ "$(grep -c ^Error <<<"$output")" -eq 1 ]
    done
    HW_THREADS=0 hw status --json
    json "d['recommended'] is None and d['error']"
    HW_PLUGIN_PATH=relative hw status
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "Error: HW_PLUGIN_PATH: "* && $output == *"Looked in:"*"(built-in): read"* ]]
}

@test "a plugin with few ops is listed with their number" {
    export HW_TRUST=off HW_PLUGIN_PATH=${DEADLY_PLUGIN-}:!
    [ -n "${HW_PLUGIN_PATH%:!}" ] || skip "not applicable: a plugin of one op was not built"
    hw status
    says '✓ DEADLY \(deadly\) \(1 of [0-9]+ ops\)'
    hw status --json
    json "d['backends'][0]['ops'] == ['silu']"
}

@test "a directory of many files" {
    make_directory
    for i in {1..2000}; do
        : >"$directory/hw_n$i.so"
    done
    HW_PLUGIN_PATH=$directory:! hw status --json
    json "len(d['backends']) == 2000"
}

@test "long lines are folded at blanks, on a terminal" {
    make_directory
    : >"$directory/hw_empty.so"
    HW_PLUGIN_PATH=$directory:! run on_terminal "stty cols 60; $COMMAND status; $COMMAND explain"
    output=$(printf '%s\n' "$output" | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g')
    printf '%s\n' "$output"
    # Only a word that is longer than a line may exceed the width.
    python3 -c '
import sys
sys.exit(any(len(line) > 60 and len(line.split()) > 2 for line in sys.stdin.read().split("\n")))' <<<"$output"
    says '        [A-Za-z].*'
}

@test "the same as JSON" {
    make_directory
    : >"$directory/hw_empty.so"
    hw status --json
    json "[f['reason'] for b in d['backends'] if b['name'] == 'empty' for f in b['files']] == ['malformed']"
    json "not [b for b in d['backends'] if b['name'] == 'empty'][0]['available']"
    json "'$directory' in [p['path'] for p in d['directories']]"
}

@test "devices prints all facts" {
    needs_cpu
    hw devices
    succeeds
    says 'cpu:0  \(recommended\)'
    says ' +name +.+'
    says ' +kind +cpu'
    says " +memory +$size \\($size free\\)"
    says " +units +[0-9]+"
    says ' +features +.*'
    hw devices --json
    succeeds
    json "d['devices'][0]['name'] == 'cpu:0' and d['devices'][0]['kind'] == 'cpu'"
    json "d['devices'][0]['units'] >= 1 and d['devices'][0]['pci'] is None"
    json "{'arch', 'vendor', 'driver', 'uuid', 'features', 'memory_free', 'buffer_max', 'buffer_alignment'} <= set(
        d['devices'][0])"
}

@test "devices takes a name, and rejects an unknown one" {
    needs_cpu
    hw devices cpu:0
    succeeds
    hw devices cpu:77
    fails 1 "cpu:0"
    hw devices nonsense
    fails 1 "cpu:0"
    HW_DISABLE='*' hw devices
    fails 1 "."
}

@test "devices in one line each, and as CSV" {
    needs_cpu
    export HW_BACKENDS=cpu
    hw devices -l
    succeeds
    says 'cpu:0 +cpu +[0-9.]+ [GT]iB  .+'
    [ "${#lines[@]}" -eq 1 ]
    hw devices --csv
    succeeds
    python3 -c '
import csv, sys
rows = list(csv.DictReader(sys.stdin))
assert rows[0]["name"] == "cpu:0" and int(rows[0]["memory_total"]) > 0, rows' <<<"$output"
}

@test "devices and explain take a plugin file that is not installed" {
    [ -n "${DEADLY_PLUGIN-}" ] || skip "not applicable: the plugin was not built"
    export HW_TRUST=off
    hw devices "$DEADLY_PLUGIN"
    succeeds
    says 'deadly:0  \(recommended\)'
    [[ $output != *cpu:0* ]]
    hw explain "$DEADLY_PLUGIN"
    succeeds
    says "$DEADLY_PLUGIN"
    says ' +- bind +when one of its devices is first used'
    hw bench copy -r 1 -d "$DEADLY_PLUGIN" # has no op for copies on the device
    fails 1 'deadly:0'
    hw devices /nonexistent/hw_none.so
    fails 1 '/nonexistent/hw_none.so: No such file'
    hw explain /nonexistent/hw_none.so
    fails 1 '/nonexistent/hw_none.so: No such file'
}

@test "devices --kernels names the rows of the ops" {
    needs_cpu
    hw devices --kernels --json
    succeeds
    json "d['devices'][0]['kernels']['matmul'] and d['devices'][0]['kernels']['silu']"
    json "all(r['name'] for rows in d['devices'][0]['kernels'].values() for r in rows)"
    json "'kernels_error' not in d['devices'][0]"
    hw devices cpu:0 --kernels
    says ' +matmul +.+'
}

@test "explain shows the ladder, stage by stage" {
    needs_cpu
    hw explain
    succeeds
    for stage in list filter trust preflight probe bind; do
        says " +✓ $stage .*"
    done
    hw explain cpu
    succeeds
    says '.*/hw_cpu.so.*'
}

@test "explain says what was not tested, and how it is" {
    needs_cpu
    make_directory
    hw report "$directory/report.json"
    python3 - "$directory/report.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
for file in report["explain"]["candidates"]:
    if file["name"] == "cpu":
        file["admission"] = {"tested": 9, "untested": 3, "withdrawn": 0, "microseconds": 8}
json.dump(report, open(sys.argv[1], "w"))
END
    hw --replay "$directory/report.json" explain cpu
    says ' .* 9 cases of its ops tested; 3 are not, for lack of time \(until they are first used\) or memory;'
    says ' +HW_PROBE=full hw status tests them'
}

@test "explain shows where a file stopped, and why" {
    make_directory
    : >"$directory/hw_empty.so"
    hw explain empty
    [ "$status" -eq 1 ]
    says " +✗ preflight .*the file is empty.*"
    [[ $output != *hw_cpu* ]]
}

@test "explain --json is the library's own report" {
    hw explain --json
    json "d['schema'] == 1 and len(d['settings']) == 17 and 'devices' in d and 'candidates' in d"
}

@test "explain rejects an unknown name" {
    hw explain nonsense
    fails 1 "nonsense: no .*file"
}

@test "no file name controls the terminal" {
    needs_cpu
    make_directory
    touch "$directory/"$'hw_\x1b\xc2\x9b.so'
    hw status --json
    [[ $output == *'hw_\u001B\u009b.so'* ]]
    [[ $output != *$'\xc2\x9b'* ]]
}

@test "what kernels need is text for people" {
    needs_cpu
    hw devices --kernels cpu:0
    succeeds
    says '.*; few rows of a'
    [[ ! $output =~ op-\> && ! $output =~ \&\& && ! $output =~ \;\ *1?$'\n' ]]
}
