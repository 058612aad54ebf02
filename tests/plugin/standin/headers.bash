# SPDX-License-Identifier: MIT
# For the plugins' tests headers.bats: the compiler compares a list of a vendor's functions with the vendor's headers.
# $STANDIN is this folder, $CUDA an include folder or empty, $COMPARED the source if not headers.cpp.
# shellcheck shell=bash

# list_functions FILE.def: writes listed.def, with the functions' names as words instead of strings.
list_functions()
{
    sed -E 's/"([A-Za-z0-9_]+)(\|[A-Za-z0-9_]+)*"/\1/' "$1" >"$BATS_TEST_TMPDIR/listed.def"
}

agrees()
{
    g++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -I"$BATS_TEST_TMPDIR" -I"$STANDIN" ${CUDA:+"-I$CUDA"} \
        "$BATS_TEST_DIRNAME/${COMPARED:-headers.cpp}"
}

# differs FILE SCRIPT WORDS: fails unless the compiler notices this change to the list.
differs()
{
    cp "$BATS_TEST_TMPDIR/$1" "$BATS_TEST_TMPDIR/whole"
    sed -i -E "$2" "$BATS_TEST_TMPDIR/$1"
    run ! cmp -s "$BATS_TEST_TMPDIR/$1" "$BATS_TEST_TMPDIR/whole"
    run ! agrees
    grep -qF -- "$3" <<<"$output"
    cp "$BATS_TEST_TMPDIR/whole" "$BATS_TEST_TMPDIR/$1"
}
