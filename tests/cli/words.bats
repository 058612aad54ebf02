#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The command line: commands, options, help, and errors in them.

load common

commands="status devices explain env doctor report cache plugin run inspect quantize verify bench abi version"

@test "without a command: the list of commands, and where to start" {
    hw
    succeeds
    says 'Usage: hw COMMAND.*'
    [[ $output == *"hw status"* ]]
    for command in $commands; do
        says " +$command +[a-z].*"
    done
}

@test "help comes in four spellings, and is the same" {
    hw --help
    succeeds
    help=$output
    for words in "-h" "help" "help --help"; do
        # shellcheck disable=SC2086 # several words, on purpose
        hw $words
        succeeds
        [ "$output" = "$help" ]
    done
}

@test "each command has help, with options, --json and an example" {
    for command in $commands; do
        hw "$command" --help
        succeeds
        says "Usage: hw $command.*"
        says " +--json +.*"
        says "  .*hw $command.*"
        help=$output
        hw help "$command"
        succeeds
        [ "$output" = "$help" ]
    done
}

@test "the list of commands as JSON" {
    hw help --json
    succeeds
    json 'd["schema"] == 1 and {c["name"] for c in d["commands"]} >= set("'"$commands"'".split())'
}

@test "the help of a command as JSON, however it is asked for" {
    for command in $commands; do
        hw "$command" --help --json
        succeeds
        json 'd["schema"] == 1 and d["command"] == "hw '"$command"'" and d["about"] and d["arguments"] is not None'
        json '{"json", "help"} <= {o["name"] for o in d["options"]} and all(o["about"] for o in d["options"])'
        help=$output
        hw help "$command" --json
        succeeds
        [ "$output" = "$help" ]
    done
    hw run --help --json
    json '[o for o in d["options"] if o["name"] == "tokens"] == [{"name": "tokens", "letter": "n", "argument": "N",
        "about": "how many tokens to produce (128)"}]'
}

@test "the manual page has every option of every command, and no other" {
    page=$BATS_TEST_DIRNAME/../../tools/hw/hw.1
    for command in $commands; do
        hw "$command" --help --json
        python3 -c '
import json, sys
print("\n".join(sorted(o["name"] for o in json.load(sys.stdin)["options"] if o["name"] not in ("json", "help"))))' \
            <<<"$output" >"$BATS_TEST_TMPDIR/help"
        sed -n "/^\.Ss hw $command\\b/,/^\.S[sh] /p" "$page" | sed -nE 's/^\.It Fl (.* , )?-([a-z-]+).*/\2/p' | sort \
            >"$BATS_TEST_TMPDIR/page"
        [ -s "$BATS_TEST_TMPDIR/page" ] || echo >"$BATS_TEST_TMPDIR/page"
        diff "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/page"
    done
}

@test "bash completes commands, options and settings" {
    mkdir "$BATS_TEST_TMPDIR/bin"
    ln -s "$COMMAND" "$BATS_TEST_TMPDIR/bin/hw"
    complete_words() # WORD...: completes the last one
    {
        # shellcheck disable=SC2016 # for the inner shell
        PATH=$BATS_TEST_TMPDIR/bin:$PATH bash -c '
            source "$0"
            COMP_WORDS=(hw "$@") COMP_CWORD=$#
            _hw
            printf "%s\n" "${COMPREPLY[@]}"' "$BATS_TEST_DIRNAME/../../tools/hw/hw.bash" "$@"
    }
    [ "$(complete_words st)" = status ]
    [ "$(complete_words cache cl)" = clear ]
    [ "$(complete_words cache clear cl)" = "" ]
    [ "$(complete_words plugin l)" = lock ]
    [ "$(complete_words explain cl)" = "" ]
    if [ "$CPU" = yes ]; then
        [ "$(complete_words cache clear cp)" = cpu ]
        [ "$(complete_words explain cp)" = cpu ]
    fi
    [ "$(complete_words verify --su)" = --support ]
    [ "$(complete_words bench --rep)" = --repetitions ]
    [ "$(complete_words bench dis)" = dispatch ]
    [ "$(complete_words bench -d cpu:0 pro)" = products ]
    [ "$(complete_words bench at)" = "" ]
    [ "$(complete_words env memory)" = memory_limit ]
    [ "$(complete_words env HW_M)" = HW_MEMORY_LIMIT ]
    [ "$(complete_words help ve | sort | tr '\n' ' ')" = "verify version " ]
    [ "$(complete_words run m.gguf --kv-type q5 | paste -sd ' ')" = "q5_1 q5_0" ]
    [ "$(complete_words run m.gguf --kv-type f16,f | paste -sd ' ')" = "f16,f32 f16,f16" ]
    [ "$("$COMMAND" run m.gguf --kv-type '#' 2>&1 | sed 's/.*: //; s/,//g')" = \
        "$(complete_words run m.gguf --kv-type '' | paste -sd ' ')" ]
    [ "$("$COMMAND" quantize a b '#' 2>&1 | sed 's/.*: //; s/,//g')" = \
        "$(complete_words quantize a b '' | grep -v / | paste -sd ' ')" ]
    touch "$BATS_TEST_TMPDIR/model.gguf"
    [ "$(complete_words run "$BATS_TEST_TMPDIR/mod")" = "$BATS_TEST_TMPDIR/model.gguf" ]
}

@test "the version, of the command and of the library" {
    hw --version
    succeeds
    version=$output
    hw version
    succeeds
    [ "$output" = "$version" ]
    says 'hw [0-9]+\.[0-9]+\.[0-9]+.* \(library .*, plugin ABI [0-9]+\)'
    hw --version --json
    succeeds
    json 'd["plugin_abi"] >= 1 and d["version"][0].isdigit() and d["library"][0].isdigit()'
}

@test "a misspelt command gets a suggestion, an unrelated word does not" {
    hw staus
    fails 2 "staus: no such command; did you mean 'status'"
    hw benhc
    fails 2 "did you mean 'bench'"
    hw help devcies
    fails 2 "did you mean 'devices'"
    for word in qwertyuiop versatile; do
        hw $word
        fails 2 "no such command; there are: .*status.*devices"
    done
}

@test "a misspelt option gets a suggestion" {
    hw status --jsn
    fails 2 "--jsn: no such option; did you mean --json"
    hw bench --repetition=3
    fails 2 "did you mean --repetitions"
    hw --versoin
    fails 2 "did you mean --version"
    hw status --qwertyuiop
    fails 2 "--qwertyuiop: no such option; there are: --json, --help"
    hw verify --qwertyuiop
    fails 2 "--qwertyuiop: no such option; see hw verify --help"
    hw --bogus
    fails 2 "--bogus: no such option; there are: --version, --replay, --json, --help"
    hw status -Q
    fails 2 "no such option"
}

@test "an option's value is checked" {
    hw bench --repetitions=many
    fails 2 "--repetitions"
    hw bench --repetitions=-1
    fails 2 "must be 1 to"
    hw bench --repetitions=0
    fails 2 "must be 1 to"
    hw bench --seconds=0
    fails 2 "must be more than 0"
    hw bench --repetitions=99999999999999999999
    fails 2 "--repetitions"
    hw bench --device
    fails 2 "--device"
}

@test "too many arguments are an error" {
    hw status now
    fails 2 "now: unexpected argument"
    hw devices cpu:0 cpu:1
    fails 2 "cpu:1: unexpected argument"
    hw --json=yes status
    fails 2 "--json=yes"
}

@test "a word as long as the system accepts" {
    long=$(printf 'x%.0s' {1..5000})
    hw "$long"
    fails 2 "no such command"
    hw "--$long"
    fails 2 "no such option"
    hw status "$long"
    fails 2 "unexpected argument"
}

@test "words that are not text are escaped on the terminal" {
    hw $'\e[31mred'
    fails 2 'x1b'
    [[ $stderr != *$'\e'* ]]
    hw $'\xff\xc3\xa4\xc2\x9b\x9b'
    fails 2 '^hw: \\xffä\\xc2\\x9b\\x9b: no such command'
    hw run --json $'\xff.gguf'
    json 'd["error"].startswith("\\xff.gguf: cannot be opened")'
}

@test "options may come before the command" {
    hw --json status
    json '"backends" in d'
}
