#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# hw plugin: the output of show and check for files of any system; the result of lock, and the library's messages about
# a directory with a plugins.lock.

load common

setup_plugins()
{
    needs_cpu
    cd "$BATS_TEST_TMPDIR" || return
    plugins=$BATS_TEST_TMPDIR/plugins
    mkdir "$plugins"
    # A sanitizer's build consists mostly of debug information, and every command here computes the file's digest.
    strip --strip-debug -o "$plugins/hw_cpu.so" "$PLUGINS/hw_cpu.so"
    export HW_PLUGIN_PATH=$plugins:! HW_CACHE_DIR=$BATS_TEST_TMPDIR/cache
}

# reason: prints the CPU plugin's reason, and whether the lock lists the plugin.
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

@test "a locked plugin is loaded, a changed one is not" {
    setup_plugins
    [ "$(reason)" = "None False" ]
    hw plugin lock "$plugins"
    [ "$(reason)" = "None True" ]
    printf 'x' >>"$plugins/hw_cpu.so"
    [ "$(reason)" = "not-locked False" ]
    hw status
    [[ $output == *"hw plugin lock"* ]]
    hw plugin lock "$plugins"
    [ "$(reason)" = "None True" ]
    export HW_TRUST=off
    printf 'x' >>"$plugins/hw_cpu.so"
    [ "$(reason)" = "not-locked False" ]
    rm "$plugins/plugins.lock"
    [ "$(reason)" = "None False" ]
}

@test "a link that is listed leads to a plugin that is tried" {
    setup_plugins
    ln -s "$TEST_PLUGINS/hw_null.so" "$plugins/hw_null.so"
    hw plugin lock "$plugins"
    HW_TRUST=off hw explain null --json
    json 'd["candidates"][0]["reason"] is None and d["candidates"][0]["locked"]'
}

@test "a plugin that the lock does not list is not loaded" {
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
        [ "$(reason)" = "not-locked False" ]
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
    [ "$(reason)" = "not-locked False" ]
    head -c 300000 /dev/zero >"$plugins/plugins.lock"
    [ "$(reason)" = "not-locked False" ]
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

# far FILE NAME: copies a plugin for another system from the seeds of the fuzz targets.
far()
{
    cp "$BATS_TEST_DIRNAME/../fuzz/corpus/$1" "$BATS_TEST_TMPDIR/$2"
}

@test "show: a plugin for each system, without loading it" {
    cd "$BATS_TEST_TMPDIR" || return
    far pe/far-aarch64.dll hw_far.dll
    far macho/far-universal.dylib hw_far.dylib
    far elf/far-powerpc64.so hw_far.so
    hw plugin show hw_far.dll
    succeeds
    says '  name +far'
    says '  title +Far away'
    says '  ABI +1 to 1'
    says '  for +Windows, AArch64'
    says '  needs +msvcrt.dll: part of Windows'
    says '  opens +libfar.so.1: cannot be looked up here without --root'
    says '  loads here +no: built for Windows on AArch64, not for Linux on .*'
    hw plugin show hw_far.dylib --json
    succeeds
    json 'd["schema"] == 1 and d["format"] == "Mach-O" and d["system"] == "macOS" and not d["loadable"]' \
        'sorted(d["machines"]) == ["AArch64", "x86-64"] and d["libraries"] == ["/usr/lib/libSystem.B.dylib"]' \
        'd["reason"] is None and d["manifest"]["name"] == "far" and d["manifest"]["abi_max"] == 1' \
        'd["places"][0] == {"library": "/usr/lib/libSystem.B.dylib", "linked": True, "place": "system", "path": None,
         "message": "part of macOS"} and d["places"][1]["place"] == "unknown" and not d["places"][1]["linked"]'
    hw plugin show hw_far.so
    succeeds
    says '  for +Linux, POWER'
    [[ $output != *--root* ]]
}

# place NAME: prints the library's row of the report.
place()
{
    python3 -c '
import json, sys
rows = json.load(sys.stdin)["places"]
print(*[r["place"] + " " + (r["path"] or r["message"]) for r in rows if sys.argv[1] in r["library"]])' \
        "$1" <<<"$output"
}

@test "show: where Windows would find the libraries, in a tree that stands for its files" {
    cd "$BATS_TEST_TMPDIR" || return
    tree=$PWD/c
    mkdir -p "$tree/Windows/System32" "$tree/Program Files/Mine/plugins"
    far pe/far-needing.dll "c/Program Files/Mine/plugins/hw_far.dll"
    plugin=$tree/"Program Files/Mine/plugins/hw_far.dll"
    hw plugin show "$plugin"
    succeeds
    says '  needs +msvcrt.dll: part of Windows'
    says ' +far.dll: cannot be looked up here without --root'
    says ' +api-ms-win-core-file-l1-1-0.dll: part of Windows'
    hw plugin show --root c "$plugin"
    succeeds # the program may have it
    says ' +far.dll: not found, but perhaps beside the program \(--program\)'
    hw plugin show --root c --program 'program files/mine' "$plugin"
    [ "$status" -eq 1 ]
    says '  wrong +needs-library: it needs far.dll, which was not found in c'
    # File names are case-insensitive there. The plugin's own directory comes first.
    far pe/far-x86-64.dll "c/Program Files/Mine/FAR.DLL"
    far pe/far-x86-64.dll c/Windows/System32/VCRuntime140.dll
    hw plugin show --root c --program 'program files/mine' "$plugin" --json
    succeeds
    [ "$(place far.dll)" = "found $tree/Program Files/Mine/FAR.DLL" ]
    [ "$(place vcruntime)" = "found $tree/Windows/System32/VCRuntime140.dll" ]
    far pe/far-x86-64.dll "c/Program Files/Mine/plugins/Far.dll"
    hw plugin show --root c "$plugin" --json
    [ "$(place far.dll)" = "found $tree/Program Files/Mine/plugins/Far.dll" ]
    hw plugin show "$plugin" --json # this place is known without a tree
    [ "$(place far.dll)" = "found $tree/Program Files/Mine/plugins/Far.dll" ]
    # A library for another processor stops the search.
    far pe/far-aarch64.dll "c/Program Files/Mine/plugins/Far.dll"
    hw plugin check --root c --program 'Program Files/Mine' "$plugin"
    [ "$status" -eq 1 ]
    says ".*hw_far.dll: needs-library: it needs far.dll, which does not fit in c"
    says " +far.dll: $tree/Program Files/Mine/plugins/Far.dll: built for Windows on AArch64"
    echo text >"c/Program Files/Mine/plugins/Far.dll"
    hw plugin show --root c "$plugin"
    says " +far.dll: .*/Far.dll: not an object file"
}

@test "show: where macOS would find the libraries, in a tree that stands for its files" {
    cd "$BATS_TEST_TMPDIR" || return
    tree=$PWD/mac plugin=$PWD/mac/opt/mine/bin/hw_far.dylib
    framework=Library/Frameworks/Far.framework
    mkdir -p mac/opt/mine/bin mac/opt/far/lib mac/opt/mine/lib mac/Applications/Far.app/Contents/MacOS \
        mac/$framework/Versions/A
    far macho/far-needing.dylib mac/opt/mine/bin/hw_far.dylib
    hw plugin show --root mac --program /Applications/Far.app/Contents/MacOS "$plugin"
    [ "$status" -eq 1 ]
    says '  needs +/usr/lib/libSystem.B.dylib: part of macOS'
    says ' +@rpath/libfar.1.dylib: not found'
    says ' +@executable_path/../lib/libprogram.dylib: not found'
    says '  opens +libfar.so.1: not found'
    says '  wrong +needs-library: it needs @rpath/libfar.1.dylib, which was not found in mac'
    # A link with an absolute path starts at the root of the tree.
    far macho/far-universal.dylib mac/opt/far/lib/libfar.dylib
    ln -s /opt/far/lib/libfar.dylib mac/opt/far/lib/libfar.1.dylib
    mkdir -p mac/Applications/Far.app/Contents/lib
    far macho/far-x86-64.dylib mac/Applications/Far.app/Contents/lib/libprogram.dylib
    far macho/far-x86-64.dylib mac/$framework/Versions/A/Far
    hw plugin show --root mac --program /Applications/Far.app/Contents/MacOS "$plugin" --json
    succeeds
    [ "$(place rpath)" = "found $tree/opt/far/lib/libfar.1.dylib" ]
    [ "$(place program)" = "found $tree/Applications/Far.app/Contents/MacOS/../lib/libprogram.dylib" ]
    [ "$(place framework)" = "found $tree/$framework/Versions/A/Far" ]
    hw plugin show --root mac "$plugin" --json
    succeeds
    [ "$(place program)" = "unknown not found, but perhaps beside the program (--program)" ]
    # The plugin's own path comes first, but unsuitable files in it are skipped.
    echo text >mac/opt/mine/lib/libfar.1.dylib
    hw plugin show --root mac "$plugin" --json
    [ "$(place rpath)" = "found $tree/opt/far/lib/libfar.1.dylib" ]
    far macho/far-x86-64.dylib mac/opt/mine/lib/libfar.1.dylib
    hw plugin show --root mac "$plugin" --json
    [ "$(place rpath)" = "found $tree/opt/mine/bin/../lib/libfar.1.dylib" ]
    # dyld's variables take precedence.
    mkdir mac/elsewhere
    far macho/far-x86-64.dylib mac/elsewhere/libfar.1.dylib
    DYLD_LIBRARY_PATH=/elsewhere hw plugin show --root mac "$plugin" --json
    [ "$(place rpath)" = "found $tree/elsewhere/libfar.1.dylib" ]
}

@test "show: the root of this system stands for the files of another" {
    cd "$BATS_TEST_TMPDIR" || return
    far pe/far-needing.dll hw_far.dll
    mkdir bin
    far pe/far-x86-64.dll bin/far.dll
    hw plugin show --root / --program "$PWD/bin" hw_far.dll --json
    [ "$(place far.dll)" = "found $PWD/bin/far.dll" ]
    far pe/far-x86-64.dll far.dll
    hw plugin show --root / hw_far.dll --json
    [ "$(place far.dll)" = "found $PWD/far.dll" ]
}

@test "show: a tree that is none" {
    cd "$BATS_TEST_TMPDIR" || return
    far pe/far-needing.dll hw_far.dll
    hw plugin show --root nowhere hw_far.dll
    fails 2 "--root nowhere: it is not a directory that can be read"
    hw plugin show --program bin hw_far.dll
    fails 2 "--program is a directory below that of --root, which is missing"
}

@test "show: the plugins of the build are for this system" {
    needs_cpu
    hw plugin show "$PLUGINS/hw_cpu.so"
    succeeds
    says '  name +cpu'
    says '  for +Linux, .*'
    says "  loads here +it is for this system.*"
}

@test "show: what is wrong, in words and as the exit status" {
    cd "$BATS_TEST_TMPDIR" || return
    far pe/far-x86-64.dll hw_far.so
    hw plugin show hw_far.so
    [ "$status" -eq 1 ]
    says '  wrong +wrong-machine: built for Windows on x86-64, where a plugin is named hw_<name>.dll'
    far pe/far-x86-64.dll hw_near.dll
    hw plugin show hw_near.dll
    [ "$status" -eq 1 ]
    says '  wrong +bad-manifest: its manifest has the name "far", so it must be named hw_far.dll'
    far pe/far-x86-64.dll any-name
    hw plugin show any-name
    succeeds
    head -c 2000 any-name >hw_far.dll
    hw plugin show hw_far.dll --json
    [ "$status" -eq 1 ]
    json 'd["reason"] == "malformed" and d["machines"] == ["x86-64"]'
    echo text >hw_text.so
    hw plugin show hw_text.so
    [ "$status" -eq 1 ]
    says '  wrong +not-an-object: not an object file'
    for file in nowhere:missing .:unreadable; do
        hw plugin show "${file%%:*}"
        [ "$status" -eq 1 ]
        says "  wrong +${file##*:}: .*"
    done
    hw plugin show
    fails 2 "show: a file is missing"
}

@test "check: each file of a directory that is named like a plugin" {
    mkdir "$BATS_TEST_TMPDIR/many"
    cd "$BATS_TEST_TMPDIR/many" || return
    far pe/far-x86-64.dll many/hw_far.dll
    far elf/far-aarch64.so many/hw_far.so
    touch README libfar.so
    hw plugin check .
    succeeds
    says '✓ ./hw_far.dll: far, ABI 1 to 1, for Windows on x86-64'
    says '✓ ./hw_far.so: far, ABI 1 to 1, for Linux on AArch64'
    says '2 of 2 files named like a plugin are sound plugins.'
    far pe/far-x86-64.dll many/hw_wrong.so
    hw plugin check . --json
    [ "$status" -eq 1 ]
    json 'd["sound"] == 2 and d["unsound"] == 1 and d["files"][2]["reason"] == "wrong-machine"'
    hw plugin check hw_far.so
    succeeds
    rm hw_*
    hw plugin check .
    [ "$status" -eq 1 ]
}

@test "check: ten thousand files of junk" {
    mkdir "$BATS_TEST_TMPDIR/junk"
    cd "$BATS_TEST_TMPDIR/junk" || return
    seq 10000 | sed 's/.*/hw_&.so/' | xargs touch
    hw plugin check . --json
    [ "$status" -eq 1 ]
    json 'd["unsound"] == 10000 and all(f["reason"] == "malformed" for f in d["files"])'
}

# section NAME address|offset: prints the section's position in the CPU plugin, in hexadecimal.
section()
{
    readelf -SW "$plugins/hw_cpu.so" |
        sed -nE "s/.* \\$1 +[A-Z_]+ +([0-9a-f]+) +([0-9a-f]+) .*/\\$([ "$2" = offset ] && echo 2 || echo 1)/p"
}

@test "a damaged plugin of the library's own build ends hw-probe, and not the command" {
    setup_plugins
    [ "$(reason)" = "None False" ]
    table=$(section .rela.dyn offset)
    row=$(readelf -rW "$plugins/hw_cpu.so" | grep -E '^[0-9a-f]{16} ' | grep -n "^$(section .init_array address) ") ||
        skip "not applicable: no relocation of this kind"
    # The first constructor lies far outside of the plugin.
    printf '\0\0\0\0\0\177\0\0' | dd of="$plugins/hw_cpu.so" bs=1 seek=$((0x$table + 24 * (${row%%:*} - 1) + 16)) \
        conv=notrunc status=none
    hw status
    [ "$status" -eq 1 ]
    [[ $(reason) =~ ^(crash|exit|load-failed)\ False$ ]]
    hw plugin check "$plugins" # reading does not look at constructors
    succeeds
}

@test "without hw-probe, the library's own plugins are used, and no others" {
    setup_plugins
    mkdir lib
    cp "$(dirname "$COMMAND")/../core/libhw.so.0" lib
    cp "$TEST_PLUGINS/hw_null.so" "$plugins"
    export LD_LIBRARY_PATH=$BATS_TEST_TMPDIR/lib
    hw explain --json
    json '{c["name"]: c["reason"] for c in d["candidates"]} == {"cpu": None, "null": "no-helper"}'
    HW_LOG=warn hw devices
    [[ $stderr == *"hw_cpu.so is loaded without being tried: "*"hw-probe"*". Remedy: Install the library again"* ]]
}

# Loads the library at the path, opens a context in another directory, and prints the plugins' reasons.
opened_elsewhere()
{
    python3 -c '
import ctypes, json, os, sys
library = ctypes.CDLL(sys.argv[1])
os.chdir("/")
context, text = ctypes.c_void_p(), ctypes.create_string_buffer(1 << 20)
assert library.hw_open(None, ctypes.byref(context)) == 0
library.hw_explain(context, text, ctypes.c_size_t(len(text)))
print(*[c["name"] + ":" + str(c["reason"]) for c in json.loads(text.value)["candidates"]])
library.hw_close(context)' "$1"
}

# Puts the library into lib, with the files that are installed beside it.
setup_library()
{
    setup_plugins
    core=$(dirname "$COMMAND")/../core
    mkdir lib
    cp "$core/libhw.so.0" lib
    cp "$core/hw-probe" lib
    mv "$plugins" lib/hw
    cp "$TEST_PLUGINS/hw_null.so" lib/hw
    unset HW_PLUGIN_PATH
}

@test "a library found by a relative path finds the files beside it" {
    setup_library
    for path in lib ./lib "$PWD/lib" ../"$(basename "$PWD")/lib"; do
        LD_LIBRARY_PATH=$path hw explain --json
        json '{c["name"]: c["reason"] for c in d["candidates"]} == {"cpu": None, "null": None}'
    done
}

@test "a library opened by a relative path finds the files beside it from another directory" {
    setup_library
    if ldd lib/libhw.so.0 | grep -q 'lib[a-z]*san\.so'; then
        skip "not applicable: python3 lacks the run time of the sanitizer"
    fi
    [ "$(opened_elsewhere lib/libhw.so.0)" = "cpu:None null:None" ]
}
