#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a reader should never have to see: rules about the text of the tree that a program can judge.

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    if ! git rev-parse --git-dir >/dev/null 2>&1; then
        skip "not applicable: this tree is no git checkout"
    fi
}

# The tracked text files whose names match, NUL-terminated; models and binary fixtures are data.
files()
{
    git ls-files -z -- "$@" | grep -zvE '^models/|\.(bin|so|gguf|png|o)$'
}

# Fails and shows the lines if any file named on stdin has one that matches the pattern.
none()
{
    local found
    found=$(LC_ALL=C.UTF-8 xargs -0 grep -nIP -- "$1" /dev/null) || [ $? -lt 125 ] || return 1
    printf '%s\n' "$found" | head -20
    [ -z "$found" ]
}

@test "no tabs" {
    files | none '\t'
}

@test "no carriage returns" {
    files | none '\r'
}

@test "no blanks at the end of a line" {
    files | none '[ \t]+$'
}

@test "no invisible or look-alike Unicode" {
    files | none '[\x{00A0}\x{00AD}\x{034F}\x{061C}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180E}\x{2000}-\x{200F}\x{2028}-\x{202F}\x{205F}-\x{206F}\x{3000}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}\x{FFF9}-\x{FFFB}]'
}

@test "the last line ends" {
    bad=$(files | while IFS= read -rd '' file; do
        [ ! -s "$file" ] || [ -z "$(tail -c 1 "$file" | tr '\n' ' ' | tr -d ' ')" ] || echo "$file"
    done)
    echo "$bad"
    [ -z "$bad" ]
}

@test "every source starts with its licence" {
    bad=$(files '*.c' '*.h' '*.def' '*.map' '*.py' '*.sh' '*.bats' '*meson.build' meson_options.txt \
        tools/quickstart tools/check tools/packages .ci/run | while IFS= read -rd '' file; do
        head -n 2 "$file" | grep -q 'SPDX-License-Identifier: MIT' || echo "$file"
    done)
    echo "$bad"
    [ -z "$bad" ]
}

@test "every C file says what it is for" {
    bad=$(files '*.c' '*.h' | while IFS= read -rd '' file; do
        sed -n '2{/^\/\*/p}' "$file" | grep -q . || echo "$file"
    done)
    echo "$bad"
    [ -z "$bad" ]
}

@test "no line of C is longer than 100 columns" {
    files '*.c' '*.h' | none '^.{101,}'
}

@test "nothing left for later, and no path of somebody's machine" {
    files | none '\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b|/hom[e]/|/User[s]/'
}
