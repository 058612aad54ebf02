#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds the fuzz targets with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer into a directory that can be
# moved to another machine: the programs, the library and plugin that they load, their corpora, and run.sh.
#
#   tests/fuzz/build.sh DIRECTORY [TARGET...]      CC=clang-14 by default
# shellcheck disable=SC2016,SC2054 # programs for sh, and commas in options, are on purpose
set -eu

if [ $# -lt 1 ]; then
    sed -n 's/^#   //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
echo '#define HW_BUILD_STAMP "fuzz"' >"$out/build_stamp.h"

read -r -a compile <<<"${CC:-clang-14}"
compile+=(-std=c11 -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -fPIC
    -DHW_PLUGIN_DIR="\"\"" -DHW_HELPER_DIR="\"\"" -DHW_HELPER_BESIDE="\"\"" -DHW_HAS_PCRE2
    -I"$out" -Iinclude -I. -Icore -Iplugins -Itools -Itests/fixtures)

# objects FOLDER FLAGS SOURCE...: compiles what has changed, two files at a time.
objects()
{
    local folder=$out/objects/$1 flags=$2
    shift 2
    mkdir -p "$folder"
    # shellcheck disable=SC2086 # a list of words, on purpose
    printf '%s\n' "$@" | xargs -P 2 -I {} sh -c '
        source=$1 object=$2/$(echo "$1" | tr / -).o
        shift 2
        [ "$object" -nt "$source" ] || "$@" -c "$source" -o "$object"' \
        sh {} "$folder" "${compile[@]}" $flags
}

# What a target links besides the core: the reader of model files, through the library, as the command does.
uses_model()
{
    case $1 in gguf | metadata | tokenizer) true ;; *) false ;; esac
}

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in tests/fuzz/fuzz_*.c; do
        target=${source##*/fuzz_}
        targets+=("${target%.c}")
    done
fi

rm -rf "$out/objects"
objects core "-fsanitize=fuzzer-no-link -fvisibility=hidden" core/*/*.c
ar rcs "$out/objects/core.a" "$out"/objects/core/*.o
mapfile -t probe < <(find probe -name '*.c' ! -name no_foreign.c)
objects probe "-fsanitize=fuzzer-no-link -fvisibility=hidden" plugins/common/sha256.c "${probe[@]}"
ar rcs "$out/objects/probe.a" "$out"/objects/probe/*.o
"${compile[@]}" -shared -o "$out/libhw.so" "$out"/objects/core/*.o -Wl,--version-script=core/hw.map -ldl -pthread
objects model -fsanitize=fuzzer-no-link tools/util/*.c tools/model/*/*.c
ar rcs "$out/objects/model.a" "$out"/objects/model/*.o

mkdir -p "$out/plugins"
"${compile[@]}" -fvisibility=hidden -shared -o "$out/plugins/hw_null.so" tests/fixtures/null.c

for target in "${targets[@]}"; do
    parts=("$out/objects/probe.a" "$out/objects/core.a")
    if uses_model "$target"; then
        parts=("$out/objects/model.a" "$out/libhw.so" -Wl,-rpath,"\$ORIGIN" -l:libpcre2-8.a)
    fi
    if [ "$target" = metadata ]; then
        parts=(tools/model/metadata.c tools/command/output.c "${parts[@]}" -l:libjansson.a)
    fi
    "${compile[@]}" -fsanitize=fuzzer "tests/fuzz/fuzz_$target.c" "${parts[@]}" -ldl -lm -pthread -o "$out/fuzz_$target"
    mkdir -p "$out/corpus/$target"
    cp tests/fuzz/corpus/"$target"/* "$out/corpus/$target/"
done
rm -rf "$out/objects"
cp tests/fuzz/run.sh "$out/run.sh"
