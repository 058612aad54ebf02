#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# hw explain --op, with a device that cannot read host memory (tests/fixtures/distant.c).

load common

distant()
{
    needs_cpu
    export HW_PLUGIN_PATH=$TEST_PLUGINS HW_BACKENDS='distan*,cpu' HW_THREADS=1 HW_PROBE=inproc
}

@test "explain --op says where a call is computed, why, and by which estimates" {
    distant
    hw explain --op silu --shape 4x64
    succeeds
    says 'Decision: cpu:0: the CPU is expected to be faster than moving the operands'
    says 'Estimates: 20.1 us with 2 KiB moved to a device and back, 5.5 us on the CPU'
    hw explain --op silu --shape 64x1024 --json
    succeeds
    json "d['device'] == 'distant:0'" "'twice as fast' in d['why']" "d['own'] < 2 * d['cpu']" \
        "d['moved'] == 2 * 64 * 1024 * 4"
    HW_BACKENDS=distant,cpu hw explain --op silu --shape 4x64 --json
    succeeds
    json "d['device'] == 'distant:0'" "'named' in d['why']"
}

@test "explain --op has the ops, the shapes and the types that it takes" {
    distant
    local ops=$BATS_TEST_DIRNAME/../../include/hw/ops.h
    while read -r op; do
        hw explain --op "$op"
        [ "$status" -eq 0 ]
        says "$op\\(.* on host memory"
        says 'Decision: .*'
    done < <(sed -nE 's/^    X\([A-Z_0-9]+, ([a-z_0-9]+)\).*/\1/p' "$ops")
    hw explain --op matmul --shape 1x4096x4096 --dtype f32,q8_0 --json
    json "d['call'] == 'matmul(m=1,n=4096,k=4096,a=f32,b=q8_0,c=f32,tb=1)'"
    hw explain --op 'silu(type=f16,shape=4x64)'
    [ "$status" -eq 0 ]
    hw explain --op matmull
    fails 2 "matmull: no such op; did you mean 'matmul'"
    hw explain --op matmul --shape 512x512
    fails 2 '512x512: not a shape of matmul, which takes MxNxK'
    hw explain --op matmul --shape 1x2x3x
    fails 2 'not a shape of matmul'
    hw explain --op silu --shape 4x64 --dtype f32,f16
    fails 2 'not types for silu, which takes those of: type'
    hw explain --op silu --dtype f33
    fails 2 'no such dtype'
    hw explain --shape 4x64
    fails 2 'need --op'
    hw explain --op silu distant
    fails 2 'unexpected argument'
}
