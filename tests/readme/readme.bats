#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The generated parts of the README are what the tree generates.

between()
{
    sed -n "/<!-- $1:begin -->/,/<!-- $1:end -->/p" "$SOURCE/README.md" | sed '1d;$d'
}

@test "the support table is the one that checkops prints" {
    diff <(between support) <("$CHECKOPS" --support --markdown --label executed)
}

@test "every file that the README and the documentation link to is there" {
    for page in "$SOURCE"/*.md "$SOURCE"/docs/*.md; do
        links=$(grep -oE '\]\([^)#]+\)' "$page" | sed 's/^](//; s/)$//' | grep -v '^https\?:' || true)
        [ "${page##*/}" != README.md ] || [ -n "$links" ]
        for link in $links; do
            [ -e "${page%/*}/$link" ] || { echo "${page##*/}: no $link"; return 1; }
        done
    done
}
