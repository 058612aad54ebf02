#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The program that embeds files (EMBED): the inputs that it rejects, and its reproducible output.

setup()
{
    cd "$BATS_TEST_TMPDIR" || exit 1
    printf 'text' >a.txt
}

refuses() # STATUS MESSAGE ARGUMENT...
{
    local code=$1 message=$2
    shift 2
    run "$EMBED" "$@"
    echo "$output"
    [ "$status" -eq "$code" ]
    [[ $output == *"$message"* ]]
}

@test "arguments that are missing or wrong" {
    refuses 2 'usage: embed'
    refuses 2 'usage: embed' out.c list
    refuses 2 'usage: embed' out.c 'a list' a.txt
    refuses 2 'usage: embed' out.c 7list a.txt
}

@test "files that cannot be embedded" {
    refuses 1 'none.txt: No such file' out.c list a.txt none.txt
    : >empty.txt
    refuses 1 'empty.txt: is empty' out.c list empty.txt
    mkdir folder.txt
    refuses 1 'folder.txt: Is a directory' out.c list folder.txt
    printf 'x' >'qu"ote.txt'
    refuses 1 'cannot embed a file of this name' out.c list 'qu"ote.txt'
    truncate -s 16777217 large.txt
    refuses 1 'large.txt: larger than 16 MiB' out.c list large.txt
}

@test "an output that cannot be written" {
    refuses 1 'none/out.c: No such file' none/out.c list a.txt
    [ ! -w /dev/full ] || refuses 1 '/dev/full' /dev/full list a.txt
}

@test "the output depends on names and bytes alone" {
    mkdir elsewhere
    cp a.txt elsewhere
    "$EMBED" one.c list a.txt
    "$EMBED" two.c list elsewhere/a.txt
    cmp one.c two.c
}
