#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# hw abi: its output matches the compiler's view of the headers, and nothing is missing.

load common

include=$BATS_TEST_DIRNAME/../../include

@test "every size and offset is the compiler's" {
    cd "$BATS_TEST_TMPDIR"
    hw abi --json
    succeeds
    printf '%s\n' "$output" >abi.json
    python3 - >asserts.c <<'END'
import json
d = json.load(open("abi.json"))
print("#include <hw/hw.h>\n#include <hw/plugin.h>\n#include <hw/report.h>")
for s in d["structs"] + d["ops"]:
    name = s.get("struct", s["name"])
    print(f'_Static_assert(sizeof(struct {name}) == {s["bytes"]}, "{name}");')
    for f in s["fields"]:
        at = f'offsetof(struct {name}, {f["name"]}) == {f["offset"]}'
        size = f'sizeof(((struct {name} *)0)->{f["name"]}) == {f["bytes"]}'
        print(f'_Static_assert({at} && {size}, "{name}.{f["name"]}");')
END
    [ "$(wc -l <asserts.c)" -gt 250 ]
    # shellcheck disable=SC2086 # CC may be two words, as in "ccache gcc"
    ${CC:-cc} -std=c11 -fsyntax-only -I"$include" asserts.c
}

@test "every struct is there, and no byte of one is left out" {
    cd "$BATS_TEST_TMPDIR"
    hw abi --json
    succeeds
    sed -n 's/^struct \(hw_[a-z_0-9]*\) {$/\1/p' "$include"/hw/*.h | sort >declared
    [ -s declared ]
    printf '%s\n' "$output" | grep -oE '"(name|struct)": "hw_[a-z_0-9]+"' | cut -d'"' -f4 | sort -u >printed
    diff declared printed
    json "all(sum(f['bytes'] for f in s['fields']) == s['bytes'] for s in d['structs'] + d['ops'])"
}

@test "what a binding reads: numbers, roles, meanings of zero" {
    hw abi --json
    succeeds
    json "d['schema'] == 1 and d['pointer_bytes'] == 8 and d['statuses']['HW_END'] == 14"
    json "[o['op'] for o in d['ops']] == list(range(len(d['ops']))) and d['ops'][0]['name'] == 'matmul'"
    json "{'name': 'q8_0', 'dtype': 7, 'block': 32, 'bytes': 34} in d['dtypes']"
    json "{f['name']: f.get('role') for f in d['ops'][0]['fields']}['b'] == 'weight'"
    json "{f['name']: f.get('zero') for f in d['ops'][4]['fields']}['theta'] == '10000'"
}

@test "one struct by name" {
    hw abi hw_attention
    succeeds
    says 'hw_attention, 928 bytes, op 5'
    says ' +336 +112 +hw_tensor bias: optional in'
    says ' +912 +4 +f32 +scale \(0: 1/sqrt\(D\)\)'
    hw abi hw_buffer
    succeeds
    says ' +24 +8 +u64 +offset'
    hw abi hw_nothing
    fails 1 'hw_nothing: the public headers have no struct'
    hw abi hw_atention
    fails 1 "did you mean 'hw_attention'"
}
