#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a reader should never have to see: rules about the text of the tree that a program can judge. The hooks in
# tools/hooks apply them to a commit: $STAGED is a directory with its files, $MESSAGE a file with its message.

setup()
{
    cd "${STAGED:-$BATS_TEST_DIRNAME/../..}" || exit 1
    if ! git rev-parse --git-dir >/dev/null 2>&1; then
        skip "not applicable: this tree is not a git checkout"
    fi
}

# The tracked text files whose names match, NUL-terminated; models and binary fixtures are data.
files()
{
    if [ -n "${STAGED-}" ]; then
        git diff --cached --name-only --diff-filter=d -z -- "$@"
    else
        git ls-files -z -- "$@"
    fi | grep -zvE '^models/|\.(bin|so|gguf|png|o)$'
}

# Fails and shows the lines of stdin, if there are any.
nothing()
{
    local lines
    lines=$(cat)
    printf '%s\n' "$lines" | head -40
    [ -z "$lines" ]
}

# Fails and shows the lines if any file named on stdin has one that matches the pattern.
none()
{
    local found
    found=$(LC_ALL=C.UTF-8 xargs -0 grep -nIP -- "$1" /dev/null) || [ $? -lt 125 ] || return 1
    nothing <<<"$found"
}

# Fails and names the files on stdin that have no match of the pattern in their first lines: lacking LINES PATTERN.
lacking()
{
    xargs -0 awk -v lines="$1" -v pattern="$2" '
        FNR <= lines && $0 ~ pattern { has[FILENAME] = 1 }
        END {
            for (i = 1; i < ARGC; i++)
                if (!(ARGV[i] in has))
                    print ARGV[i]
        }' | nothing
}

scripts()
{
    files .ci/run tools/check tools/hooks tools/packages tools/quickstart '*.sh' '*.bash' '*.bats'
}

# The program that formats C, by whichever name the version is installed that .clang-format is written for.
formatter()
{
    local name
    for name in clang-format-14 clang-format; do
        if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then
            echo "$name"
            return
        fi
    done
    return 1
}

@test "no tabs" {
    files | none '\t'
}

@test "\"cannot\" is one word" {
    files ':!tests/style' | none '\b[Cc]an not\b'
}

@test "something \"is not a number\", it never \"is no number\"" {
    files ':!tests/style' | none '(?<![Tt]here )\b(is|are) no (?!longer|larger|smaller|more|less)[a-z]'
}

@test "no sentence is built so that readers have to take it apart" {
    # Only where the text has been rewritten. Another folder joins this list when it has none of these phrases.
    plain=(README.md CONTRIBUTING.md SECURITY.md docs ':!docs/measurements' examples include core verify tools
        plugins ':!plugins/*/kernels/*.cu' ':!plugins/cuda/kernels/*.h' tests)
    phrases=(
        '(?<!# )\bWhat (?!.*\?)'                  # no sentence begins with it, but headings and questions do
        '\bOf (?!((the|all|these) )?([0-9]|N\b))' # "Of 42 plugins, it finds 29" is good
        '\bThose (of|that|in|for|with|which|by|who|from)\b'
        '\bThat (of|which)\b'
        '\bSo that '
        '\bSo (it|they) (do|does|did)\b'
        '\bNot [a-z]+ (is|are|was|were) '
        '[;:] (those|that) (that|of|which)\b'
        '\b(those|that) of which\b'
        '\b[Tt]he same, (but|with|for)\b'
    )
    files "${plain[@]}" | grep -zE '\.(md|c|h|cpp|hpp|cu|def)$' | none "$(IFS='|' && echo "${phrases[*]}")"
}

@test "no carriage returns" {
    files | none '\r'
}

@test "no blanks at the end of a line" {
    files | none '[ \t]+$'
}

@test "no invisible or look-alike Unicode" {
    spaces='\x{00A0}\x{115F}\x{1160}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}\x{FFA0}'
    unseen='\x{00AD}\x{034F}\x{061C}\x{17B4}\x{17B5}\x{180E}\x{200B}-\x{200F}\x{2028}-\x{202E}\x{2060}-\x{206F}'
    files | none "[$spaces$unseen\x{FE00}-\x{FE0F}\x{FEFF}\x{FFF9}-\x{FFFB}]"
}

@test "no file is empty, and the last line of each ends" {
    # With -z a text file is one line to grep.
    { files | LC_ALL=C xargs -0r grep -LzP '\n\z'; } | nothing
}

@test "every source starts with its licence" {
    {
        scripts
        files '*.c' '*.h' '*.cpp' '*.hpp' '*.def' '*.map' '*.cmake.in' '*.py' '*.awk' '*meson.build' meson_options.txt
    } | lacking 2 'SPDX-License-Identifier: MIT'
}

@test "every C file says what it is for" {
    files '*.c' '*.h' '*.cpp' '*.hpp' | lacking 2 '^/[*] ([^S]|S[^P])'
}

@test "clang-format would change nothing" {
    format=$(formatter) || skip "missing tool: clang-format 14"
    files '*.c' '*.h' '*.cpp' '*.hpp' | xargs -0 "$format" --dry-run 2>&1 |
        sed -nE "s/^([^ :]+):[0-9]+:.*-Wclang-format-violations.*/\1 is not formatted; this mends it: $format -i \1/p" |
        sort -u | nothing
}

@test "codespell finds no misspelt word" {
    command -v codespell >/dev/null || skip "missing tool: codespell"
    files | xargs -0r codespell
}

@test "no line of C is longer than 100 columns" {
    files '*.c' '*.h' '*.cpp' '*.hpp' | none '^.{101,}'
}

@test "no line of a script or a build file is longer than 120 columns" {
    scripts | none '^.{121,}'
    files '*meson.build' meson_options.txt '*.awk' '*.py' | none '^.{121,}'
}

@test "no line of Markdown is longer than 120 columns, except in tables, code and links" {
    files '*.md' | xargs -0 awk '
        FNR == 1 { code = 0 }
        /^ *```/ { code = !code }
        !code && !/^ *\|/ && !/https?:/ { print FILENAME ":" FNR ":" $0 }' |
        { LC_ALL=C.UTF-8 grep -P '^[^:]+:[0-9]+:.{121,}' || true; } | nothing
}

@test "nothing left for later, and no path of somebody's machine" {
    files | none '\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b|/hom[e]/|/User[s]/'
}

# Prints the faults of the commit messages on stdin: message_faults [VERBS]
message_faults()
{
    local parts
    parts=$(sed -n '/parts:begin/,/parts:end/p' CONTRIBUTING.md | grep -oE '`[a-z]+`' | tr -d '`' | paste -sd '|')
    [ -n "$parts" ] && awk -v parts="$parts" -v verbs="${1-}" -f tests/style/messages.awk
}

@test "each commit message has the form that CONTRIBUTING asks for" {
    [ -z "${STAGED-}" ] || skip "not applicable: the hook commit-msg checks the message"
    if [ -n "${MESSAGE-}" ]; then
        { echo "commit 0"; cat "$MESSAGE"; } | message_faults tests/style/verbs.txt | nothing
        return
    fi
    # The rules are younger than the tree, and lines of the last four messages up to the first commit have a column or
    # two too many: history that others build on is not rewritten. A shallow clone does not have these commits.
    last_before=d254276f242f50aa712d56948f90712b085708e6
    last_without_verb=ffc39b779acdf85a83fb4cea6eb1001dfeb924ba
    for commit in $last_before $last_without_verb; do
        git merge-base --is-ancestor "$commit" HEAD 2>/dev/null ||
            skip "not applicable: the history of this clone does not go back far enough"
    done
    {
        git log --no-merges --format='commit %h%n%B' "$last_before..$last_without_verb" | message_faults
        git log --no-merges --format='commit %h%n%B' "$last_without_verb..HEAD" | message_faults tests/style/verbs.txt
    } | nothing
}

# Fails unless the message after the first argument has the one fault that the first names, or none if that is empty.
has_fault()
{
    local faults
    faults=$(printf 'commit 1234abc\n%b\n' "$2" | message_faults tests/style/verbs.txt)
    echo "$2: $faults"
    if [ -z "$1" ]; then
        [ -z "$faults" ]
    else
        [[ $faults == "1234abc: "*"$1"* ]] && [ "$(wc -l <<<"$faults")" -eq 1 ]
    fi
}

@test "each fault of a commit message is found, and a good message has none" {
    [ -z "${STAGED-}" ] || skip "not applicable: nothing of it is staged"
    has_fault "" 'core: name the missing library before loading\n\nThe driver did not say which one it was.'
    has_fault "" 'style: fix, at last, the list'
    has_fault "a part that CONTRIBUTING.md lists" 'stuff: name the library'
    has_fault '"what" is not a verb of tests/style/verbs.txt' 'docs: what copies alone reach'
    has_fault '"names" is not a verb of tests/style/verbs.txt' 'core: names the library'
    has_fault "ends with a full stop" 'core: name the library.'
    has_fault "more than 72 characters" "core: name$(printf ' words%.0s' {1..11})"
    has_fault "no blank line" 'core: name the library\nBecause it is missing.'
    has_fault "more than 100 characters" "core: name the library\n\n$(printf 'word %.0s' {1..21})"
}
