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
    "$images" compile "${which-same}" "$2" false -cubin -MF "$BATS_TEST_TMPDIR/d" \
        -o "$BATS_TEST_TMPDIR/$1.cubin" "${1%%.*}.cu"
}

@test "a cubin is taken from the images if its sources and its compiler are theirs" {
    local images=$PWD/plugins/cuda/images.sh compiler
    compiler=$(sed -n 's|^// compiler: ||p' plugins/cuda/images/rows.sm_90a.txt)
    compiled rows.sm_90a "$compiler"
    cmp plugins/cuda/images/rows.sm_90a.cubin "$BATS_TEST_TMPDIR/rows.sm_90a.cubin"
    grep -q "^$BATS_TEST_TMPDIR/rows.sm_90a.cubin:" "$BATS_TEST_TMPDIR/d"
    grep -qF "$PWD/plugins/cuda/kernels/rows.cu" "$BATS_TEST_TMPDIR/d"
    cmp plugins/cuda/images/rows.sm_90a.txt "$BATS_TEST_TMPDIR/rows.sm_90a.txt"
    which=any compiled rows.sm_90a none
    run ! compiled rows.sm_90a "$compiler -O2"
    run ! compiled rows.sm_80 "$compiler"
    mkdir "$BATS_TEST_TMPDIR/plugins"
    cp -r kernels "$BATS_TEST_TMPDIR"
    cp -r plugins/cuda "$BATS_TEST_TMPDIR/plugins"
    images=$BATS_TEST_TMPDIR/plugins/cuda/images.sh
    compiled rows.sm_90a "$compiler"
    echo "int more;" >>"$BATS_TEST_TMPDIR/plugins/cuda/kernels/rows.cu"
    run ! compiled rows.sm_90a "$compiler"
    which=any run ! compiled rows.sm_90a none
}

@test "beside a cubin that the build compiles stands by which compiler it is" {
    local output=$BATS_TEST_TMPDIR/rows.sm_80.cubin # which is not among the images
    plugins/cuda/images.sh compile any 'NVRTC 13.1' true -MF "$BATS_TEST_TMPDIR/d" -o "$output" rows.cu
    grep -qx '// compiler: NVRTC 13.1' "$BATS_TEST_TMPDIR/rows.sm_80.txt"
    grep -qx "// sources: $(plugins/cuda/images.sh hash rows.sm_80)" "$BATS_TEST_TMPDIR/rows.sm_80.txt"
}

@test "a build without a compiler takes the PTX of these kernels alone, and says what to do" {
    mkdir "$BATS_TEST_TMPDIR/plugins"
    cp -r kernels "$BATS_TEST_TMPDIR"
    cp -r plugins/cuda "$BATS_TEST_TMPDIR/plugins"
    local images=$BATS_TEST_TMPDIR/plugins/cuda/images.sh made=$BATS_TEST_TMPDIR/mixed.ptx
    local words=(compile any none "$images" lacks clang -MF "$BATS_TEST_TMPDIR/d" -o "$made" portable.cu)
    "$images" "${words[@]}"
    cmp plugins/cuda/images/mixed.ptx "$made"
    grep -q "^$made: .*$BATS_TEST_TMPDIR/kernels/silu.c" "$BATS_TEST_TMPDIR/d"
    echo "int more;" >>"$BATS_TEST_TMPDIR/kernels/silu.c"
    run -1 "$images" "${words[@]}"
    [[ $output == *'the kernels have changed'*'install clang; then'*'ninja reconfigure'* ]]
}

@test "the plugin knows the newest CUDA whose compilers made its machine code" {
    local dir=$BATS_TEST_TMPDIR
    echo '// compiler: NVRTC 12.9' >"$dir/a.txt"
    echo '// compiler: Build cuda_12.10.r12.10/compiler.36424714_0 -O3' >"$dir/b.txt"
    plugins/cuda/images.sh code "$dir/code.h" none "$dir/a.txt" "$dir/b.txt"
    grep -qx '#define MACHINE_CODE_CUDA 12100' "$dir/code.h"
    grep -qx '#define TRANSLATED_CODE_CUDA 0' "$dir/code.h"
    plugins/cuda/images.sh code "$dir/code.h" 'Build cuda_13.0.r13.0/compiler.36424714_0' "$dir/a.txt"
    grep -qx '#define MACHINE_CODE_CUDA 12090' "$dir/code.h"
    grep -qx '#define TRANSLATED_CODE_CUDA 13000' "$dir/code.h"
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
