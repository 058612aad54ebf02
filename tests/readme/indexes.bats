#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Each index lists every page or folder beside it exactly once, and nothing else.

setup()
{
    cd "$SOURCE" || exit 1
}

# The pages in the folder of an index, and the pages there that it links to.
same_pages()
{
    diff --label "pages in ${1%/*}" --label "$1" -u \
        <(cd "${1%/*}" && printf '%s\n' *.md | grep -vx README.md | sort) \
        <(grep -oE '\]\([^)/#]+\.md\)' "$1" | sed 's/^](//; s/)$//' | sort)
}

@test "docs/README.md lists each page" {
    same_pages docs/README.md
}

@test "docs/decisions/README.md lists each decision" {
    same_pages docs/decisions/README.md
}

@test "tests/README.md lists each folder" {
    diff --label 'folders in tests' --label tests/README.md -u \
        <(cd tests && printf '%s\n' [a-z]*/ | sort) \
        <(sed -nE 's/^\| `([a-z]+\/)(<name>\/)?` \|.*/\1/p' tests/README.md | sort)
}
