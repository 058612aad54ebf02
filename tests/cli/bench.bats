#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# bench: it measures and prints. No test depends on the figures.

load common

@test "without a name, it says how fast each device is" {
    needs_cpu
    export HW_BACKENDS=cpu
    hw bench
    succeeds
    says ' +memory +f32 +f16 +bf16'
    says ' +cpu:0 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+'
    hw bench speed -d cpu:0 --json
    succeeds
    json "[r['device'] for r in d['results']] == ['cpu:0'] and d['results'][0]['memory'] > 0" \
        "set(d['results'][0]['matmul']) == {'f32', 'f16', 'bf16'}"
}

@test "dispatch compares the library with the plugin itself" {
    needs_cpu
    hw bench dispatch silu matmul --repetitions=20
    succeeds
    says ' +silu +1 +kept +[0-9.]+ +[0-9.]+ +-?[0-9.]+ .*'
    says ' +matmul +3 +kept +[0-9.]+ +[0-9.]+ +-?[0-9.]+ .*'
    says ' +matmul +1 +moved +[0-9.]+ +[0-9.]+ +-?[0-9.]+ .*'
    hw abi --json
    succeeds
    ops=$(printf '%s\n' "$output" |
        python3 -c 'import json, sys; print([o["name"] for o in json.load(sys.stdin)["ops"]])')
    hw bench dispatch --repetitions=20 --json
    succeeds
    json "[(r['op'], r['shapes'], r['struct']) for r in d['results']] == [(op, shapes, struct) for op in $ops
        for shapes, struct in ((1, 'kept'), (3, 'kept'), (1, 'filled'), (1, 'moved'))]"
    json "all(r['library']['median'] > 0 and r['direct']['median'] > 0 for r in d['results'])"
    json "all(r['direct']['min'] <= r['direct']['median'] <= r['direct']['p90'] for r in d['results'])"
}

@test "dispatch measures any plugin, even one that computes nothing" {
    HW_TRUST=off HW_PLUGIN_PATH=$TEST_PLUGINS:! hw bench dispatch -d null --repetitions=20
    succeeds
    says 'dispatch on null:0: .*'
    says ' +add +1 +kept +[0-9.]+ +[0-9.]+ +-?[0-9.]+ .*'
}

@test "figures come with machine, version, date and command" {
    needs_cpu
    hw bench dispatch silu --repetitions=5 --json
    succeeds
    json "d['machine']['cpu'] and d['machine']['cores'] >= 1 and d['version'] and d['date'].endswith('Z')"
    json "d['command'] == 'hw bench dispatch silu --repetitions=5 --json'"
    json "all('unit' in r for r in d['results'])"
    if [ "$(uname -m)" = x86_64 ]; then
        json "0.1 < d['machine']['core_ghz'] < 10"
    fi
}

@test "open measures new processes and this one" {
    needs_cpu
    # LeakSanitizer of gcc 12 crashes where libraries of vendors were loaded and unloaded many times.
    export HW_BACKENDS=cpu
    hw bench open --repetitions=3
    succeeds
    says ' +open, new process +[0-9]+ .*'
    hw bench open --repetitions=3 --json
    succeeds
    json "[r['how'] for r in d['results']] == ['plugin', 'cold', 'new process', 'again']"
    json "all(r['open']['median'] > 0 for r in d['results'])"
}

@test "open measures one plugin alone" {
    needs_cpu
    export HW_BACKENDS=cpu
    hw bench open --repetitions=2 -d cpu:0
    succeeds
    says '  the plugin of cpu:0 alone, without the library,'
    says ' +of this: dlopen of its file +[0-9]+ .*'
    hw bench open --repetitions=2 -d cpu:0 --json
    succeeds
    json "d['results'][0]['device'] == 'cpu:0'"
    json "d['results'][0]['load']['median'] > 0 and d['results'][0]['start']['median'] > 0"
    hw bench open --repetitions=2 -d cpu:7
    fails 1 'cpu:7'
}

@test "sizes are powers of two and say so" {
    needs_cpu
    hw bench copy --repetitions=1
    succeeds
    says ' +host to device +64 KiB +[0-9.]+ GB/s .*'
    says ' +host to device +64 MiB +[0-9.]+ GB/s .*'
}

@test "copy measures every direction" {
    needs_cpu
    hw bench copy --repetitions=2 --json
    succeeds
    json "{r['direction'] for r in d['results']} == {'host to device', 'device to device', 'device to host',
        'pinned to device', 'device to pinned'}"
    json "all(r['gb_per_s'] > 0 for r in d['results'])"
}

@test "copy goes to each other device and back" {
    needs_cpu
    cp "$PLUGINS/hw_cpu.so" "$TEST_PLUGINS/hw_discrete.so" "$BATS_TEST_TMPDIR/"
    HW_PLUGIN_PATH=$BATS_TEST_TMPDIR:! hw bench copy --device cpu:0 --repetitions=1 --json
    succeeds
    json "sum(r['direction'] in ('to discrete:0', 'from discrete:0') for r in d['results']) == 6"
    # The other one has room for fewer bytes.
    json "sum(r['direction'] in ('to discrete:1', 'from discrete:1') for r in d['results']) == 4"
    HW_PLUGIN_PATH=$BATS_TEST_TMPDIR:! hw bench copy --device cpu:0 --repetitions=1
    succeeds
    says '  discrete:1: 64 MiB requested; its largest buffer has 48 MiB'
}

@test "overhead splits an op on host tensors into its steps" {
    needs_cpu
    hw bench overhead --repetitions=2 --device cpu:0
    succeeds
    says ' +bytes +whole +buffer +upload +dispatch +compute +readback'
    says ' +64 MiB( +[0-9.]+){6}'
    hw bench overhead --repetitions=2 --device cpu:0 --json
    succeeds
    json "[r['bytes'] for r in d['results']] == [4 << 10, 1 << 20, 64 << 20]"
    json "all(r[step]['median'] > 0 for r in d['results']
        for step in ('whole', 'buffer', 'upload', 'dispatch', 'compute', 'readback'))"
}

@test "ops measures each kernel" {
    needs_cpu
    hw bench ops silu --no-peaks --seconds=0.002 --case 'silu(type=f32,shape=3x129)' --json
    succeeds
    json "len(d['results']) >= 1 and all(r['op'] == 'silu' and r['kernel'] for r in d['results'])"
    json "all(r['time']['median'] > 0 and r['gb_per_s'] > 0 for r in d['results'])"
    # No cache may hold what takes turns: 2 x 4 bytes an element, 256 MB at least.
    hw bench ops silu --kernel silu --no-peaks --seconds=0.002 --case 'silu(type=f32,shape=32x1024)' --json
    json "{r['sets'] for r in d['results'] if not r['cold']} == {1}"
    json "all(r['sets'] * 2 * 4 * 32 * 1024 > 250e6 for r in d['results'] if r['cold'])"
    hw bench ops silu --no-peaks --seconds=0.002 --case 'silu(type=f32,shape=3x129)'
    succeeds
    says ' +us +p10 +p90 +GB/s +GFLOP/s +peak .*'
    says ' +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ .*silu\(.*'
    hw bench ops silu --no-peaks --seconds=0.002 --case 'silu(type=f32,shape=3x129)' --csv
    succeeds
    [[ ${lines[0]} == bench,op,kernel,case,*time.median* ]]
}

@test "ops has no table for a kernel that is not there" {
    needs_cpu
    hw bench ops matmul -k nosuch -d cpu:0 --no-peaks
    fails 1 "nosuch: cpu:0 has no kernel of that name for matmul; 'hw devices --kernels' lists them"
    hw bench ops matmul -k silu -d cpu:0 --no-peaks
    fails 1 "silu: cpu:0 has no kernel of that name for matmul"
    hw bench ops -k nosuch -d cpu:0 --no-peaks
    fails 1 "nosuch: cpu:0 has no kernel of that name; "
}

@test "ops compares what a cache holds with how fast it is read" {
    needs_cpu
    hw bench ops silu --kernel silu --seconds=0.002 --case 'silu(type=f32,shape=3x129)' --json
    succeeds
    json "all(c['bytes'] > 0 and c['read'] > 0 for c in d['results'][0]['caches'])"
    # Linux may not say what caches there are.
    json "all((r['peak'] or 0) > 0 for r in d['results'][1:] if r['cold'] or d['results'][0]['caches'])"
    json "any(not r['cold'] for r in d['results'][1:])"
}

@test "ops measures calls of a graph" {
    needs_cpu
    hw bench ops silu --kernel silu --graph --no-peaks --seconds=0.002 --case 'silu(type=f32,shape=32x1024)' --json
    succeeds
    json "[(r['graph'], r['cold']) for r in d['results']] == [(True, True)]"
    json "all(r['sets'] == 256 and r['time']['median'] > 0 for r in d['results'])"
    hw bench ops silu --kernel silu --graph --no-peaks --seconds=0.002 --case 'silu(type=f32,shape=32x1024)'
    says '.* graph, silu'
}

@test "an unknown measurement, op or device" {
    hw bench dispach
    fails 2 "did you mean 'dispatch'"
    hw bench dispatch slu
    fails 2 "did you mean 'silu'"
    hw bench ops slu
    fails 2 "did you mean 'silu'"
    [ -z "$output" ] # nothing was printed before
    hw bench ops --seconds=-1
    fails 2 "must be more than 0"
    hw bench open twice
    fails 2 "twice"
    for product in bf16:4x4 bf16:4x4x4x4 q8_0:4x4x4 bf16:0x4x4 bf16:4x4x4000000 4x4x4 \
        f32:99999999999999999999x1x1; do
        hw bench products "${product/q8_0/i8}"
        fails 2 "a product is TYPE:MxNxK, .*; K must be whole blocks; M, N and K are 1 to 1048576"
    done
    hw bench rival
    fails 2 "build/tools/bench/hw-rival"
    hw bench copy --device nonsense
    fails 1 "nonsense"
}

@test "products are measured as stored and packed" {
    needs_cpu
    HW_PRECISION=int8 hw bench products -d cpu:0 -t 0.01 f32:1x96x64 q4_0:2x96x64 --json
    succeeds
    json "{(r['type'], r['m']) for r in d['results'] if not r['packed']} == {('f32', 1), ('q4_0', 2)}"
    # A processor without AVX2 packs nothing.
    json "len(d['results']) in (2, 4) and all(r['time']['median'] > 0 for r in d['results'])"
    json "all(r['share'] > 0 and r['limit'] in ('memory', 'arithmetic') for r in d['results'])"
    hw bench products -d cpu:0 -t 0.01 f32:1x96x64
    succeeds
    says '  f32 +1x96x64 +as stored( +[0-9.]+){5} +[0-9.]+% [a-z]+'
    hw bench products q4_0:1x64x33
    fails 2 "K must be whole blocks"
    hw bench products i8:1x64x64
    fails 2 "a product is TYPE:MxNxK"
}

@test "without a device there is nothing to measure" {
    for measurement in dispatch copy open overhead; do
        HW_BACKENDS=nonsense hw bench "$measurement" --repetitions=2
        fails 1 "nonsense"
    done
}

@test "threads measures what sharing an op costs" {
    needs_cpu
    hw bench threads --repetitions=2
    succeeds
    says ' +4096 +[0-9]+ +[0-9]+ +-?[0-9]+ +-?[0-9]+ +-?[0-9]+'
    hw bench threads --repetitions=2 --json
    succeeds
    json "[r['elements'] for r in d['results']] == [4096, 8192, 16384]"
    json "all(r['one'] > 0 and r['two'] > 0 and 'median' in r['cost'] for r in d['results'])"
}

@test "peaks measures the processor, its caches and memory" {
    HW_THREADS=2 hw bench peaks --seconds=0.002 --json
    succeeds
    json "[r['what'] for r in d['results']][0] == 'f32' and d['results'][-1]['what'] == 'read memory'"
    json "all(r['one'] > 0 and r['all'] > 0 and r['threads'] == 2 for r in d['results'])"
    json "all((r['unit'] == 'GB/s') == (r['bytes'] > 0) and r['by'] for r in d['results'])"
    HW_THREADS=1 hw bench peaks --seconds=0.002
    succeeds
    says ' +f32 +[0-9.]+ +[0-9.]+ GOP/s .*'
    says ' +read memory +[0-9.]+ +[0-9.]+ GB/s +[0-9]+ MiB .*'
    hw bench peaks what
    fails 2 'hw bench: what: unexpected argument.*'
}
