#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# opencl.def and the errors of error.c, compared with Khronos' headers by the compiler. $PLUGIN is the plugin's folder,
# $STANDIN that of vendor.hpp.

setup()
{
    load "$STANDIN/headers"
    command -v g++ >/dev/null || skip "missing tool: g++"
    echo '#include <CL/cl_ext.h>' | g++ -x c++ -DCL_TARGET_OPENCL_VERSION=300 -fsyntax-only - 2>/dev/null ||
        skip "missing tool: Khronos' headers (opencl-c-headers)"
    list_functions "$PLUGIN/opencl.def"
    sed -nE 's/.*\{ (-[0-9]+), "(CL_[A-Z_]+)".*/CONSTANT(error, \1, \2)/p' "$PLUGIN/error.c" \
        >"$BATS_TEST_TMPDIR/errors.def"
    [ "$(grep -c . "$BATS_TEST_TMPDIR/errors.def")" -gt 10 ]
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
    differs errors.def 's/, -42/, -43/' 'CL_INVALID_BINARY has another value'
}
