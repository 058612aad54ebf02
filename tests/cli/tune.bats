#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# hw tune and hw explain --op, with a device that is slow to reach (tests/plugins/distant.c).

load common

distant()
{
    needs_cpu
    export HW_PLUGIN_PATH=$TEST_PLUGINS HW_BACKENDS='distan*,cpu' HW_THREADS=1 HW_PROBE=inproc
    export HW_CACHE_DIR=$BATS_TEST_TMPDIR/cache
}

# decides DEVICE SHAPE: where a product is computed.
decides()
{
    hw explain --op matmul --shape "$2" --json
    [ "$status" -eq 0 ]
    json "'$1' in ('', d['device'])" "d['own']['source'] == d['cpu']['source'] == '${3-measured}'"
}

# tune ARGUMENT...: keeps all figures, because the machine may be busy.
tune()
{
    hw tune --unsteady "$@"
}

# The profile of the distant device.
profile()
{
    echo "$HW_CACHE_DIR"/profiles.d/distant-????????????????
}

# resigned FILE: with the right checksum again, after it was edited.
resigned()
{
    python3 - "$1" <<'END'
import sys
data = open(sys.argv[1], "rb").read()
sum = 0xcbf29ce484222325
for byte in data[29:]:
    sum = (sum ^ byte) * 0x100000001b3 & (1 << 64) - 1
open(sys.argv[1], "wb").write(data[:13] + b"%016x" % sum + data[29:])
END
}

@test "tune measures where the device and the CPU take turns, and ops are routed by it" {
    distant
    decides distant:0 512x512x512 estimated
    tune --quick --op matmul
    [ "$status" -eq 0 ]
    says 'matmul +f32 +many +.*'
    [[ $output != *"continues after"* ]]
    decides cpu:0 32x32x32
    json "d['cpu']['total'] * 1.1 <= d['own']['total']"
    # Which is faster here depends on the machine, and on how both were compiled.
    decides '' 512x512x512
    json "(d['device'] == 'cpu:0') == (d['cpu']['total'] * 1.1 <= d['own']['total'])" \
        "d['own']['measured'][:2] == '20'" \
        "d['own']['upload'] > 0 and d['own']['download'] > 0 and d['own']['launch'] > 250"
    HW_ROUTE=device decides distant:0 32x32x32
    HW_BACKENDS=distant,cpu decides distant:0 32x32x32
    [[ $output == *"named"* ]]
    hw tune show --quick --json
    succeeds
    json "[r['device_from'] != '32x32x32' for r in d['devices'][0]['rows']
        if (r['op'], r['type'], r['form']) == ('matmul', 'f32', 'many')] == [True]"
    [ ! -e "$(profile).part" ]
    [ "$(stat -c %a "$(profile)")" = 600 ]
}

@test "tune does not keep figures that differ from one repetition to the next" {
    distant
    for n in 2 3; do
        HW_TEST_UNSTEADY=$n hw tune --quick --op silu
        [ "$status" -eq 1 ]
        # Where other programs run, it may be copies that already are.
        [[ $stderr =~ "distant:0: "(silu/f32/many|up|down)" is not kept: the times of one call vary by "[0-9]+" %" ]]
        [[ $stderr =~ [0-9]+" row"s?" "(is|are)" not kept, because something else runs" ]]
        run ! grep -qs ^silu/f32/many "$(profile)"
    done
    hw explain --op silu --shape 4096x1024
    says 'distant:0 .* estimated'
    [[ $output =~ "distant:0: defaults of the library, not measured here:" ]]
    tune --quick --op silu
    [ "$status" -eq 0 ]
    grep -q ^silu/f32/many "$(profile)"
}

@test "tune says that other programs run" {
    distant
    local others=() i
    for ((i = 0; i < $(nproc); i++)); do
        yes >/dev/null 3>&- &
        others+=($!)
    done
    tune --quick --op silu
    kill "${others[@]}"
    [ "$status" -eq 0 ]
    [[ $stderr =~ "other programs used "[0-9]+" % of the processors meanwhile" ]]
}

@test "tune goes on after kill -9 where it was" {
    distant
    local killed i
    "$COMMAND" tune --unsteady --op silu >/dev/null 2>&1 3>&- &
    killed=$!
    for ((i = 0; i < 6000; i++)); do
        sleep 0.05
        if grep -qs '^up ' "$HW_CACHE_DIR"/profiles.d/distant-*.part; then
            break
        fi
    done
    kill -9 "$killed"
    wait "$killed" || true
    cp "$HW_CACHE_DIR"/profiles.d/distant-*.part "$BATS_TEST_TMPDIR/part"
    [ ! -e "$(profile)" ]

    tune --op silu
    [ "$status" -eq 0 ]
    says 'distant:0: continues after [0-9]+ rows of an interrupted run'
    [ ! -e "$(profile).part" ]
    # What was measured before has not been measured again, and the rest has.
    grep -E '^(up|down|wait|silu.*) ' "$BATS_TEST_TMPDIR/part" >"$BATS_TEST_TMPDIR/rows"
    [ -s "$BATS_TEST_TMPDIR/rows" ]
    while read -r row; do
        grep -qxF -- "$row" "$(profile)"
    done <"$BATS_TEST_TMPDIR/rows"
    for row in up down wait silu/f32/many; do
        [ "$(grep -c "^$row " "$(profile)")" -eq 1 ]
    done

    # The figures of other ops are kept, and those of copies.
    grep -E '^(up|down|wait) ' "$(profile)" >"$BATS_TEST_TMPDIR/basics"
    tune --quick --op add
    [ "$status" -eq 0 ]
    grep -E '^(up|down|wait) ' "$(profile)" | cmp - "$BATS_TEST_TMPDIR/basics"
    grep -q ^silu/f32/many "$(profile)"
    grep -q ^silu/f32/many "$HW_CACHE_DIR"/profiles.d/cpu-*
    grep -q ^add/f32/many "$HW_CACHE_DIR"/profiles.d/cpu-*
}

@test "Ctrl-C ends tune, and says how to go on" {
    distant
    local running i
    # A shell without job control makes its background jobs ignore it.
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$COMMAND" tune --unsteady --quick 2>"$BATS_TEST_TMPDIR/said" >/dev/null 3>&- &
    running=$!
    for ((i = 0; i < 6000; i++)); do
        sleep 0.05
        if ls "$HW_CACHE_DIR"/profiles.d/*.part >/dev/null 2>&1; then
            break
        fi
    done
    kill -INT "$running"
    # Not by `run`, whose subshell has no such child to wait for.
    status=0
    wait "$running" || status=$?
    echo "status $status"
    cat "$BATS_TEST_TMPDIR/said"
    [ "$status" -eq 1 ]
    [ "$(grep -c . "$BATS_TEST_TMPDIR/said")" -eq 1 ]
    grep -q "^hw tune: interrupted at [0-9]* %; the figures so far are kept" "$BATS_TEST_TMPDIR/said"
    ls "$HW_CACHE_DIR"/profiles.d/*.part
}

@test "a profile of another driver, a damaged one and a link are ignored, and tune show says why" {
    distant
    tune --quick --op silu
    [ "$status" -eq 0 ]
    HW_TEST_DRIVER=2 hw tune show --quick
    [ "$status" -eq 1 ]
    [[ $stderr == *'it was measured with "driver 1", and now there is "driver 2"'* ]]
    HW_TEST_DRIVER=2 hw explain --op silu --shape 4096x1024
    [ "$status" -eq 0 ]
    says 'distant:0 .* estimated'
    [[ $output == *'"driver 1"'* ]]
    cp "$(profile)" "$BATS_TEST_TMPDIR/whole"
    sed -i 's/silu.f32/silo.f32/' "$(profile)"
    hw tune show --quick
    [ "$status" -eq 1 ]
    [[ $stderr == *checksum* ]]
    # Nothing takes no time.
    sed -E 's/^wait [0-9]+ ([0-9]+ 0)$/wait 0 \1/' "$BATS_TEST_TMPDIR/whole" >"$(profile)"
    resigned "$(profile)"
    hw tune show --quick
    [ "$status" -eq 1 ]
    [[ $stderr == *"is ignored: "* ]]
    local path
    path=$(profile)
    rm "$path"
    ln -s "$BATS_TEST_TMPDIR/whole" "$path"
    hw tune show --quick
    [ "$status" -eq 1 ]
    [[ $stderr == *"symbolic link"* ]]
    hw tune clear distant
    succeeds
    says 'Removed 1 profile.'
    [ -e "$BATS_TEST_TMPDIR/whole" ]
    hw tune clear --json
    succeeds
    json "d['removed'] == 1"
}

@test "explain --op has the ops, the shapes and the types that it takes" {
    distant
    for op in matmul matmul_id attention conv2d get_rows set_rows rope copy dot silu add top_k argmax; do
        hw explain --op "$op"
        [ "$status" -eq 0 ]
        says "$op\\(.* on host memory"
        says 'Decision: .*'
    done
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

@test "tune refuses what it does not know, and a place where it can keep nothing" {
    distant
    hw tune --op silo
    fails 2 "silo: no such op; did you mean 'silu'"
    hw tune sho
    fails 2 "did you mean 'show'"
    hw tune -d nosuch
    [ "$status" -eq 1 ]
    HW_CACHE_DIR=off hw tune --quick --op silu
    [ "$status" -eq 1 ]
    [[ $stderr == *"set HW_CACHE_DIR"* ]]
    : >"$BATS_TEST_TMPDIR/file"
    HW_CACHE_DIR=$BATS_TEST_TMPDIR/file hw tune --quick --op silu
    [ "$status" -eq 1 ]
    hw tune show
    [ "$status" -eq 1 ]
    says 'distant:0: has no figures .*'
}
