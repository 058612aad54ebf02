#!/bin/sh
# SPDX-License-Identifier: MIT
# Has one compiler accept every portable kernel for every storage type: compile.sh TARGET SOURCE WORK
# with the source tree's root and a directory for what is made. HEADERS, MIXED, PLAIN, WEIGHTED and
# VARIANTS are the lists that kernels/meson.build makes. All kernels go through in one call, or in one
# for each variant where the language has no namespaces. Exit status 77: not installed.
set -eu
target=$1 source=$2/kernels stub=$2/tests/kernels/metal work=$3/accepted/$1
: "${HEADERS:?}" "${MIXED:?}" "${PLAIN:?}" "${WEIGHTED:?}" "${VARIANTS:?}"

# The kernels that are compiled for a variant.
kernels_of()
{
    if [ "${1%:*}" = "${1#*:}" ]; then
        echo "$PLAIN $WEIGHTED"
    else
        echo "$WEIGHTED"
    fi
}

# Prints the definitions for the kernels of a variant.
define()
{
    act=${1%:*} wgt=${1#*:}
    printf '#undef ACT\n#undef WGT\n#undef KERNEL_NAME\n'
    printf '#define ACT %s\n#define WGT %s\n#define KERNEL_NAME(name) name##_%s_%s\n' "$act" "$wgt" "$act" "$wgt"
}

texts()
{
    for text; do
        cat "$source/$text"
    done
}

kernels=$(echo "$MIXED" | wc -w)
for variant in $VARIANTS; do
    kernels=$((kernels + $(kernels_of "$variant" | wc -w)))
done

skip()
{
    echo "$1 is not installed"
    exit 77
}

# Prints the first of these programs that is installed.
find_program()
{
    for program; do
        command -v "$program" && return 0
    done
    return 1
}

# Prints the beginning of every program in dialect $1.
begin()
{
    # shellcheck disable=SC2086 # a list of files
    texts "dialect/$1.h" $HEADERS
}

# All kernels in one text of dialect $1. A variant is a namespace, and a suffix to its kernels' names.
assemble()
{
    begin "$1"
    for name in $MIXED; do
        texts "$name.c"
    done
    for variant in $VARIANTS; do
        define "$variant"
        echo "namespace types_${variant%:*}_${variant#*:} {"
        for name in $(kernels_of "$variant"); do
            texts "$name.c"
        done
        echo '}'
    done
}

# Fails unless the compiler's output ($1) has one line with $2 per kernel.
count()
{
    found=$(grep -c -e "$2" "$1") || true
    if [ "$found" -ne "$kernels" ]; then
        echo "$1: $found kernels, not $kernels"
        exit 1
    fi
    echo "$found kernels: $1"
}

# Of several architectures of one vendor, the quick cases take one: the text is the same.
case $target in
nvcc-sm_90 | hip-gfx90a | hip-gfx942)
    [ -z "${HW_TEST_QUICK-}" ] || { echo "not applicable: the quick cases leave out this architecture" && exit 77; }
    ;;
esac

mkdir -p "$work"
case $target in
opencl)
    clang=$(find_program clang clang-14) || skip clang
    rm -f "$work"/*.cl "$work"/*.ll
    { begin opencl
      for name in $MIXED; do
          texts "$name.c"
      done; } >"$work/mixed.cl"
    for variant in $VARIANTS; do
        { define "$variant"
          begin opencl
          for name in $(kernels_of "$variant"); do
              texts "$name.c"
          done; } >"$work/${variant%:*}_${variant#*:}.cl"
    done
    for program in "$work"/*.cl; do
        "$clang" -x cl -cl-std=CL1.2 -target spir64 -Wall -Wno-unused-function -Werror -pedantic \
            -S -emit-llvm -O1 -o "${program%.cl}.ll" "$program"
    done
    cat "$work"/*.ll >"$work/all.ll"
    count "$work/all.ll" '^define .*spir_kernel'
    # PoCL before 4.0 miscompiles functions that name group memory: see LOCAL_FUNC.
    awk '/^@.* addrspace\(3\) / { memory[$1] }
        /^}/ { name = "" }
        /^define / && !/spir_kernel/ { name = $0 }
        name != "" { for (m in memory) if (index($0, m)) wrong[name] }
        END { for (name in wrong) { print "group memory in a function: " name; status = 1 }
              exit status }' "$work/all.ll"
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
        -S -O1 -o "$work/all.s" "$work/all.hip"
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
