#!/bin/sh
# SPDX-License-Identifier: MIT
# Has one compiler accept every portable kernel for every storage type: compile.sh TARGET SOURCE WORK
# with the source tree's root and a directory for what is made. All kernels go through in one call, or
# in one per pair of types where the language has no namespaces. Exit status 77: not installed.
set -eu
target=$1 source=$2/kernels stub=$2/tests/kernels/metal work=$3/accepted/$1

mixed='matmul matmul_vec attention get_rows set_rows copy'
rows='rmsnorm add_rmsnorm softmax silu swiglu rope add mul argmax'
variants='f32:f32 f16:f16 f16:f32 bf16:bf16 bf16:f32'
kernels=$(($(echo "$mixed" | wc -w) + $(echo "$rows" | wc -w) * $(echo "$variants" | wc -w)))

skip()
{
    echo "$1 is not installed"
    exit 77
}

# The first of the named programs that is there.
find_program()
{
    for program; do
        command -v "$program" && return 0
    done
    return 1
}

# All kernels in one text of dialect $1. A variant is a namespace, and a suffix to its kernels' names.
assemble()
{
    cat "$source/dialect/$1.h" "$source/args.h" "$source/prelude.h"
    for name in $mixed; do
        cat "$source/$name.c"
    done
    for variant in $variants; do
        x=${variant%:*} w=${variant#*:}
        printf '#undef X\n#undef W\n#undef KERNEL_NAME\n'
        printf '#define X %s\n#define W %s\n#define KERNEL_NAME(name) name##_%s_%s\n' "$x" "$w" "$x" "$w"
        echo "namespace types_${x}_$w {"
        for name in $rows; do
            cat "$source/$name.c"
        done
        echo '}'
    done
}

# What was made ($1) has as many lines with $2 as there are kernels.
count()
{
    found=$(grep -c -e "$2" "$1") || true
    if [ "$found" -ne "$kernels" ]; then
        echo "$1: $found kernels, not $kernels"
        exit 1
    fi
    echo "$found kernels: $1"
}

mkdir -p "$work"
case $target in
opencl)
    clang=$(find_program clang clang-14) || skip clang
    for variant in $variants; do
        x=${variant%:*} w=${variant#*:}
        { cat "$source/dialect/opencl.h" "$source/args.h" "$source/prelude.h"
          for name in $mixed $rows; do
              cat "$source/$name.c"
          done; } >"$work/$x-$w.cl"
        "$clang" -x cl -cl-std=CL1.2 -target spir64 -Wall -Werror -pedantic -DX="$x" -DW="$w" \
            -S -emit-llvm -O1 -o "$work/$x-$w.ll" "$work/$x-$w.cl"
    done
    cat "$work"/*.ll >"$work/all.ll"
    kernels=$((5 * $(echo "$mixed $rows" | wc -w)))
    count "$work/all.ll" '^define .*spir_kernel'
    ;;
cuda-clang)
    clang=$(find_program clang clang-14) || skip clang
    assemble cuda >"$work/all.cu"
    "$clang" -x cuda --cuda-gpu-arch=sm_50 -nocudainc -nocudalib --cuda-device-only -Wall -Werror \
        -Wno-unknown-cuda-version -S -O2 -o "$work/sm_50.ptx" "$work/all.cu"
    count "$work/sm_50.ptx" '\.entry'
    ;;
nvcc-*)
    nvcc=$(PATH=$PATH:/usr/local/cuda/bin find_program nvcc) || skip nvcc
    assemble cuda >"$work/all.cu"
    "$nvcc" -ptx "-arch=${target#nvcc-}" -Werror all-warnings -o "$work/all.ptx" "$work/all.cu"
    count "$work/all.ptx" '\.entry'
    ;;
nvrtc)
    assemble cuda >"$work/all.cu"
    "$4" "$work/all.cu" "$work/all.ptx"
    count "$work/all.ptx" '\.entry'
    ;;
hip-*)
    case $target in
    hip-gfx90a) clang=$(find_program clang clang-14) || skip clang ;;
    *) clang=$(find_program clang-19) || skip clang-19 ;;
    esac
    assemble hip >"$work/all.hip"
    "$clang" -x hip "--offload-arch=${target#hip-}" -nogpuinc -nogpulib --cuda-device-only -Wall -Werror \
        -S -O2 -o "$work/all.s" "$work/all.hip"
    count "$work/all.s" '^[[:space:]]*\.amdhsa_kernel'
    ;;
metal)
    clang=$(find_program clang++ clang++-14) || skip clang++
    assemble metal >"$work/all.metal.cpp"
    "$clang" -std=c++14 -fsyntax-only -Wall -Wextra -Werror -Wno-unknown-attributes -isystem "$stub" \
        "$work/all.metal.cpp"
    echo "$kernels kernels: parsed as C++14 only"
    ;;
*)
    echo "no such target: $target"
    exit 2
    ;;
esac
