#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: shadow.sh CHECKOPS CPU (OP PLUGIN)... - with HW_SHADOW, the library itself compares each call with the CPU
# plugin. It must report OP of a wrong plugin and nothing else, and nothing of a right one (OP "-").
# The quick cases take the first three plugins, only f32, and of the right one an op of each kind.
checkops=$1 cpu=$2
shift 2
[ -z "${HW_TEST_QUICK-}" ] || set -- "$1" "$2" "$3" "$4" "$5" "$6"
echo "1..$(($# / 2))"
number=0
export HW_SHADOW=1/1 HW_LOG=error
while [ $# -gt 0 ]; do
    op=$1 plugin=$2 number=$((number + 1))
    shift 2
    name=$(basename "$plugin" .so)
    name=${name#hw_}
    case ${HW_TEST_QUICK:+quick}$op in
    quick-) only='-p matmul(*a=f32,b=f32*|softmax(*type=f32*|top_k(*|copy(*src=f32*' ;;
    quick*) only="-p $op(type=f32*" ;;
    -) only= ;;
    *) only="--op $op" ;;
    esac
    # shellcheck disable=SC2086 # an option and its value, or nothing
    output=$(HW_BACKENDS=$name,cpu HW_PLUGIN_PATH=$plugin:$cpu:! "$checkops" --test --quick $only -d "$name:0" 2>&1)
    accused=$(printf '%s\n' "$output" |
        sed -nE 's/^hw: error: ([a-z0-9_]+) \(.* is wrong and not tried.*/\1/p' | sort -u)
    [ -n "$accused" ] || accused=-
    # A right plugin must pass, and must have been tested.
    case $op:$output in
    -:*" 0 failed"* | [a-z]*) ;;
    *) accused="nothing, but it does not pass" ;;
    esac
    if [ "$accused" = "$op" ]; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name: accused of: $accused"
        printf '%s\n' "$output" | tail -n 20 | sed 's/^/# /'
    fi
done
