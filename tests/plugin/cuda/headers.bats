#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# cuda.def and driver.h, compared with NVIDIA's cuda.h by the compiler. $PLUGIN is the plugin's folder, $STANDIN that of
# vendor.hpp, $CUDA that of cuda.h, if the build found one.

setup()
{
    command -v g++ >/dev/null || skip "missing tool: g++"
    printf '#include <cuda.h>\n#if CUDA_VERSION < 12080\n#error old\n#endif\n' |
        g++ -x c++ ${CUDA:+"-I$CUDA"} -fsyntax-only - 2>/dev/null || skip "missing tool: cuda.h, of nvcc 12.8 or later"
    sed -E 's/"([A-Za-z0-9_]+)(\|[A-Za-z0-9_]+)*"/\1/' "$PLUGIN/cuda.def" >"$BATS_TEST_TMPDIR/listed.def"
    cp "$PLUGIN/driver.h" "$BATS_TEST_TMPDIR"
}

agrees()
{
    g++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -I"$BATS_TEST_TMPDIR" -I"$STANDIN" ${CUDA:+"-I$CUDA"} \
        "$BATS_TEST_DIRNAME/headers.cpp"
}

# differs FILE SCRIPT WORDS: with this change to the list, the compiler finds the difference.
differs()
{
    cp "$BATS_TEST_TMPDIR/$1" "$BATS_TEST_TMPDIR/whole"
    sed -i -E "$2" "$BATS_TEST_TMPDIR/$1"
    run ! cmp -s "$BATS_TEST_TMPDIR/$1" "$BATS_TEST_TMPDIR/whole"
    run ! agrees
    grep -qF -- "$3" <<<"$output"
    cp "$BATS_TEST_TMPDIR/whole" "$BATS_TEST_TMPDIR/$1"
}

@test "every function, constant and struct is NVIDIA's own" {
    agrees
}

@test "a list that differs is found" {
    bats_require_minimum_version 1.5.0
    differs listed.def 's/uint64_t \*address, size_t/uint32_t *address, size_t/' 'cuMemAlloc_v2 has another prototype'
    differs listed.def 's/const struct launch_config/const struct copy_rows/' 'cuLaunchKernelEx has another prototype'
    differs listed.def 's/ATTRIBUTE_UNITS, 16/ATTRIBUTE_UNITS, 17/' '_MULTIPROCESSOR_COUNT has another value'
    differs driver.h 's/int from_kind/long from_kind/' 'CUDA_MEMCPY2D::srcMemoryType lies elsewhere'
    differs driver.h 's/opaque\[16\]/opaque[8]/' 'cuTensorMapEncodeTiled has another prototype'
}
