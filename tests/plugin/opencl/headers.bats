#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The compiler compares opencl.def with Khronos' headers. $PLUGIN is the plugin's folder, $STANDIN the folder of
# vendor.hpp.

setup()
{
    load "$STANDIN/headers"
    command -v g++ >/dev/null || skip "missing tool: g++"
    echo '#include <CL/cl_ext.h>' | g++ -x c++ -DCL_TARGET_OPENCL_VERSION=300 -fsyntax-only - 2>/dev/null ||
        skip "missing tool: Khronos' headers (opencl-c-headers)"
    list_functions "$PLUGIN/opencl.def"
}

@test "every function, constant and error is Khronos' own" {
    agrees
}

@test "a list that differs is found" {
    bats_require_minimum_version 1.5.0
    differs listed.def 's/get_platforms, \(uint32_t/get_platforms, (uint64_t/' 'clGetPlatformIDs has another prototype'
    differs listed.def 's/flush, \(void \*queue/&, int more/' 'clFlush has another prototype'
    differs listed.def 's/\(void \*kernel, uint32_t index/(void **kernel, uint32_t index/' 'clSetKernelArg has another'
    differs listed.def 's/, size_t size, const void \*value/, void *value, size_t size/' 'clSetKernelArg has another'
    differs listed.def 's/void \*\*platforms/void *const *platforms/' 'clGetPlatformIDs has another prototype'
    differs listed.def 's/\(int, release_event/(void *, release_event/' 'clReleaseEvent has another prototype'
    differs listed.def 's/DEVICE_NAME, 0x102B/DEVICE_NAME, 0x102C/' 'CL_DEVICE_NAME has another value'
    differs listed.def 's/BINARY, -42/BINARY, -43/' 'CL_INVALID_BINARY has another value'
}

# Errors of OpenCL 3.0 are -1 to -72; a later version may have more. Build results and exponents are not errors.
@test "every error of Khronos' header is listed" {
    echo '#include <CL/cl.h>' | g++ -x c++ -DCL_TARGET_OPENCL_VERSION=300 -E -dM - |
        sed -nE 's/^#define CL_([A-Z_]+) +(-[0-9]+)$/FAILURE(\1, \2,/p' |
        grep -vE 'BUILD_(NONE|ERROR|IN_PROGRESS)|_EXP,' >"$BATS_TEST_TMPDIR/theirs"
    [ "$(grep -c . "$BATS_TEST_TMPDIR/theirs")" -gt 60 ]
    while read -r error; do
        number=${error##*-}
        [ "${number%,}" -gt 72 ] || grep -F "$error" "$PLUGIN/opencl.def"
    done <"$BATS_TEST_TMPDIR/theirs"
}
