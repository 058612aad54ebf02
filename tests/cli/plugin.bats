#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# hw plugin lock: what it writes, and what the library says of a directory with a plugins.lock.

load common

setup_plugins()
{
    needs_cpu
    cd "$BATS_TEST_TMPDIR" || return
    plugins=$BATS_TEST_TMPDIR/plugins
    mkdir "$plugins"
    cp "$PLUGINS/hw_cpu.so" "$plugins"
    export HW_PLUGIN_PATH_ONLY=$plugins HW_CACHE_DIR=$BATS_TEST_TMPDIR/cache
}

# reason: that of the CPU plugin, and whether the lock lists it.
reason()
{
    hw explain --json
    printf '%s\n' "$output" | python3 -c '
import json, sys
file = json.load(sys.stdin)["candidates"][0]
print(file["reason"], file["locked"])'
}

@test "sha256sum agrees with the lock" {
    setup_plugins
    touch "$plugins/hw_Bad.so" "$plugins/other.so" "$plugins/hw_.so"
    printf 'text' >"$plugins/hw_b-2.so"
    hw plugin lock "$plugins"
    succeeds
    says "[0-9a-f]{16}\.\.\.  hw_cpu.so"
    says "$plugins/plugins.lock lists 2 plugins\."
    (cd "$plugins" && sha256sum hw_b-2.so hw_cpu.so) | cmp - "$plugins/plugins.lock"
    [ "$(stat -c %a "$plugins/plugins.lock")" = 644 ]
    hw plugin lock "$plugins" --json
    json 'len(d["files"]) == 2 and d["files"][1]["file"] == "hw_cpu.so" and len(d["files"][1]["sha256"]) == 64'
    [ "$(find "$plugins" -type f | wc -l)" -eq 6 ] # no part is left
}

@test "a digest of every length is that of sha256sum" {
    cd "$BATS_TEST_TMPDIR" || return
    mkdir lengths
    for length in 0 1 55 56 57 63 64 65 119 120 16383 16384 16385 100000; do
        head -c "$length" /dev/urandom >"lengths/hw_$length.so"
    done
    hw plugin lock lengths
    succeeds
    (cd lengths && sha256sum -c --strict --quiet plugins.lock)
}

@test "what is locked is loaded, what was changed is not" {
    setup_plugins
    [ "$(reason)" = "None False" ]
    hw plugin lock "$plugins"
    [ "$(reason)" = "None True" ]
    printf 'x' >>"$plugins/hw_cpu.so"
    [ "$(reason)" = "lock-mismatch False" ]
    hw status
    [[ $output == *"hw plugin lock"* ]]
    hw plugin lock "$plugins"
    [ "$(reason)" = "None True" ]
    export HW_TRUST=off
    printf 'x' >>"$plugins/hw_cpu.so"
    [ "$(reason)" = "lock-mismatch False" ]
    rm "$plugins/plugins.lock"
    [ "$(reason)" = "None False" ]
}

@test "a link that is listed leads to a plugin that is tried" {
    setup_plugins
    ln -s "$TEST_PLUGINS/hw_null.so" "$plugins/hw_null.so"
    hw plugin lock "$plugins"
    for probe in inproc child; do
        HW_TRUST=off HW_PROBE=$probe hw explain null --json
        json 'd["candidates"][0]["reason"] is None and d["candidates"][0]["locked"]'
    done
}

@test "what is not listed is not loaded" {
    setup_plugins
    : >"$plugins/plugins.lock"
    [ "$(reason)" = "not-locked False" ]
}

@test "a damaged lock locks everything" {
    setup_plugins
    hw plugin lock "$plugins"
    cp "$plugins/plugins.lock" good
    while read -r change; do
        sed "$change" good >"$plugins/plugins.lock"
        echo "$change: $(reason)"
        [ "$(reason)" = "bad-lock False" ]
    done <<'EOF'
p
s/^.//
s/$/\n/
s/  / /
s/^./X/
s/hw_/..\/hw_/
s/hw_cpu.so$//
EOF
    truncate -s -1 "$plugins/plugins.lock"
    [ "$(reason)" = "bad-lock False" ]
    head -c 300000 /dev/zero >"$plugins/plugins.lock"
    [ "$(reason)" = "bad-lock False" ]
}

@test "a lock that others can write, or that leads nowhere, locks everything" {
    setup_plugins
    hw plugin lock "$plugins"
    chmod o+w "$plugins/plugins.lock"
    [ "$(reason)" = "untrusted-mode False" ]
    ln -sf nowhere "$plugins/plugins.lock"
    [ "$(reason)" = "missing False" ]
}

@test "an error names the file, and leaves the old lock" {
    setup_plugins
    hw plugin lock "$plugins"
    cp "$plugins/plugins.lock" before
    mkdir "$plugins/hw_x.so"
    hw plugin lock "$plugins"
    fails 1 "$plugins/hw_x.so: is not a regular file"
    cmp before "$plugins/plugins.lock"
    hw plugin lock nosuch
    fails 1 "nosuch: No such file or directory"
    hw plugin lock
    fails 2 "lock: a directory is missing"
    hw plugin
    fails 2 "an action is missing"
    hw plugin lok "$plugins"
    fails 2 "did you mean 'lock'"
}
