#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the CUDA plugin says where the driver or a device is missing or too old. $HW is the command, $STANDIN the folder
# of the stand-in for the driver, $CODE the header with the version of CUDA that the build's machine code needs.

setup()
{
    unset HW_DISABLE HW_REQUIRE STANDIN_FAIL STANDIN_DEVICES
    export HW_BACKENDS='cuda?,*' # the machine has no such hardware, so its name says that the plugin is to be tried
    export LD_LIBRARY_PATH=$STANDIN:${LD_LIBRARY_PATH-}
}

# says WORDS...: the status of the plugin has the words; the CPU can be used all the same.
says()
{
    "$HW" status >"$BATS_TEST_TMPDIR/status" 2>&1
    cat "$BATS_TEST_TMPDIR/status"
    for words; do
        tr -s '\n ' ' ' <"$BATS_TEST_TMPDIR/status" | grep -qF -- "$words"
    done
    "$HW" devices 2>/dev/null | grep -q '^cpu'
}

@test "the driver is there" {
    says "CUDA (cuda) [0] Stand-in 0: 4 GiB" "Recommended backend: cuda"
}

@test "the driver's library is a text" {
    echo text >"$BATS_TEST_TMPDIR/libcuda.so.1"
    LD_LIBRARY_PATH=$BATS_TEST_TMPDIR:$LD_LIBRARY_PATH says "libcuda.so.1" \
        "Install the NVIDIA driver, version 470 or later"
}

@test "the driver is too old" {
    sed 's/cuGraphInstantiateWithFlags/cuGraphInstantiateWithWords/g' "$STANDIN/libcuda.so.1" \
        >"$BATS_TEST_TMPDIR/libcuda.so.1"
    LD_LIBRARY_PATH=$BATS_TEST_TMPDIR:$LD_LIBRARY_PATH says \
        "has no function cuGraphInstantiateWithFlags, so it is too old for this plugin" \
        "Install the NVIDIA driver, version 470 or later"
}

@test "the driver is older than the kernels' machine code" {
    local older
    older=$(awk '$2 == "MACHINE_CODE_CUDA" { print int($3 / 1000) - 1 ".9" }' "$CODE")
    export STANDIN_CUDA=$older
    STANDIN_DEVICES='7.5 9.0' says "[0] Stand-in 0: 4 GiB" "[1] Stand-in 1: 4 GiB" \
        "[-] tuned kernels (not used: the driver (CUDA $older) is older than the kernels' machine code (CUDA " \
        "): portable kernels are used; "
    [ "$(grep -c 'is older than' "$BATS_TEST_TMPDIR/status")" -eq 1 ]
    STANDIN_DEVICES=7.5 says "[0] Stand-in 0: 4 GiB" # which has no tuned kernels
    ! grep -q 'is older than' "$BATS_TEST_TMPDIR/status"
}

@test "the driver finds no function by its version" {
    sed 's/cuGetProcAddress_v2/cuGetProcAddress_v0/g' "$STANDIN/libcuda.so.1" >"$BATS_TEST_TMPDIR/libcuda.so.1"
    LD_LIBRARY_PATH=$BATS_TEST_TMPDIR:$LD_LIBRARY_PATH says "CUDA (cuda) [0] Stand-in 0: 4 GiB"
}

@test "the driver does not start" {
    STANDIN_FAIL=init:1:803,init:2:803 says \
        "cannot start the driver: system has unsupported display driver / cuda driver combination" \
        "(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)"
}

@test "there is no device" {
    STANDIN_DEVICES='' says "cannot start the driver: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, 100)"
}

# places: the PCI address and the UUID of the CUDA device.
places()
{
    "$HW" devices --json 2>/dev/null |
        python3 -c 'import json, sys
print(*[(d["pci"], d["uuid"]) for d in json.load(sys.stdin)["devices"] if d["backend"] == "cuda"])'
}

@test "a part of a card has a UUID, and not the PCI address of the card" {
    export STANDIN_DEVICES=7.5
    [[ $(places) == "('0000:"*"', '10"* ]]
    STANDIN_PART=' MIG 1g.10gb' places | grep "^(None, '10"
}

@test "an old device is left out" {
    export STANDIN_DEVICES='3.7 7.5'
    says "CUDA (cuda) [0] Stand-in 1" \
        "[-] Stand-in 0 (not used: it has compute capability 3.7; this plugin needs 5.0 or later)"
}

@test "all devices are old" {
    STANDIN_DEVICES='3.7 3.0' says \
        "no device has compute capability 5.0 or later: Stand-in 0: it has compute capability 3.7" \
        "[-] Stand-in 1 (not used: it has compute capability 3.0;"
}

@test "the rival is named if it is missing" {
    echo text | tee "$BATS_TEST_TMPDIR/libcublasLt.so.13" >"$BATS_TEST_TMPDIR/libcublasLt.so.12"
    LD_LIBRARY_PATH=$BATS_TEST_TMPDIR:$LD_LIBRARY_PATH run "$RIVAL" -d cuda:0 bf16:64x48x32
    [ "$status" -eq 1 ]
    grep -qF 'libcublasLt.so.13 or .12 was not found: set LD_LIBRARY_PATH to its folder' <<<"$output"
}

@test "there is no hardware of the vendor's" {
    for file in /dev/nvidiactl /dev/nvhost-ctrl-gpu /dev/dxg; do
        [ ! -e "$file" ] || skip "not applicable: $file is there"
    done
    [ -d /sys/bus/pci/devices ] || skip "not applicable: the system does not list PCI devices"
    ! grep -qs 'PCI_ID=10DE' /sys/bus/pci/devices/*/uevent || skip "not applicable: there is NVIDIA hardware"
    unset HW_BACKENDS
    says "- CUDA (cuda): no NVIDIA hardware here"
    run "$HW" explain cuda # it fails, because the plugin cannot be used
    grep -qF "the system lists no NVIDIA hardware for it" <<<"$output"
    grep -qF "HW_BACKENDS=cuda tries the plugin all the same" <<<"$output"
}
