# SPDX-License-Identifier: MIT
# What the tests headers.bats of the plugins share: a list of a vendor's functions, compared with the vendor's headers
# by the compiler. $STANDIN is this folder, $CUDA an include folder or empty, $COMPARED the source if not headers.cpp.
# shellcheck shell=bash

# list_functions FILE.def: as listed.def, where names of functions are words and not strings.
list_functions()
{
    sed -E 's/"([A-Za-z0-9_]+)(\|[A-Za-z0-9_]+)*"/\1/' "$1" >"$BATS_TEST_TMPDIR/listed.def"
}

agrees()
{
    g++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -I"$BATS_TEST_TMPDIR" -I"$STANDIN" ${CUDA:+"-I$CUDA"} \
        "$BATS_TEST_DIRNAME/${COMPARED:-headers.cpp}"
}

# differs FILE SCRIPT WORDS: with this change to the list, the compiler finds the difference.
differs()
{
    cp "$BATS_TEST_TMPDIR/$1" "$BATS_TEST_TMPDIR/whole"
    sed -i -E "$2" "$BATS_TEST_TMPDIR/$1"
    run ! cmp -s "$BATS_TEST_TMPDIR/$1" "$BATS_TEST_TMPDIR/whole"
    run ! agrees
    grep -qF -- "$3" <<<"$output"
    cp "$BATS_TEST_TMPDIR/whole" "$BATS_TEST_TMPDIR/$1"
}
