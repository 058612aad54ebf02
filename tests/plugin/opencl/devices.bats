#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The devices that the OpenCL plugin shows, their facts, and the devices that it leaves out: on a stand-in, whose
# answers the variables STANDIN_* choose. $HW is the command, $STANDIN the stand-in's folder.

setup()
{
    unset HW_DISABLE HW_REQUIRE STANDIN_FAIL STANDIN_PLATFORM STANDIN_VENDOR STANDIN_DRIVER STANDIN_EXTENSIONS \
        STANDIN_NUMBERS STANDIN_SECOND
    export HW_BACKENDS=opencl STANDIN_DEVICES='3.0 3.0'
    export LD_LIBRARY_PATH=$STANDIN:${LD_LIBRARY_PATH-}
}

# says WORDS...: the status has the words.
says()
{
    "$HW" status >"$BATS_TEST_TMPDIR/status" 2>&1 || true
    cat "$BATS_TEST_TMPDIR/status"
    for words; do
        tr -s '\n ' ' ' <"$BATS_TEST_TMPDIR/status" | grep -qF -- "$words"
    done
}

# facts: prints the facts of each device as JSON.
facts()
{
    "$HW" devices --json >"$BATS_TEST_TMPDIR/facts"
    cat "$BATS_TEST_TMPDIR/facts"
}

# holds EXPRESSION: succeeds if the Python expression is true for the devices d.
holds()
{
    facts | python3 -c '
import json, sys
d = json.load(sys.stdin)["devices"]
sys.exit(0 if eval(sys.argv[1]) else "not so: " + sys.argv[1] + " " + json.dumps(d))' "$1"
}

@test "a device that cannot run the kernels is left out, with the reason" {
    local number why
    while IFS=: read -r number why; do
        STANDIN_NUMBERS=$number says '[0] Stand-in 0' "[-] Stand-in 1 (not used: $why)"
    done <<'END'
0x1027=0:it is not available
0x1028=0:it has no compiler
0x1026=0:it is big-endian
0x1004=16:its groups have fewer than 32 work-items
END
    STANDIN_DEVICES='1.1 3.0 1.0' says '[0] Stand-in 1' '[-] Stand-in 0 (not used: it has no OpenCL 1.2)' \
        '[-] Stand-in 2 (not used: it has no OpenCL 1.2)'
}

@test "where all are left out, the reason of one is the plugin's" {
    STANDIN_DEVICES='1.1 1.0' says "no OpenCL device can be used: Stand-in 0: it has no OpenCL 1.2. Install" \
        '[-] Stand-in 1 (not used: it has no OpenCL 1.2)'
    STANDIN_FAIL=get_devices:0:-6 says \
        'no OpenCL device can be used: Stand-in: cannot list its devices: CL_OUT_OF_HOST_MEMORY (-6)'
    STANDIN_FAIL=get_devices:0:-32 says 'Stand-in: cannot list its devices: CL_INVALID_PLATFORM (-32)'
    STANDIN_FAIL=get_devices:0:-1 says \
        'no OpenCL device can be used: Stand-in: the implementation lists no device'
}

# Which of the two messages appears depends on this machine.
@test "where there is no implementation, it has to be installed, or installed again" {
    unset OCL_ICD_VENDORS
    export STANDIN_DEVICES=
    if compgen -G '/etc/OpenCL/vendors/*.icd'; then
        says 'the implementations of OpenCL in /etc/OpenCL/vendors (' \
            ") cannot be used (CL_PLATFORM_NOT_FOUND_KHR). Reinstall the OpenCL driver of your device's vendor, or HW_"
    else
        says "no OpenCL implementation is installed (CL_PLATFORM_NOT_FOUND_KHR). Install the OpenCL driver of your" \
            "device's vendor, or HW_DISABLE=opencl to stop looking."
    fi
    OCL_ICD_VENDORS=/nonexistent/ says 'OCL_ICD_VENDORS is "/nonexistent/", which is not there (CL_PLATFORM_NOT_FOUND'
}

@test "rusticl of Mesa 22 is left out, a later one is not" {
    export STANDIN_PLATFORM=rusticl
    STANDIN_DRIVER=22.3.6 says 'rusticl of Mesa 22 damages the memory of the process; install Mesa 23 or later'
    STANDIN_DRIVER=23.1.0 says '[0] Stand-in 0' '[1] Stand-in 1'
}

@test "devices of all implementations are shown, whatever becomes of one" {
    export STANDIN_SECOND=rusticl
    STANDIN_DRIVER=23.1.0 says '[0] Stand-in 0' '[1] Stand-in 1'
    STANDIN_DRIVER=22.3.6 says '[0] Stand-in 0' '[-] Stand-in 1 (not used: rusticl of Mesa 22 damages'
    # The plugin is opened twice.
    STANDIN_FAIL=get_devices:1:-6,get_devices:3:-6 says '[0] Stand-in 1' \
        '[-] Stand-in (not used: cannot list its devices: CL_OUT_OF_HOST_MEMORY (-6))'
    STANDIN_FAIL=get_devices:2:-1,get_devices:4:-1 says '[0] Stand-in 0' \
        '[-] rusticl (not used: the implementation lists no device)'
    STANDIN_FAIL=platform_info:1:-6,platform_info:3:-6 says '[0] Stand-in 1' \
        '[-] a platform (not used: cannot read its name: CL_OUT_OF_HOST_MEMORY (-6))'
}

@test "PoCL 5 is not given matmul_id, others are" {
    row()
    {
        STANDIN_DRIVER=$1 STANDIN_DEVICES=3.0 HW_LOG=info "$HW" devices --kernels >"$BATS_TEST_TMPDIR/rows" \
            2>"$BATS_TEST_TMPDIR/log"
        cat "$BATS_TEST_TMPDIR/rows" "$BATS_TEST_TMPDIR/log"
        grep -qE "matmul_id +$2\$" "$BATS_TEST_TMPDIR/rows"
    }
    export STANDIN_PLATFORM='Portable Computing Language'
    row 3.1 'matmul_id: .*'
    grep 'needs care: the scores of attention are wrong in larger groups' "$BATS_TEST_TMPDIR/log"
    row 5.0 'matmul_id \(not for this device\): .*'
    grep 'needs care: PoCL 5 compiles matmul_id wrong' "$BATS_TEST_TMPDIR/log"
    STANDIN_PLATFORM=Other row 5.0 'matmul_id: .*'
    run ! grep 'needs care' "$BATS_TEST_TMPDIR/log"
}

@test "Intel's compiler is told that it contracts, others are not" {
    built()
    {
        rm -rf "$BATS_TEST_TMPDIR/cache"
        STANDIN_PLATFORM=$1 HW_CACHE_DIR=$BATS_TEST_TMPDIR/cache "$HW" verify opencl:0 -c 'add(type=f32,shape=3x31)'
        head -qn 2 "$BATS_TEST_TMPDIR"/cache/opencl/* >"$BATS_TEST_TMPDIR/built"
        grep -qa -- '-cl-std=CL1.2 ' "$BATS_TEST_TMPDIR/built"
    }
    built 'Intel(R) OpenCL'
    grep -qa -- -DHW_CONTRACTS "$BATS_TEST_TMPDIR/built"
    built 'Intel(R) OpenCL Graphics'
    run ! grep -qa -- -DHW_CONTRACTS "$BATS_TEST_TMPDIR/built"
}

@test "products of bytes are for devices with dot products in hardware, and OpenCL 3.0" {
    row()
    {
        "$HW" devices --kernels | tee "$BATS_TEST_TMPDIR/rows"
        grep -qE "matmul_dots$1: " "$BATS_TEST_TMPDIR/rows"
    }
    export HW_PRECISION=int8 STANDIN_DEVICES=3.0 STANDIN_EXTENSIONS=cl_khr_integer_dot_product \
        STANDIN_NUMBERS='0x1075=1 0x1023=32768'
    row ''
    local no=' \(not for this device\)'
    HW_PRECISION=fp16 row "$no"
    STANDIN_DEVICES=2.0 row "$no"
    STANDIN_EXTENSIONS=cl_khr_fp16 row "$no"
    STANDIN_NUMBERS='0x1023=32768' row "$no"
}

@test "a device is known by its UUID and its place, or by its names" {
    export STANDIN_EXTENSIONS='cl_khr_pci_bus_info cl_khr_device_uuid'
    holds '[x["pci"] for x in d] == ["0000:40:03.1", "0000:41:03.1"]'
    holds '[x["uuid"][:4] for x in d] == ["ab00", "ab01"]'
    export STANDIN_EXTENSIONS='xcl_khr_pci_bus_info cl_khr_device_uuids cl_khr_fp16' # neither of them
    holds 'not any(x["pci"] for x in d) and len({x["uuid"] for x in d}) == 2'
    holds 'all(x["uuid"][14] == "8" for x in d)'
    facts >"$BATS_TEST_TMPDIR/first"
    STANDIN_DRIVER=1 facts | diff "$BATS_TEST_TMPDIR/first" -
    holds 'all(x["features"] == ["f16"] for x in d)'
    export STANDIN_DRIVER=2
    run ! diff "$BATS_TEST_TMPDIR/first" <(facts)
}

@test "HW_BACKENDS selects by the vendor's name" {
    export HW_BACKENDS='opencl:*amd*'
    STANDIN_VENDOR='Advanced Micro Devices, Inc.' holds '[x["vendor"] for x in d] == ["AMD", "AMD"]'
    STANDIN_VENDOR=AuthenticAMD says '[0] Stand-in 0' '[1] Stand-in 1'
    STANDIN_VENDOR='NVIDIA Corporation' says '"opencl:*amd*": no such device'
}

@test "facts are the device's" {
    holds 'd[1]["kind"] == "discrete" and d[1]["units"] == 2 and d[1]["memory_total"] == 4 << 30'
    export STANDIN_NUMBERS='0x1000=2 0x1002=7 0x101F=5000000000 0x1010=123456789 0x1019=32768'
    holds 'd[0]["kind"] == "discrete" and d[1]["kind"] == "software" and d[1]["units"] == 7'
    holds 'd[1]["memory_total"] == 5000000000 and d[1]["buffer_max"] == 123456789'
    holds 'd[1]["buffer_alignment"] == 4096 and d[0]["buffer_alignment"] == 256'
    export STANDIN_NUMBERS='0x1035=1'
    holds 'd[1]["kind"] == "integrated" and "unified-memory" in d[1]["features"]'
    STANDIN_EXTENSIONS=cl_khr_integer_dot_product holds 'd[0]["features"] == ["int8-dot"]'
}

@test "a module for one vendor shows its devices, and a device appears once" {
    [ -e "${HW_PLUGIN_PATH%:!}/hw_opencl_amd.so" ] || skip "not applicable: built without -Dopencl_vendors=amd"
    export STANDIN_NUMBERS='0x1001=4098' HW_BACKENDS='opencl*'
    says 'OpenCL (opencl) [0] Stand-in 0: 4 GiB [1] Stand-in 1: 4 GiB ' \
        'OpenCL, devices of amd (opencl_amd) [0] Stand-in 1: 4 GiB (not used: ' \
        'no OpenCL device of intel can be used'
    HW_BACKENDS=opencl_amd says 'OpenCL, devices of amd (opencl_amd) [0] Stand-in 1: 4 GiB '
}

@test "a module for one vendor shows devices of the vendor's name, whatever their number" {
    [ -e "${HW_PLUGIN_PATH%:!}/hw_opencl_amd.so" ] || skip "not applicable: built without -Dopencl_vendors=amd"
    export STANDIN_NUMBERS='0x1001=1620049922' HW_BACKENDS=opencl_amd
    STANDIN_VENDOR='Advanced Micro Devices, Inc.' says '[0] Stand-in 0' '[1] Stand-in 1'
    STANDIN_VENDOR=AMD says '[0] Stand-in 0' '[1] Stand-in 1'
    STANDIN_VENDOR=ARM says 'no OpenCL device of amd can be used'
}
