#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The hooks of tools/hooks, in a repository of their own with the same rules.

setup_file()
{
    export TREE=$BATS_FILE_TMPDIR/tree
    mkdir "$TREE"
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    cp -r --parents .clang-format .codespellrc CONTRIBUTING.md tests/style tools/hooks "$TREE"
    cd "$TREE" || exit 1
    git init -q
    git config user.name Somebody
    git config user.email somebody@example.org
    git add .
    git commit -qm "tests: begin"
    git config core.hooksPath tools/hooks
}

setup()
{
    cd "$TREE" || exit 1
    git reset -q --hard
}

@test "a right file with a right message is committed, whatever stands in the tree" {
    printf '/* SPDX-License-Identifier: MIT */\n/* right.c - a number. */\nint number;\n' >right.c
    git add right.c
    printf '\tint number;' >right.c
    git commit -m "tests: add a number"
}

@test "files are checked as they are staged, and the hook says how to correct them" {
    local word=wi
    word+=ch # which codespell must not find here
    printf '/* SPDX-License-Identifier: MIT */\n/* wrong.c - a number. */\nint   number; /* %s */\n' "$word" >wrong.c
    printf '\ttext\n' >wrong.txt
    git add wrong.c wrong.txt
    : >wrong.c
    rm wrong.txt
    run git commit -m "tests: add a number"
    [ "$status" -ne 0 ]
    [[ $output == *'wrong.txt:1:'* ]]
    [[ $output == *'pre-commit: correct these files, run "git add" on them and commit again'* ]]
    if command -v clang-format-14; then
        [[ $output == *'wrong.c is not formatted; this mends it: clang-format-14 -i wrong.c'* ]]
    fi
    if command -v codespell; then
        [[ $output == *"wrong.c:3: $word ==> which"* ]]
    fi
}

@test "a message of another form is refused" {
    run git commit --allow-empty -m "Added a number."
    [ "$status" -ne 0 ]
    [[ $output == *'the subject does not begin with a part'* ]]
    [[ $output == *'CONTRIBUTING.md says'* ]]
    git commit --allow-empty -m "fixup! tests: begin"
}
