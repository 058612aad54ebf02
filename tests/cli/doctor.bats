#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# doctor, report and --replay: what is wrong here, and the same seen elsewhere.

load common

setup_plugins()
{
    needs_cpu
    cd "$BATS_TEST_TMPDIR" || return
    plugins=$BATS_TEST_TMPDIR/plugins
    mkdir "$plugins"
    cp "$PLUGINS/hw_cpu.so" "$plugins"
    export HW_PLUGIN_PATH=$plugins:!
}

@test "a sound installation has no problem, and its device computes" {
    setup_plugins
    hw doctor --json
    [ "$status" -eq 0 ] || json "[c for c in d['checks'] if c['state'] == 'problem'] == []"
    json "d['schema'] == 1 and d['problems'] == 0"
    json "['cpu:0 computes'] == [c['text'] for c in d['checks'] if c['subject'] == 'devices']"
    json "all(c['remedy'] is None for c in d['checks'] if c['state'] == 'good')"
    hw doctor
    succeeds
    says 'devices +✓ cpu:0 computes'
    says 'No problem\.'
}

@test "a broken plugin is a problem, a missing driver is a note" {
    setup_plugins
    echo text >"$plugins/hw_text.so"
    hw doctor
    [ "$status" -eq 1 ]
    says " +✗ $plugins/hw_text.so: not an object file \\(not-an-object\\)"
    says ' +Remove it from the plugin directory'
    says '1 problem\.'
    HW_DISABLE=text hw doctor
    [ "$status" -eq 0 ]
    says " +- $plugins/hw_text.so: .*\\(disabled\\)"
}

@test "a device that a plugin leaves out is a note" {
    setup_plugins
    cp "$TEST_PLUGINS/hw_picky.so" "$plugins"
    PICKY=1 hw doctor
    says ' +- picky leaves out Old device: it is older than this plugin'
    says 'No problem\.'
}

@test "a wrong result is a problem" {
    [ -n "${WRONG-}" ] || skip "not applicable: tests/wrong was not built"
    mkdir "$BATS_TEST_TMPDIR/wrong"
    cp "$WRONG" "$BATS_TEST_TMPDIR/wrong"
    HW_PLUGIN_PATH=$BATS_TEST_TMPDIR/wrong:! HW_PROBE=inproc hw doctor
    [ "$status" -eq 1 ]
    says '.*✗ silu_tail:0: a small silu: the result is wrong'
}

@test "ops that the admission test withdrew are problems" {
    [ -n "${DEADLY_PLUGIN-}" ] || skip "not applicable: the plugin that dies was not built"
    mkdir "$BATS_TEST_TMPDIR/deadly"
    cp "$DEADLY_PLUGIN" "$BATS_TEST_TMPDIR/deadly"
    export HW_PLUGIN_PATH=$BATS_TEST_TMPDIR/deadly:! HW_CACHE_DIR=off # DEADLY makes it another plugin
    DEADLY=silu hw doctor
    [ "$status" -eq 1 ]
    says ' +✗ deadly:0 does not compute silu \(f16 f16\): .* was not written'
    says ' +✗ deadly:0 does not compute silu \(f32 f32\): .* was not written'
    DEADLY=silu hw doctor --json # one op, whatever the number of types
    json "sum(c.get('op') == 'silu' and c['device'] == 'deadly:0' for c in d['checks']) > 1" \
        "d['problems'] == 1 + sum(c['state'] == 'problem' and 'op' not in c for c in d['checks'])"
    DEADLY=silu:segv hw doctor
    [ "$status" -eq 1 ]
    says 'ops +✗ deadly:0 does not compute silu \(\* \*\): it crashed .*: segmentation fault.*'
    says ' +Update the driver or the plugin'
    says '.*[0-9] problems?\.'
    # One that hangs is found when it is first used, or if all is tested.
    DEADLY=silu:hang HW_PROBE_TIMEOUT=1 hw doctor
    [ "$status" -eq 1 ]
    says '.*✗ deadly:0: a small silu: .*within 6 seconds \(6 times HW_PROBE_TIMEOUT\).*'
    DEADLY=silu:hang HW_PROBE_TIMEOUT=1 HW_PROBE=full hw status
    says ' +Too slow: silu \(\* \*\) on deadly:0: .*within 6 seconds.*\. Remedy: test it with HW_PROBE=full.*'
}

@test "settings that are wrong, and no plugin at all" {
    setup_plugins
    HW_THREADS=many hw doctor
    [ "$status" -eq 1 ]
    says 'settings +✗ .*HW_THREADS.*'
    rm "$plugins/hw_cpu.so"
    hw doctor
    [ "$status" -eq 1 ]
    says 'plugins +✗ no plugin file was found'
}

@test "a folder of the cache that others may write to is shown, and mended as it says" {
    setup_plugins
    export HW_CACHE_DIR=$BATS_TEST_TMPDIR/cache
    mkdir -p "$HW_CACHE_DIR"/{verdicts.d,opencl}
    chmod 700 "$HW_CACHE_DIR"/*
    hw doctor
    says "cache +✓ $HW_CACHE_DIR"
    [[ $output != *'not used: others'* ]]
    chmod 775 "$HW_CACHE_DIR/opencl"
    hw doctor
    says " *- $HW_CACHE_DIR/opencl/ is not used: others may write to it \\(775\\)"
    says " +Run chmod go-w $HW_CACHE_DIR/opencl/"
    chmod go-w "$HW_CACHE_DIR/opencl/"
    hw doctor
    [[ $output != *'not used: others'* ]]
}

same()
{
    tr -s ' ' | sed -E 's/ [0-9]+ us//; s/[0-9.]+ [GMK]iB free//'
}

@test "a report shows elsewhere what was here" {
    setup_plugins
    echo text >"$plugins/hw_<script>.so"
    echo text >"$plugins/hw_text.so"
    hw status # so that all that follow know the verdicts
    for file in report.json report.html; do
        hw report "$file"
        succeeds
        for command in status devices explain env; do
            "$COMMAND" "$command" >here 2>&1 || true
            HW_PLUGIN_PATH=/nowhere:! "$COMMAND" --replay "$file" "$command" >there 2>&1 || true
            # Times, free memory and widths change, and ~ stands for the home directory.
            diff <(sed "s:$HOME:~:g" here | same) <(same <there)
        done
        hw --replay "$file" doctor
        [ "$status" -eq 1 ]
        says '.*cpu:0 computes'
        run ! grep -qF "$HOME" "$file"
    done
    json_file=$(cat report.json)
    output=$json_file json "d['kind'] == 'hw report' and d['explain']['schema'] == 1 and d['system']['processors'] > 0"
    output=$json_file json "d['environment']['HW_PLUGIN_PATH'] == '~/plugins:!'"
    [ "$(stat -c %a report.json)" = 600 ]
    local home=$HOME
    LD_LIBRARY_PATH=$home:/x$home:${home}2 HW_CACHE_DIR=$home HOME=$home/ hw report home.json
    run ! grep -qE "$home(:|\"|/)" home.json
    grep -qF "${home}2" home.json # another directory
    [ "$(grep -c '</script>' report.html)" -eq 1 ]
    python3 - <<'EOF'
from html.parser import HTMLParser
class Balanced(HTMLParser):
    open = []
    def handle_starttag(self, tag, attributes):
        if tag != "meta":
            self.open.append(tag)
    def handle_endtag(self, tag):
        assert self.open.pop() == tag
page = Balanced()
page.feed(open("report.html").read())
assert page.open == []
EOF
}

@test "the page of a report has the verdict first, marks, and room on a small screen" {
    setup_plugins
    hw report good.html
    grep -q '<p><span class="good">✓ No problem</span></p>' good.html
    grep -q '<p>Recommended backend: <b class="text">cpu</b>' good.html
    grep -q '<meta name="viewport"' good.html
    echo text >"$plugins/hw_<b>.so"
    hw report bad.html
    sed '/<script/,$d' bad.html >page # without its JSON
    grep -q '<p><span class="problem">✗ 1 problem</span></p>' page
    grep -q '<h2>Problems</h2>' page
    grep -q 'hw_&lt;b>.so' page
    run ! grep -q 'hw_<b>' page
}

@test "a report replaces no file unasked" {
    setup_plugins
    hw report
    succeeds
    says 'hw-report.json: .*'
    echo mine >mine.json
    hw report mine.json
    fails 1 'mine.json: exists; --force replaces it'
    [ "$(cat mine.json)" = mine ]
    hw report --force mine.json --json
    json "d['file'] == 'mine.json' and d['bytes'] > 1000"
    hw report nowhere/report.json
    fails 1 'nowhere/report.json: cannot be created: No such file or directory'
    [ "$(find . -name '*json*' | wc -l)" -eq 2 ] # no part is left
}

@test "what is not a report is refused" {
    setup_plugins
    hw report good.json
    hw --replay nosuch status
    fails 1 'nosuch: No such file or directory'
    printf '{}' >bad.json
    hw --replay bad.json status
    fails 1 "bad.json: was not written by 'hw report'"
    for key in stages settings warnings directories hardware candidates devices selection open_error; do
        python3 -c '
import json, sys
d = json.load(open("good.json"))
del d["explain"][sys.argv[1]]
json.dump(d, open("bad.json", "w"))' "$key"
        hw --replay bad.json status
        fails 1 "bad.json: was not written by 'hw report'"
    done
    python3 -c '
import json
d = json.load(open("good.json"))
def spoil(x):
    return [[], 1, None, spoil(x[0]) if x else {}] if isinstance(x, list) else {k: 7 for k in x} \
        if isinstance(x, dict) else []
d["explain"] = {k: spoil(v) if isinstance(v, list) else [] for k, v in d["explain"].items()}
d["checks"] = [[], None, {"subject": 7}]
json.dump(d, open("bad.json", "w"))'
    for command in status devices explain env doctor; do
        hw --replay bad.json "$command"
        echo "$command: $status"
        [ "$status" -le 1 ] # and no crash
    done
    hw --replay good.json bench
    fails 2 'bench: cannot be shown from a report; .*'
    hw --replay good.json devices --kernels
    fails 2 '--kernels: a report has no list of kernels'
    hw --replay good.json explain ./hw_x.so
    fails 1 "./hw_x.so: a report knows only the plugin files of its machine; .*"
    hw --replay good.json devices cuda:7
    fails 1 'there is no such device in the report'
    hw --replay
    [ "$status" -eq 2 ]
}
