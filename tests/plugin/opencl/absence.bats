#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The OpenCL plugin's messages where OpenCL is missing or incomplete. $HW is the command.

setup()
{
    unset HW_BACKENDS HW_DISABLE HW_REQUIRE
    mkdir "$BATS_TEST_TMPDIR/vendors"
    export OCL_ICD_VENDORS=$BATS_TEST_TMPDIR/vendors/
    CORRECT='). Correct or unset OCL_ICD_VENDORS, or HW_DISABLE=opencl to stop looking.'
}

# says WORDS...: the plugin's status contains the words, and the CPU still works.
says()
{
    "$HW" status >"$BATS_TEST_TMPDIR/status"
    cat "$BATS_TEST_TMPDIR/status"
    for words; do
        tr '\n' ' ' <"$BATS_TEST_TMPDIR/status" | grep -qF -- "$words"
    done
    "$HW" devices | grep -q '^cpu'
}

has_loader()
{
    ldconfig -p | grep -qF 'libOpenCL.so.1 ' || skip "missing tool: libOpenCL.so.1 (ocl-icd-libopencl1)"
}

# The variable sets where the library is searched. Without it, the installed library would be used.
@test "OCL_ICD_VENDORS is a directory without an implementation" {
    has_loader
    says "OCL_ICD_VENDORS is \"$OCL_ICD_VENDORS\", a directory without a file *.icd (CL_PLATFORM_NOT_FOUND_KHR" \
        "$CORRECT"
}

@test "OCL_ICD_VENDORS names a missing file" {
    has_loader
    local name
    for name in "$BATS_TEST_TMPDIR/none/" "$BATS_TEST_TMPDIR/none.icd" "$BATS_TEST_TMPDIR/libnone.so" none.icd; do
        OCL_ICD_VENDORS=$name says "OCL_ICD_VENDORS is \"$name\", which is not there (" "$CORRECT"
    done
    OCL_ICD_VENDORS=libnone.so says 'OCL_ICD_VENDORS is "libnone.so", a library that cannot be used (' "$CORRECT"
}

@test "the library of an implementation is missing" {
    has_loader
    echo /nowhere/libfoo.so >"$OCL_ICD_VENDORS/foo.icd"
    says "\"$OCL_ICD_VENDORS\", whose implementations of OpenCL (foo.icd) cannot be used (CL_PLATFORM" "$CORRECT"
    export OCL_ICD_VENDORS=$OCL_ICD_VENDORS/foo.icd
    says "OCL_ICD_VENDORS is \"$OCL_ICD_VENDORS\", which names a library that cannot be used (CL_PLATFORM" "$CORRECT"
}

@test "the library of an implementation is a text" {
    has_loader
    echo text >"$BATS_TEST_TMPDIR/libfoo.so"
    echo "$BATS_TEST_TMPDIR/libfoo.so" >"$OCL_ICD_VENDORS/foo.icd"
    says "whose implementations of OpenCL (foo.icd) cannot be used" "$CORRECT"
    OCL_ICD_VENDORS=$BATS_TEST_TMPDIR/libfoo.so says 'libfoo.so", which cannot be used (' "$CORRECT"
}

@test "libOpenCL.so.1 is a text" {
    echo text >"$BATS_TEST_TMPDIR/libOpenCL.so.1"
    LD_LIBRARY_PATH=$BATS_TEST_TMPDIR:$LD_LIBRARY_PATH \
        says "cannot open libOpenCL.so.1" "Install the OpenCL driver of your device's vendor"
}

@test "libOpenCL.so.1 is another library" {
    cp "${HW_PLUGIN_PATH%:!}/hw_cpu.so" "$BATS_TEST_TMPDIR/libOpenCL.so.1"
    LD_LIBRARY_PATH=$BATS_TEST_TMPDIR:$LD_LIBRARY_PATH \
        says "libOpenCL.so.1 has no function clGetPlatformIDs" "Install the OpenCL driver of your device's vendor"
}

@test "rusticl of Mesa 22 is refused" {
    has_loader
    driver=$(RUSTICL_ENABLE=llvmpipe OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd \
        clinfo --raw 2>/dev/null | sed -n 's/.*CL_DRIVER_VERSION *//p')
    [ "${driver%%.*}" = 22 ] || skip "not applicable: no clinfo, or no rusticl of Mesa 22"
    RUSTICL_ENABLE=llvmpipe OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd \
        says "no OpenCL device can be used" "rusticl of Mesa 22 damages the memory of the process"
}
