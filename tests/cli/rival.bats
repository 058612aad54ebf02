#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# hw-rival: this library beside another one on the same device. Meson sets RIVAL (the program).

load common

rival()
{
    COMMAND=$RIVAL hw "$@"
}

@test "help, and an option that does not exist" {
    rival --help
    succeeds
    says 'Usage: hw-rival .*'
    rival --jsn
    fails 2 "^hw-rival: --jsn: no such option; did you mean --json"
}

@test "a shape that cannot be" {
    for product in bf16:4x4 bf16:4x4x4x4 q8_0:4x4x4 bf16:0x4x4 bf16:4x4x4000000 4x4x4 \
        f32:99999999999999999999x1x1; do
        rival "$product"
        fails 2 "a product is TYPE:MxNxK, .*; TYPE is f32, f16 or bf16; M, N and K are 1 to 1048576"
    done
    # A number of queries, of keys' heads, or of elements that attention cannot have, or a type.
    for shape in f16:2x4x8/8x64 f16:1x4x8/3x64 f16:1x4x8/8x577 f16:1x4x8x64 f16:1x4x8/8x64x2 q8_0:1x4x8/8x64; do
        rival "$shape"
        fails 2 "attention is TYPE:QxKxH/GxD"
    done
    rival softmax
    fails 2 "softmax"
}

@test "rivals of the processor that are missing are named" {
    needs_cpu
    local library
    for library in libopenblas.so.0 libblis.so.4 libdnnl.so.2 libdnnl.so.3; do
        echo text >"$BATS_TEST_TMPDIR/$library"
    done
    LD_LIBRARY_PATH=$BATS_TEST_TMPDIR:$LD_LIBRARY_PATH rival -d cpu:0 f32:8x16x32
    fails 1 "install OpenBLAS .libopenblas0-pthread.*install BLIS .libblis4-pthread.*install oneDNN .libdnnl2"
}

@test "an op without a rival on the device is named" {
    needs_cpu
    rival -d cpu:0 attention
    fails 1 "cpu:0: attention: no other library is known for this device"
}

@test "rivals of the processor compute the same" {
    needs_cpu
    local installed
    installed=$(ldconfig -p | grep -cE '^\s(libopenblas\.so\.0|libblis\.so\.4|libdnnl\.so\.2) ' || true)
    [ "$installed" -gt 0 ] || skip "not applicable: no OpenBLAS, BLIS or oneDNN"
    # The threads that these libraries leave behind make the leak checker of gcc 12 crash.
    export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
    rival -d cpu:0 f32:1x48x32 f32:9x33x65
    succeeds
    [[ $output == *9x33x65* ]]
    rival -d cpu:0 f32:1x48x32 f32:9x33x65 --json
    succeeds
    # Two shapes and what ends the table.
    json "len(d['results']) == 3 * $installed and [r['shapes'] for r in d['results'][2::3]] == [2] * $installed"
    json "all(r[e] < 1e-5 for r in d['results'] if 'speed' in r for e in ('difference', 'error', 'rival_error'))"
    json "all(r['ours']['median'] > 0 and r['speed'] > 0 for r in d['results'] if 'speed' in r)"
    json "all(r['our_way'] in ('packed', 'as stored') for r in d['results'] if 'speed' in r)"
    json "all(r['rival_way'] in ('packed', 'sgemm', 'sgemv') for r in d['results'] if 'speed' in r)"
    rival -d cpu:0 bf16:9x33x65
    fails 1 "only products of f32"
}
