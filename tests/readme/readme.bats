#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The generated parts of the README match the tree.

between()
{
    sed -n "/<!-- $1:begin -->/,/<!-- $1:end -->/p" "$SOURCE/README.md" | sed '1d;$d'
}

@test "the program is examples/rmsnorm.c" {
    diff <(between program | sed '/^```/d') <(sed '1,2d' "$SOURCE/examples/rmsnorm.c")
}

@test "every page that the documentation links to is there, and every heading" {
    # The anchor of a heading: lower case, without punctuation, hyphens for spaces.
    anchors()
    {
        sed -nE 's/^#+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
    }
    for page in "$SOURCE"/*.md "$SOURCE"/docs/*.md "$SOURCE"/docs/decisions/*.md "$SOURCE"/tests/README.md; do
        links=$(grep -oE '\]\([^)]+\)' "$page" | sed 's/^](//; s/)$//' | grep -v '^https\?:' || true)
        [ "${page##*/}" != README.md ] || [ -n "$links" ]
        for link in $links; do
            file=${page%/*}/${link%%#*}
            [ "${link%%#*}" ] || file=$page
            [ -e "$file" ] || { echo "${page#"$SOURCE"/}: no ${link%%#*}"; return 1; }
            [ "$link" = "${link#*#}" ] || anchors "$file" | grep -qx "${link#*#}" ||
                { echo "${page#"$SOURCE"/}: no heading for $link"; return 1; }
        done
    done
}

@test "every file and folder of the tree that the documentation names is there" {
    cd "$SOURCE"
    folders='core|docs|examples|include|kernels|models|plugins|proxy|tests|tools|verify'
    missing=$(grep -oHE "\`($folders)/[A-Za-z0-9_./-]*\`" ./*.md docs/*.md docs/decisions/*.md tests/README.md |
        tr -d '\`' | while IFS=: read -r page path; do
        [ -e "$path" ] || echo "$page: $path"
    done)
    echo "$missing"
    [ -z "$missing" ]
}
