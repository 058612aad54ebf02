#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# hw-rival beside cuBLASLt and cuDNN, on stand-ins for the driver and for both, which are in the folder
# $STANDIN. $RIVAL is the program.

setup()
{
    unset HW_DISABLE HW_REQUIRE HW_PRECISION HW_CONFIG STANDIN_FAIL FAKE_CUDNN_FAIL
    export HW_BACKENDS='cuda?,*' # the machine has no such hardware, so its name says that the plugin is to be tried
    export LD_LIBRARY_PATH=$STANDIN:${LD_LIBRARY_PATH-}
    export STANDIN_DEVICES=7.5 # tuned kernels compute nothing on the stand-in
}

# rival WORDS...: the command, its output in $output, its status in $status.
rival()
{
    run "$RIVAL" -d cuda:0 "$@"
    echo "$output"
}

# measure WORDS...: the results in JSON, for `they`.
measure()
{
    "$RIVAL" -d cuda:0 "$@" --json >"$BATS_TEST_TMPDIR/rows"
}

# they EXPRESSION: whether it is true of `shapes` and of `ends`, the last row of each table.
they()
{
    python3 - "$BATS_TEST_TMPDIR/rows" "$1" <<'END'
import json, math, sys
results = json.load(open(sys.argv[1]))['results']
shapes, ends = [r for r in results if 'speed' in r], [r for r in results if 'mean' in r]
assert eval(f'({sys.argv[2]})'), (sys.argv[2], results)
END
}

# without LIBRARY...: hides them behind files of text.
without()
{
    local library
    for library; do
        echo text >"$BATS_TEST_TMPDIR/$library"
    done
    export LD_LIBRARY_PATH=$BATS_TEST_TMPDIR:$LD_LIBRARY_PATH
}

@test "the operations that cuDNN is told are attention" {
    rival bf16:9x9x4/1x32
    [ "$status" -eq 0 ]
    grep -q 'attention on cuda:0 beside cuDNN 9.19.0' <<<"$output"
    grep -qE 'bf16  9x9x4/1x32 .*  engine 7, plan 1 of 1' <<<"$output"
    "$RIVAL" -d cuda:0 bf16:1x64x4/2x64 bf16:9x9x4/1x32 bf16:33x33x2/2x64 --json >"$BATS_TEST_TMPDIR/rival"
    python3 - "$BATS_TEST_TMPDIR/rival" <<'END'
import json, sys
results = [r for r in json.load(open(sys.argv[1]))['results'] if 'mean' not in r]
assert [(r['op'], r['queries'], r['keys'], r['heads'], r['kv_heads'], r['size'], r['calls']) for r in results] == [
    ('attention', 1, 64, 4, 2, 64, 64), ('attention', 9, 9, 4, 1, 32, 16), ('attention', 33, 33, 2, 2, 64, 16)], results
assert all(r['rival'] == 'cuDNN 9.19.0' and r['rival_way'] == 'engine 7, plan 1 of 1' for r in results), results
# bf16 has 8 bits; the stand-in rounds once, at the end.
assert all(r['difference'] < 5e-3 and r['error'] < 5e-3 and 0 < r['rival_error'] < 2e-3 for r in results), results
assert all(r['ours']['median'] > 0 and r['theirs']['median'] > 0 and r['speed'] > 0 for r in results), results
END
}

@test "cuBLASLt is told the same product" {
    rival f32:9x33x65
    [ "$status" -eq 0 ]
    grep -q 'matmul on cuda:0 beside cuBLASLt 13.1.0, precision fp32' <<<"$output"
    # Of two algorithms, the first does not work.
    grep -qE '^  f32 +9x33x65 .*  as stored; way 2 of 2$' <<<"$output"
    measure bf16:9x33x65 f32:9x33x65
    they "[(r['type'], r['rival_way']) for r in shapes] == [('bf16', 'way 2 of 2'), ('f32', 'way 2 of 2')]"
    they "0 < shapes[0]['rival_error'] < 4e-3 and shapes[0]['difference'] < 4e-3"
}

@test "f32 is multiplied in f32, and in TF32 if the precision allows it" {
    measure f32:64x48x96
    they "[r['precision'] for r in shapes + ends] == ['fp32'] * 2"
    they "shapes[0]['rival_error'] < 1e-6 and shapes[0]['difference'] < 1e-6"
    local precision
    for precision in fp16 int8; do
        HW_PRECISION=$precision measure f32:64x48x96 bf16:64x48x96
        they "[r['precision'] for r in shapes + ends] == ['$precision'] * 3"
        they "[r['rival_way'] for r in shapes] == ['way 2 of 2, TF32', 'way 2 of 2']"
        # Both factors have 11 bits, rounded to the nearest.
        they "2e-4 < shapes[0]['rival_error'] < 3.5e-4 and shapes[0]['difference'] < 4e-4"
    done
    # Whoever sets it.
    echo 'precision = fp16' >"$BATS_TEST_TMPDIR/hw.conf"
    HW_CONFIG=$BATS_TEST_TMPDIR/hw.conf rival f32:64x48x96
    grep -q 'cuBLASLt 13.1.0, precision fp16' <<<"$output"
    grep -qE 'f32 .*; way 2 of 2, TF32$' <<<"$output"
}

@test "a table ends with the mean of the speeds and the least one" {
    measure bf16:9x33x65 bf16:1x64x4/2x64 f32:8x16x32 bf16:9x9x4/1x32 f32:4x300x20
    they "['mean' in r for r in results] == [False, False, False, True, False, False, True]"
    they "[(r['op'], r['shapes'], r['rival']) for r in ends] ==
        [('matmul', 3, 'cuBLASLt 13.1.0'), ('attention', 2, 'cuDNN 9.19.0')]"
    they "all(math.isclose(r['speed'], r['theirs']['median'] / r['ours']['median'], rel_tol=1e-6) for r in shapes)"
    they "all(math.isclose(r['mean'] ** r['shapes'], math.prod(s['speed'] for s in shapes if s['op'] == r['op']),
        rel_tol=1e-6) for r in ends)"
    they "[(r['least'], r['least_shape']) for r in ends] == [
        min(zip([s['speed'] for s in shapes[:3]], ['bf16:9x33x65', 'f32:8x16x32', 'f32:4x300x20'])),
        min(zip([s['speed'] for s in shapes[3:]], ['bf16:1x64x4/2x64', 'bf16:9x9x4/1x32']))]"
    rival bf16:9x33x65 f32:8x16x32
    grep -qE '^  geometric mean of the speeds: [0-9.]+; the least: [0-9.]+, (bf16:9x33x65|f32:8x16x32)$' <<<"$output"
    # One that ends early has none.
    rival bf16:9x33x65 f32:1x64x4/2x64
    [ "$status" -eq 1 ]
    [ "$(grep -c 'geometric mean' <<<"$output")" -eq 1 ] # of products
}

@test "an op's name stands for its usual shapes, and asks for no other rival" {
    without libcudnn.so.9
    rival attention
    [ "$status" -eq 1 ]
    [[ $output == *"cuda:0: attention: libcudnn.so.9 was not found: set LD_LIBRARY_PATH to its folder"* ]]
    [[ $output != *cublasLt* ]]
    without libcublasLt.so.13 libcublasLt.so.12
    rival matmul
    [ "$status" -eq 1 ]
    [[ $output == *"cuda:0: matmul: libcublasLt.so.13 or .12 was not found"* ]]
    [[ $output != *cudnn* ]]
    rival
    [ "$status" -eq 1 ]
    [[ $output == *"libcublasLt.so.13 or .12 was not found"*"libcudnn.so.9 was not found"* ]]
}

@test "one rival that is missing fails where its op was asked for" {
    without libcublasLt.so.13 libcublasLt.so.12
    rival bf16:1x16x2/1x32 bf16:64x48x32
    [ "$status" -eq 1 ]
    [[ $output == *"cuda:0: matmul: libcublasLt.so.13 or .12 was not found"* ]]
}

@test "what cuDNN refuses is said in its words" {
    rival f32:1x64x4/2x64
    [ "$status" -eq 1 ]
    [[ $output == *"f32:1x64x4/2x64: cuDNN has no attention of f32"* ]]
    FAKE_CUDNN_FAIL=1 rival bf16:1x64x4/2x64
    [ "$status" -eq 1 ]
    [[ $output == *"cuda:0: attention: cudnnCreate(): CUDNN_STATUS_NOT_SUPPORTED: the reason"* ]]
}
