#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Settings: their values, their sources, and one clear error for each invalid value.

load common

@test "env lists all settings, with meaning and source" {
    needs_cpu
    hw env
    succeeds
    for name in BACKENDS DISABLE REQUIRE FALLBACK PLUGIN_PATH TRUST PROBE PROBE_TIMEOUT \
        THREADS PRECISION MEMORY_LIMIT CONFIG CACHE_DIR KERNEL LOG SHADOW WORKER; do
        says "HW_$name +.+ \\(default\\)"
    done
    hw env --json
    succeeds
    json "len(d['settings']) == 17 and all(s['meaning'] for s in d['settings'])"
}

@test "env shows values from the environment" {
    needs_cpu
    HW_MEMORY_LIMIT=8G HW_FALLBACK=error hw env
    succeeds
    says 'HW_MEMORY_LIMIT +8G +\(environment\)'
    says 'HW_FALLBACK +error +\(environment\)'
    HW_FALLBACK=error hw env HW_FALLBACK --json
    json "[(s['variable'], s['value'], s['source']) for s in d['settings']] == [
        ('HW_FALLBACK', 'error', 'HW_FALLBACK')]"
}

@test "env takes a name as the file writes it, and prints CSV" {
    needs_cpu
    hw env fallback
    succeeds
    says 'HW_FALLBACK +warn +\(default\)'
    hw env fallbakc
    fails 2 "HW_FALLBAKC: no such setting; did you mean 'HW_FALLBACK'"
    hw env --csv
    succeeds
    [ "$(python3 -c 'import csv, sys; print(len(list(csv.DictReader(sys.stdin))))' <<<"$output")" = 17 ]
}

@test "env shows values from a file, and its line" {
    needs_cpu
    printf '# mine\nfallback = allow\n' >"$BATS_TEST_TMPDIR/hw.conf"
    HW_CONFIG=$BATS_TEST_TMPDIR/hw.conf hw env
    succeeds
    says "HW_FALLBACK +allow +\\($BATS_TEST_TMPDIR/hw.conf:2\\)"
}

@test "env shows what OMP_NUM_THREADS decides" {
    needs_cpu
    OMP_NUM_THREADS=3 hw env HW_THREADS
    succeeds
    says 'HW_THREADS +3 +\(OMP_NUM_THREADS\)'
    OMP_NUM_THREADS=3 HW_THREADS=2 hw env HW_THREADS
    says 'HW_THREADS +2 +\(environment\)'
}

@test "an unknown kernel row is refused with its source; portable may be asked for one op" {
    needs_cpu
    HW_KERNEL=nope hw bench dispatch --repetitions=20
    fails 1 'hw bench: dispatch: kernel \(HW_KERNEL\): .*kernel "nope": there is no such row.*'
    HW_KERNEL=nope hw verify --quick cpu
    fails 1 'hw verify: cpu:0: kernel \(HW_KERNEL\): .*kernel "nope": there is no such row.*'
    HW_KERNEL=silly=portable hw bench dispatch --repetitions=20
    fails 1 '.*HW_KERNEL: "silly=portable" is not a value of HW_KERNEL.*'
    HW_KERNEL=silu=portable,matmul=portable hw bench dispatch --repetitions=20
    succeeds
}

@test "a kernel row that one device has does not keep others from being used" {
    needs_cpu
    mkdir "$BATS_TEST_TMPDIR/both"
    cp "$PLUGINS/hw_cpu.so" "$TEST_PLUGINS/hw_discrete.so" "$BATS_TEST_TMPDIR/both"
    export HW_PLUGIN_PATH=$BATS_TEST_TMPDIR/both:!
    # Only the CPU has a row named softmax; both have one named silu.
    for rows in softmax softmax=softmax,silu; do
        HW_KERNEL=$rows hw doctor
        says '(devices)? +✓ cpu:0 computes'
        says '(devices)? +✓ discrete:0 computes'
    done
    HW_LOG=info HW_KERNEL=softmax hw doctor
    [[ $stderr == *'discrete:0: kernel "softmax" is for other devices'* && $stderr != *'cpu:0: kernel "'* ]]
    HW_KERNEL=softmax,sofmax hw doctor
    [ "$status" -eq 1 ]
    says '.*✗ cpu:0: .*kernel "sofmax": there is no such row; .*softmax.*'
    says '.*✗ discrete:0: .*kernel "sofmax": there is no such row; .*'
    HW_KERNEL=silu=softmax hw doctor
    says '.*✗ cpu:0: .*kernel "silu=softmax": there is no such row; .*'
    HW_BACKENDS=discrete HW_KERNEL=softmax hw doctor
    says '.*✗ discrete:0: .*kernel "softmax": there is no such row; .*'
}

@test "status says that the trust checks are off" {
    needs_cpu
    HW_TRUST=off hw status
    says 'Warning: HW_TRUST=off \(HW_TRUST\): plugins are loaded no matter who can write to them'
    HW_TRUST=off hw explain --json
    json "len(d['warnings']) == 1"
}

@test "env warns of a variable that is not a setting, with the nearest name" {
    needs_cpu
    HW_BACKEND=cpu hw env
    [ "$status" -eq 0 ]
    says 'Warning: .*HW_BACKEND[^S].*HW_BACKENDS.*'
    HW_BACKEND=cpu hw status
    says 'Warning: .*HW_BACKENDS.*'
}

@test "env with an unknown setting" {
    hw env HW_BACKEND
    fails 2 "HW_BACKEND: no such setting; did you mean 'HW_BACKENDS'"
}

# wrong PATTERN: status, devices and a bench each exit with 1 and print the error once.
wrong()
{
    hw status
    [ "$status" -eq 1 ]
    says "Error: .*$1.*"
    [ "$(printf '%s\n' "$output" | grep -cE "^Error: .*$1")" -eq 1 ]
    hw devices
    fails 1 "$1"
    hw bench copy
    fails 1 "$1"
}

@test "an unknown backend" {
    needs_cpu
    export HW_BACKENDS=nonsense
    wrong 'HW_BACKENDS.*nonsense.*found: .*cpu'
    export HW_BACKENDS='cpu,[['
    wrong 'HW_BACKENDS'
    HW_BACKENDS='nonsense?,*' hw status
    [ "$status" -eq 0 ]
}

@test "a limit that is not a size" {
    export HW_MEMORY_LIMIT=8X
    wrong 'HW_MEMORY_LIMIT.*8X'
    export HW_MEMORY_LIMIT=99999999999999999999G
    wrong 'HW_MEMORY_LIMIT'
}

@test "an impossible number of threads" {
    for threads in -1 0x two 99999999999; do
        export HW_THREADS=$threads
        wrong "HW_THREADS.*$threads"
    done
}

@test "values that a setting does not have" {
    for setting in FALLBACK=perhaps TRUST=maybe PROBE=alien PROBE_TIMEOUT=soon PRECISION=fp31; do
        export "HW_${setting?}"
        wrong "HW_${setting%=*}.*${setting#*=}"
        hw env "HW_${setting%=*}"
        [ "$status" -eq 1 ]
        unset "HW_${setting%=*}"
    done
}

@test "an unknown log level" {
    HW_LOG=loud hw status
    [ "$status" -eq 1 ]
    says 'Error: .*HW_LOG.*loud.*'
}

@test "a required backend that is not there" {
    needs_cpu
    export HW_REQUIRE=nonsense
    wrong 'HW_REQUIRE.*nonsense'
}

@test "configuration files that are missing, alien or hostile" {
    export HW_CONFIG=$BATS_TEST_TMPDIR/none.conf
    wrong 'none.conf'
    export HW_CONFIG=$BATS_TEST_TMPDIR
    wrong "$BATS_TEST_TMPDIR"
    head -c 4096 "$COMMAND" >"$BATS_TEST_TMPDIR/alien.conf"
    export HW_CONFIG=$BATS_TEST_TMPDIR/alien.conf
    wrong 'alien.conf'
    head -c 3000000 /dev/zero | tr '\0' 'a' >"$BATS_TEST_TMPDIR/huge.conf"
    export HW_CONFIG=$BATS_TEST_TMPDIR/huge.conf
    wrong 'huge.conf'
    echo 'fallbakc = allow' >"$BATS_TEST_TMPDIR/typo.conf"
    export HW_CONFIG=$BATS_TEST_TMPDIR/typo.conf
    wrong 'typo.conf:1.*fallback'
    echo 'threads = many' >"$BATS_TEST_TMPDIR/value.conf"
    export HW_CONFIG=$BATS_TEST_TMPDIR/value.conf
    wrong 'value.conf:1.*many'
}

@test "a configuration file that others may write to" {
    echo 'fallback = allow' >"$BATS_TEST_TMPDIR/open.conf"
    chmod 666 "$BATS_TEST_TMPDIR/open.conf"
    export HW_CONFIG=$BATS_TEST_TMPDIR/open.conf
    wrong 'open.conf'
}
