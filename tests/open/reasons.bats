#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Every reason for rejecting a plugin is documented, and a fixture triggers it.

# Only an exhausted machine causes this reason; test_failures.c simulates it.
later='no-memory'

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    codes=$(sed -nE 's/^X\([A-Z_]+, "([a-z-]+)".*/\1/p' core/open/reasons.def)
    [ "$(echo "$codes" | sort -u | wc -l)" -gt 30 ]
}

@test "reasons of one code stand together and are of one stage" {
    [ -z "$(echo "$codes" | uniq | sort | uniq -d)" ]
    stages=$(sed -nE 's/^X\([A-Z_]+, "([a-z-]+)", ([A-Z]+).*/\1 \2/p' core/open/reasons.def | sort -u)
    [ -z "$(echo "$stages" | cut -d ' ' -f 1 | uniq -d)" ]
}

@test "every reason is in docs/loader.md" {
    for code in $codes; do
        grep -qF "| \`$code\` |" docs/loader.md || echo "$code"
    done | { ! grep .; }
}

@test "every reason that can be given has a fixture" {
    for code in $codes; do
        echo "$code" | grep -qxE "$later" ||
            grep -qF "\"$code\"" tests/load/kinds.def tests/{load,cache,open,settings,probe}/*.c || echo "$code"
    done | { ! grep .; }
}

@test "docs/settings.md names every setting, field and variable" {
    sed -nE 's/^    X\(([a-z_]+), "(HW_[A-Z_]+)".*/| `\1` | `\2` |/p' core/settings.h >"$BATS_TEST_TMPDIR/rows"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" -eq 17 ]
    while IFS= read -r row; do
        grep -qF "$row" docs/settings.md || echo "$row"
    done <"$BATS_TEST_TMPDIR/rows" | { ! grep .; }
}
