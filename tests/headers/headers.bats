#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Each public header compiles alone and included twice, as pedantic C11 and C++17 with each compiler, using ISO C
# headers only.

setup()
{
    cd "$BATS_TEST_DIRNAME/../../include" || exit 1
}

# compiles_alone COMPILER LANGUAGE STANDARD
compiles_alone()
{
    command -v "$1" >/dev/null || skip "missing tool: $1"
    local header
    for header in hw/*.h; do
        printf '#include <%s>\n#include <%s>\n' "$header" "$header" |
            "$1" -x "$2" -std="$3" -I. -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -
    done
}

@test "gcc, C11" {
    compiles_alone gcc c c11
}

@test "gcc, C++17" {
    compiles_alone g++ c++ c++17
}

@test "clang, C11" {
    compiles_alone clang c c11
}

@test "clang, C++17" {
    compiles_alone clang++ c++ c++17
}

# cpp_compiles_alone COMPILER STANDARD
cpp_compiles_alone()
{
    command -v "$1" >/dev/null || skip "missing tool: $1"
    printf '#include <hw/hw.hpp>\n#include <hw/hw.hpp>\n' |
        "$1" -x c++ -std="$2" -I. -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -
}

@test "the C++ header: g++, C++17 and C++20" {
    cpp_compiles_alone g++ c++17
    cpp_compiles_alone g++ c++20
}

@test "the C++ header: clang++, C++17 and C++20" {
    cpp_compiles_alone clang++ c++17
    cpp_compiles_alone clang++ c++20
}

@test "nothing but ISO C headers and each other" {
    iso='assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|stdarg'
    iso="$iso|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|tgmath|threads|time|uchar|wchar|wctype"
    other=$(grep -nE '^ *# *include' hw/*.h | grep -vE "include (<($iso)\.h>|[<\"](hw/)?[a-z]+\.h[\">])") || true
    echo "$other"
    [ -z "$other" ]
    sed -nE 's/^ *# *include "(hw\/)?([a-z]+)\.h"/\2/p' hw/*.h | while read -r name; do
        [ -f "hw/$name.h" ] || return 1
    done
}

@test "every header is installed" {
    for header in hw/*.h hw/*.hpp; do
        grep -q "'$header'" meson.build
    done
}

@test "versions agree with the build's" {
    [ -n "${VERSION-}" ] || skip "not applicable: meson test says which versions to expect"
    {
        printf '#include <hw/%s.h>\n' hw plugin
        echo 'version HW_VERSION_MAJOR HW_VERSION_MINOR HW_VERSION_PATCH HW_ABI_VERSION'
    } |
        gcc -E -P -I. -x c - | grep -x "version ${VERSION//./ } $ABI_VERSION"
}
