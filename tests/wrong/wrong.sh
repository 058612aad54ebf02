#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: wrong.sh CHECKOPS (OP PLUGIN)... - for each wrong plugin, tests of OP must fail; its other ops are those of the
# right plugin. OP "-": the right plugin, whose ops must all pass. "-silu": a right plugin, whose silu must pass.
# OP:P: with precision P. Of attention, which has most cases, the quick cases take a part.
checkops=$1
shift
echo "1..$(($# / 2))"
number=0
while [ $# -gt 0 ]; do
    op=${1%:*} plugin=$2 number=$((number + 1))
    precision=fp32
    [ "$op" = "$1" ] || precision=${1#*:}
    shift 2
    name=$(basename "$plugin" .so)
    only=
    [ "$op" = - ] || only="--op ${op#-}"
    case ${HW_TEST_QUICK:+quick}$op in
    quickattention | quick-attention) only='-p attention(type=f32*|attention(batch=*' ;;
    esac
    # shellcheck disable=SC2086 # an option and its value, or nothing
    output=$("$checkops" --test --quick --verbose --precision "$precision" $only --plugin "$plugin" 2>&1)
    status=$?
    failed=$(printf '%s\n' "$output" | sed -nE 's/^FAILED [^ ]+ ([a-z0-9_]+)\(.*/\1/p' | sort -u)
    if [ "$op" != "${op#-}" ] && [ "$status" = 0 ] && [ -z "$failed" ]; then
        name_of=${op#-}
        echo "ok $number - $name: ${name_of:-every op} passes"
    elif [ "$op" = "${op#-}" ] && [ "$status" = 1 ] && [ "$failed" = "$op" ]; then
        echo "ok $number - $name: $op fails"
    else
        echo "not ok $number - $name: exit status $status, failures of: ${failed:-nothing}"
        printf '%s\n' "$output" | tail -n 20 | sed 's/^/# /'
    fi
done
