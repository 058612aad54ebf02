# SPDX-License-Identifier: MIT
# Reads commit messages, each after a line `commit <hash>`, and prints their formal errors. Variables: parts, the
# allowed first words of a subject, separated by bars; verbs, a file with the allowed words after the colon (any word
# if it is empty).

function complain(what)
{
    print hash ": " what ": " $0
}

function read_verbs(    text, words, count)
{
    while ((count = (getline text < verbs)) > 0)
        if (text !~ /^#/) {
            count = split(text, words, " ")
            for (; count > 0; count--)
                is_verb[words[count]] = 1
        }
    if (count < 0) {
        print verbs ": cannot be read"
        exit 1
    }
}

BEGIN {
    if (verbs)
        read_verbs()
}

/^commit [0-9a-f]+$/ {
    hash = $2
    line = 0
    next
}
{ line++ }
line == 1 && $0 !~ "^(" parts "): " { complain("the subject does not begin with a part that CONTRIBUTING.md lists") }
line == 1 && verbs {
    word = $2
    sub(/[,:;.]$/, "", word)
    if (!(word in is_verb))
        complain("\"" word "\" is not a verb of " verbs ": begin with an imperative, or add a verb there")
}
# OpenCL is a name, which is written so.
line == 1 && /^[a-z]+: [A-Z][a-z]/ && !/: OpenCL / { complain("the subject has a capital letter after the colon") }
line == 1 && /\.$/ { complain("the subject ends with a full stop") }
line == 1 && length > 72 { complain("the subject has more than 72 characters") }
line == 2 && $0 != "" { complain("no blank line after the subject") }
# A line that cannot be wrapped: a quotation, or one long word.
line > 2 && length > 100 && !/^    / && /[^ ] +[^ ]/ { complain("a line of the body has more than 100 characters") }
