#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# hw cache: shows or removes the files in HW_CACHE_DIR, and nothing else.

load common

# fnv1a TEXT: sets $hash to its FNV-1a of 64 bits.
fnv1a()
{
    local i byte sum=$((0xcbf29ce484222325))
    for ((i = 0; i < ${#1}; i++)); do
        printf -v byte %d "'${1:i:1}"
        sum=$(((sum ^ byte) * 0x100000001b3))
    done
    printf -v hash %016x "$sum"
}

# entry NAME OUTCOME KIND WRITTEN EXPIRES: a verdict as core/cache/cache.h describes it.
entry()
{
    local key=$'file 1:2 3 bytes 4.5 6.7 /a directory/hw_'$1$'.so\nversion 1\n'
    local rest=" $1 $2 $3 0 $4 $5 ${#key} 7"$'\n'$key"verdict" hash
    fnv1a "$rest"
    mkdir -p "$cache/verdicts.d"
    printf 'hw-verdict 1 %s%s' "$hash" "$rest" >"$cache/verdicts.d/$1-0123456789abcdef"
}

# program PLUGIN NUMBER: a compiled program of 4 bytes.
program()
{
    mkdir -p "$cache/$1"
    printf 'abc\n' >"$cache/$1/$(printf '%064x' "$2")"
}

setup_cache()
{
    export HW_CACHE_DIR=$BATS_TEST_TMPDIR/cache
    cache=$HW_CACHE_DIR
    now=$(date +%s)
    entry good ok 0 $((now - 7300)) 0
    entry bad crash 1 $((now - 5)) $((now + 55))
    entry slow hang 2 $((now - 50)) $((now - 40))
    program cuda 1
    program cuda 2
    program good 3
}

@test "nothing is kept at first, and looking makes no directory" {
    unset XDG_CACHE_HOME
    hw cache
    succeeds
    says "$HOME/.cache/hw \\(default\\)"
    says "Nothing is kept there."
    hw cache clear
    succeeds
    says "Removed 0 files, 0 bytes."
    [ ! -e "$HOME/.cache" ]
}

@test "show lists verdicts and programs" {
    setup_cache
    hw cache
    succeeds
    says "$cache \\(HW_CACHE_DIR\\)"
    says "good +ok +2 h +if it changes +[0-9]+ bytes +/a directory/hw_good.so"
    says "bad +crash +[0-9]+ s +in [0-9]+ s +[0-9]+ bytes +/a directory/hw_bad.so"
    says "slow +hang +[0-9]+ s +at once +[0-9]+ bytes +/a directory/hw_slow.so"
    says "cuda: 2 compiled programs, 8 bytes"
    says "good: 1 compiled program, 4 bytes"
    hw cache show good
    succeeds
    says "good: 1 compiled program, 4 bytes"
    [[ $output != *cuda* && $output != *hw_bad* ]]
    hw cache show nosuch
    succeeds
    says "Nothing is kept there about nosuch."
}

@test "show as JSON and CSV" {
    setup_cache
    hw cache --json
    succeeds
    json "d['schema'] == 1 and d['directory'] == '$cache' and d['source'] == 'HW_CACHE_DIR'" \
        "[v['plugin'] for v in d['verdicts']] == ['bad', 'good', 'slow']" \
        "[v['outcome'] for v in d['verdicts']] == ['crash', 'ok', 'hang']" \
        "[v['expires'] is None for v in d['verdicts']] == [False, True, False]" \
        "0 < d['verdicts'][0]['retry'] <= 55 and d['verdicts'][2]['retry'] == 0" \
        "all(v['problem'] is None and v['bytes'] > 100 for v in d['verdicts'])" \
        "[(p['plugin'], p['files'], p['bytes']) for p in d['programs']] == [('cuda', 2, 8), ('good', 1, 4)]"
    hw cache --csv
    succeeds
    [ "$(python3 -c 'import csv, sys; print(*[r["outcome"] for r in csv.DictReader(sys.stdin)])' <<<"$output")" \
        = "crash ok hang" ]
}

@test "a damaged entry is listed with its problem" {
    setup_cache
    printf x >>"$cache/verdicts.d/good-0123456789abcdef"
    chmod o+w "$cache/verdicts.d/bad-0123456789abcdef"
    ln -sf /etc/passwd "$cache/verdicts.d/slow-0123456789abcdef"
    : >"$cache/verdicts.d/mine-0123456789abcdef.12-34"
    mkfifo "$cache/verdicts.d/pipe-0123456789abcdef"
    entry held ok 0 1 0
    mv "$cache/verdicts.d/held-0123456789abcdef" "$cache/verdicts.d/held-fedcba9876543210"
    python3 -c 'import sys, struct; sys.stdout.buffer.write(struct.pack("=2Q", 7, 0xfedcba9876543210))' \
        >"$cache/verdicts.d/.locks"
    hw cache --json
    succeeds
    json "{v['plugin']: v['problem'] for v in d['verdicts']} == {
        'good': 'it is damaged, or of another version', 'bad': 'another user owns it or may write to it',
        'slow': 'it cannot be read', 'mine': 'a process writes it, or ended while it did',
        'held': 'a process binds the plugin, or ended while it did',
        'pipe': 'it is not an entry'}"
    hw cache
    succeeds
    says "good +- +- +at once .*good-0123456789abcdef: not used, it is damaged, or of another version"
    hw cache clear held
    succeeds
    [ -z "$(find "$cache/verdicts.d" -name 'held*')" ]
}

@test "clear removes verdicts and programs, and nothing else" {
    setup_cache
    echo mine >"$cache/notes"
    echo mine >"$cache/verdicts.d/notes.txt"
    echo mine >"$cache/cuda/notes"
    echo mine >"$cache/$(printf '%064x' 1)"
    mkdir "$cache/verdicts.d/dir-0123456789abcdef" "$cache/Other" "$BATS_TEST_TMPDIR/away"
    echo mine >"$cache/Other/$(printf '%064x' 1)"
    echo mine >"$BATS_TEST_TMPDIR/away/$(printf '%064x' 1)"
    ln -s "$BATS_TEST_TMPDIR/away" "$cache/link"
    hw cache clear --json
    succeeds
    json "d['schema'] == 1 and d['removed'] == 6 and d['bytes'] > 300"
    (cd "$cache" && find . ! -type d | LC_ALL=C sort) >"$BATS_TEST_TMPDIR/left"
    diff "$BATS_TEST_TMPDIR/left" - <<EOF
./$(printf '%064x' 1)
./Other/$(printf '%064x' 1)
./cuda/notes
./link
./notes
./verdicts.d/notes.txt
EOF
    [ -e "$BATS_TEST_TMPDIR/away/$(printf '%064x' 1)" ]
    [ -d "$cache/verdicts.d/dir-0123456789abcdef" ]
}

@test "clear of one plugin, and of verdicts alone" {
    setup_cache
    entry good-er ok 0 1 0
    hw cache clear good --verdicts
    succeeds
    says "Removed 1 file, [0-9]+ bytes."
    hw cache --json
    json "[v['plugin'] for v in d['verdicts']] == ['bad', 'good-er', 'slow'] and len(d['programs']) == 2"
    hw cache clear cuda
    succeeds
    says "Removed 2 files, 8 bytes."
    hw cache --json
    json "len(d['verdicts']) == 3 and [p['plugin'] for p in d['programs']] == ['good']"
}

@test "without a cache directory" {
    HW_CACHE_DIR=off hw cache
    succeeds
    says "Nothing is kept: .*HW_CACHE_DIR.*"
    HW_CACHE_DIR=off hw cache clear --json
    succeeds
    json "d['directory'] is None and d['verdicts'] == []"
    HW_CACHE_DIR=relative hw cache
    succeeds
    says "Nothing is kept: the value of HW_CACHE_DIR is invalid."
    says "Warning: HW_CACHE_DIR: \"relative\" is not a value.*"
}

@test "wrong words" {
    hw cache cleer
    fails 2 "cleer: no such action; did you mean 'clear'"
    hw cache clear a b
    fails 2 "hw cache: "
}

@test "a file that cannot be removed is an error" {
    setup_cache
    [ "$(id -u)" -ne 0 ] || skip "not applicable: root may remove any file"
    chmod a-w "$cache/verdicts.d"
    hw cache clear
    chmod u+w "$cache/verdicts.d"
    fails 1 "3 files could not be removed from $cache, the first of them bad-.*: Permission denied"
}

@test "no plugin is loaded" {
    [ -n "${DEADLY_PLUGIN-}" ] || skip "not applicable: a sanitizer has words of its own for a crash"
    mkdir "$BATS_TEST_TMPDIR/plugins"
    cp "$DEADLY_PLUGIN" "$BATS_TEST_TMPDIR/plugins"
    DEADLY=open HW_PLUGIN_PATH=$BATS_TEST_TMPDIR/plugins:! hw cache
    succeeds
}
