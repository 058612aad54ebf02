#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The OpenCL plugin on PoCL, or on what $HW_TEST_OPENCL names in the way of OCL_ICD_VENDORS, with all its threads.
# $CHECKOPS and $HW are programs, $MODEL is a model, $GOLDEN its expected output, $KERNELS the list of kernels;
# $OPENCL_GRAPH and $OPENCL_KERNEL are the programs test_graph.c and test_kernel.c.

setup()
{
    unset HW_DISABLE HW_REQUIRE HW_MEMORY_LIMIT POCL_DEVICES POCL_MAX_PTHREAD_COUNT
    # A binary takes PoCL half as long again as a program, so no cache keeps one, and hw-probe does not compile what is
    # tested here. What PoCL itself keeps is for the tests of this file.
    export HW_BACKENDS=opencl HW_CACHE_DIR=off HW_PROBE=inproc POCL_CACHE_DIR=$BATS_FILE_TMPDIR/pocl
    mkdir -p "$POCL_CACHE_DIR"
    export OCL_ICD_VENDORS=${HW_TEST_OPENCL:-/etc/OpenCL/vendors/pocl.icd}
    [ -e "$OCL_ICD_VENDORS" ] || skip "missing tool: PoCL (pocl-opencl-icd)"
    [ -z "$HW_TEST_QUICK" ] || without_optimiser
}

# PoCL takes seconds for each form of a kernel, most of them in its optimiser. So the ops with most forms do without it,
# and with the quick cases everything. Otherwise graphs and the kernels of the application are always optimised.
without_optimiser()
{
    export POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable
}

@test "a cached program is not compiled again, and a damaged one is" {
    export HW_CACHE_DIR=$BATS_TEST_TMPDIR/cache
    "$CHECKOPS" -p 'add(type=f32,shape=3x31)'
    ls -i "$HW_CACHE_DIR"/opencl/* >"$BATS_TEST_TMPDIR/first"
    "$CHECKOPS" -p 'add(type=f32,shape=3x31)'
    ls -i "$HW_CACHE_DIR"/opencl/* >"$BATS_TEST_TMPDIR/second"
    diff "$BATS_TEST_TMPDIR/first" "$BATS_TEST_TMPDIR/second"
    for entry in "$HW_CACHE_DIR"/opencl/*; do
        truncate -s 1000 "$entry"
    done
    "$CHECKOPS" -p 'add(type=f32,shape=3x31)'
    for entry in "$HW_CACHE_DIR"/opencl/*; do
        [ "$(stat -c %s "$entry")" -gt 1000 ]
    done
}

# Where the forms of a kernel are one text that differs in how it loads and stores, the form of f32 is run; two kernels,
# a plain and a weighted one, are run in all forms, but not with the quick cases. One process runs them all: each would
# compile the program again.
cases()
{
    local op all='rmsnorm|silu'
    [ -z "$HW_TEST_QUICK" ] || all=
    for op in $("$CHECKOPS" --list --quick | sed 's/(.*//' | sort -u); do
        if [[ $op =~ ^(copy|matmul|attention)$ ]]; then
            continue
        elif [[ ! $op =~ ^($all)$ ]] && grep -qE "^(PLAIN|WEIGHTED)\($op," "$KERNELS"; then
            echo "$op(*type=f32*"
        else
            echo "$op(*"
        fi
    done | paste -sd '|'
}

@test "every op is right" {
    "$CHECKOPS" --quick -p "$(cases)"
    "$CHECKOPS" --quick -o copy # without a pattern: and memory
    without_optimiser
    if [ -n "$HW_TEST_QUICK" ]; then
        "$CHECKOPS" --quick -p 'matmul(*a=f32,b=f32*|attention(*kv=f16*'
    else
        "$CHECKOPS" --quick -p 'matmul(*|attention(*'
    fi
}

# One type of each kind: with and without a minimum, blocks of 32 and of 256 in both orders.
@test "products of bytes are right" {
    without_optimiser
    local kinds='b=q8_0|b=q5_1|b=q5_K|b=q6_K'
    [ -z "$HW_TEST_QUICK" ] || kinds='b=q5_K'
    HW_PRECISION=int8 "$CHECKOPS" --quick -o matmul -k matmul_dots -p "$kinds"
}

@test "kernels of the application" {
    [ "$OPENCL_KERNEL" ] || skip "missing tool: cmocka (libcmocka-dev)"
    "$OPENCL_KERNEL"
}

@test "graphs with a workspace" {
    [ "$OPENCL_GRAPH" ] || skip "missing tool: cmocka (libcmocka-dev)"
    "$OPENCL_GRAPH"
}

# The text below goes through such memory: tokens and positions that the host writes are read by kernels.
@test "the host sees memory of the device" {
    without_optimiser
    "$HW" bench copy -d opencl:0 -r 1 | grep 'pinned to device'
}

@test "a model says the golden text" {
    "$HW" run "$MODEL" --prompt 'ROMEO:' -n 16 >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err"
    cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err"
    grep -q '^device  *opencl:0' "$BATS_TEST_TMPDIR/err"
    python3 - "$BATS_TEST_TMPDIR/out" <<'END'
import json, os, sys
golden = json.load(open(os.environ['GOLDEN']))['Q8_0'][0]['text']
said = open(sys.argv[1]).read().rstrip('\n')
assert len(said) > 16 and golden.startswith(said), said
END
}

@test "the rival is named if it is missing, and computes the same if it is there" {
    without_optimiser
    echo text >"$BATS_TEST_TMPDIR/libclblast.so.1"
    LD_LIBRARY_PATH=$BATS_TEST_TMPDIR:$LD_LIBRARY_PATH run "$RIVAL" f32:64x48x32
    [ "$status" = 1 ]
    grep -q 'libclblast.so.1 was not found: install CLBlast' <<<"$output"
    ldconfig -p | grep -qF 'libclblast.so.1 ' || skip "not applicable: no CLBlast (libclblast1)"
    "$RIVAL" f32:64x48x32 --json >"$BATS_TEST_TMPDIR/rival"
    python3 - "$BATS_TEST_TMPDIR/rival" <<'END'
import json, sys
result = json.load(open(sys.argv[1]))['results'][0]
assert result['rival'] == 'CLBlast' and result['difference'] < 1e-5, result
END
}

@test "a device that two modules show appears once" {
    local modules vendor
    modules=("${HW_PLUGIN_PATH%:!}"/hw_opencl_*.so)
    [ -e "${modules[0]}" ] || skip "not applicable: built without -Dopencl_vendors"
    HW_BACKENDS='opencl*' "$HW" devices -l >"$BATS_TEST_TMPDIR/all"
    grep -q '^opencl:0' "$BATS_TEST_TMPDIR/all"
    # PoCL's device need not have the vendor of the processor: 3.1 says Intel on AMD's.
    vendor=$(sed -nE 's/^opencl_([a-z]+):0.*not used.*/\1/p' "$BATS_TEST_TMPDIR/all")
    cat "$BATS_TEST_TMPDIR/all"
    [ -n "$vendor" ]
    HW_BACKENDS=opencl_$vendor "$HW" devices -l | grep "^opencl_$vendor:0"
}
