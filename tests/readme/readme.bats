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

@test "every file that the README links to is there" {
    links=$(grep -oE '\]\([^)#]+\)' "$SOURCE/README.md" | sed 's/^](//; s/)$//')
    [ -n "$links" ]
    for link in $links; do
        [ -e "$SOURCE/$link" ] || { echo "no $link"; return 1; }
    done
}
