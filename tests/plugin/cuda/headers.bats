#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The compiler compares cuda.def, driver.h and nvrtc.def with NVIDIA's cuda.h and nvrtc.h. $PLUGIN is the plugin's
# folder, $STANDIN the folder of vendor.hpp, $CUDA the folder of NVIDIA's headers, if the build found them.

setup()
{
    load "$STANDIN/headers"
    command -v g++ >/dev/null || skip "missing tool: g++"
    printf '#include <cuda.h>\n#include <nvrtc.h>\n#if CUDA_VERSION < 12080\n#error old\n#endif\n' |
        g++ -x c++ ${CUDA:+"-I$CUDA"} -fsyntax-only - 2>/dev/null || skip "missing tool: cuda.h, of nvcc 12.8 or later"
    list_functions "$PLUGIN/cuda.def"
    sed 's/"//g' "$PLUGIN/nvrtc.def" >"$BATS_TEST_TMPDIR/nvrtc.def"
    cp "$PLUGIN/driver.h" "$BATS_TEST_TMPDIR"
}

@test "every function, constant and struct is NVIDIA's own" {
    agrees
}

@test "a list that differs is found" {
    bats_require_minimum_version 1.5.0
    differs listed.def 's/uint64_t \*address, size_t/uint32_t *address, size_t/' 'cuMemAlloc_v2 has another prototype'
    differs listed.def 's/const struct launch_config/const struct copy_rows/' 'cuLaunchKernelEx has another prototype'
    differs listed.def 's/ATTRIBUTE_UNITS, 16/ATTRIBUTE_UNITS, 17/' '_MULTIPROCESSOR_COUNT has another value'
    differs nvrtc.def 's/size_t \*bytes/unsigned *bytes/' 'nvrtcGetProgramLogSize has another prototype'
    differs driver.h 's/int from_kind/long from_kind/' 'CUDA_MEMCPY2D::srcMemoryType lies elsewhere'
    differs driver.h 's/opaque\[16\]/opaque[8]/' 'cuTensorMapEncodeTiled has another prototype'
}
