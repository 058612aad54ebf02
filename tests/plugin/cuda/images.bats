#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The images in plugins/cuda/images are those of the kernels in this tree. Meson sets PTX, the directory of what this
# build compiled, and PTX_COMPILER, what compiled it.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_DIRNAME/../../.." || exit 1
}

mend()
{
    echo "the kernels have changed: run ninja -C build cuda-images, where $(sed -n 3p plugins/cuda/images/mixed.ptx)"
}

@test "the images were made from the kernels as they are" {
    ! plugins/cuda/images.sh stale || { mend && false; }
}

@test "a changed kernel makes the images stale, a comment does not" {
    mkdir "$BATS_TEST_TMPDIR/kernels" "$BATS_TEST_TMPDIR/plugins"
    cp -r kernels "$BATS_TEST_TMPDIR"
    cp -r plugins/cuda "$BATS_TEST_TMPDIR/plugins"
    run ! "$BATS_TEST_TMPDIR/plugins/cuda/images.sh" stale
    echo "/* */" >>"$BATS_TEST_TMPDIR/kernels/silu.c"
    run ! "$BATS_TEST_TMPDIR/plugins/cuda/images.sh" stale
    echo "int more;" >>"$BATS_TEST_TMPDIR/kernels/silu.c"
    "$BATS_TEST_TMPDIR/plugins/cuda/images.sh" stale
}

@test "what one architecture has for itself counts for its image alone" {
    mkdir "$BATS_TEST_TMPDIR/plugins"
    cp -r kernels "$BATS_TEST_TMPDIR"
    cp -r plugins/cuda "$BATS_TEST_TMPDIR/plugins"
    printf '#if __CUDA_ARCH__ == 900\nint more;\n#endif\n' >>"$BATS_TEST_TMPDIR/plugins/cuda/kernels/matmul_gemv.cu"
    run -0 "$BATS_TEST_TMPDIR/plugins/cuda/images.sh" stale
    [ "$output" = matmul_gemv.sm_90a ]
}

# compiled NAME COMPILER: makes this cubin by a compiler that always fails.
compiled()
{
    "$images" compile "$2" false -cubin -MF "$BATS_TEST_TMPDIR/d" -o "$BATS_TEST_TMPDIR/$1.cubin" "${1%%.*}.cu"
}

@test "a cubin is taken from the images if its sources and its compiler are theirs" {
    local images=$PWD/plugins/cuda/images.sh compiler
    compiler=$(sed -n 's|^// compiler: ||p' plugins/cuda/images/rows.sm_90a.txt)
    compiled rows.sm_90a "$compiler"
    cmp plugins/cuda/images/rows.sm_90a.cubin "$BATS_TEST_TMPDIR/rows.sm_90a.cubin"
    grep -q "^$BATS_TEST_TMPDIR/rows.sm_90a.cubin:" "$BATS_TEST_TMPDIR/d"
    grep -qF "$PWD/plugins/cuda/kernels/rows.cu" "$BATS_TEST_TMPDIR/d"
    run ! compiled rows.sm_90a "$compiler -O2"
    run ! compiled rows.sm_80 "$compiler"
    mkdir "$BATS_TEST_TMPDIR/plugins"
    cp -r kernels "$BATS_TEST_TMPDIR"
    cp -r plugins/cuda "$BATS_TEST_TMPDIR/plugins"
    images=$BATS_TEST_TMPDIR/plugins/cuda/images.sh
    compiled rows.sm_90a "$compiler"
    echo "int more;" >>"$BATS_TEST_TMPDIR/plugins/cuda/kernels/rows.cu"
    run ! compiled rows.sm_90a "$compiler"
}

@test "all cubins are by CUDA 12, which older drivers load, and no other is written" {
    for text in plugins/cuda/images/*.txt; do
        grep -q '^// compiler: NVRTC 12\.' "$text" || { echo "$text: $(sed -n 3p "$text")" && false; }
    done
    local to=$BATS_TEST_TMPDIR/images cubin=plugins/cuda/images/rows.sm_90a.cubin
    mkdir "$to"
    run -1 env CUBIN_COMPILER='Build cuda_13.0.r13.0 -O3' plugins/cuda/images.sh write "$to" "$cubin"
    [[ $output == *'rows.sm_90a: the images are made by NVRTC 12.8 or later of CUDA 12, not by Build cuda_13.0'* ]]
    [ -z "$(ls "$to")" ]
    CUBIN_COMPILER='NVRTC 12.9' plugins/cuda/images.sh write "$to" "$cubin"
    cmp plugins/cuda/images/rows.sm_90a.txt "$to/rows.sm_90a.txt"
}

@test "the compiler makes the same images" {
    [ -n "${PTX_COMPILER-}" ] || skip "not applicable: this build compiles no PTX with clang"
    grep -qxF "// compiler: $PTX_COMPILER" plugins/cuda/images/mixed.ptx ||
        skip "not applicable: the images are by another compiler than $PTX_COMPILER"
    plugins/cuda/images.sh write "$BATS_TEST_TMPDIR" "$PTX"/*.ptx
    for ptx in "$BATS_TEST_TMPDIR"/*.ptx; do
        diff -q "plugins/cuda/images/$(basename "$ptx")" "$ptx" || { mend && false; }
    done
}
