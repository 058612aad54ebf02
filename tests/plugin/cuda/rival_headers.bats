#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# hw-rival's cudnn.def, compared with NVIDIA's cudnn.h by the compiler. $DEF is the list, $STANDIN the folder of
# vendor.hpp, $CUDA that of the header, if the build found it.

setup()
{
    load "$STANDIN/headers"
    export COMPARED=rival_headers.cpp
    command -v g++ >/dev/null || skip "missing tool: g++"
    printf '#include <cudnn.h>\n#if CUDNN_MAJOR != 9\n#error other\n#endif\n' |
        g++ -x c++ ${CUDA:+"-I$CUDA"} -fsyntax-only - 2>/dev/null || skip "not applicable: no cudnn.h of cuDNN 9"
    list_functions "$DEF"
}

@test "every function and constant is NVIDIA's own" {
    agrees
}

@test "a list that differs is found" {
    bats_require_minimum_version 1.5.0
    differs listed.def 's/int type, int64_t count, const/int type, int count, const/' \
        'cudnnBackendSetAttribute has another prototype'
    differs listed.def 's/TENSOR_ID, 906/TENSOR_ID, 905/' 'CUDNN_ATTR_TENSOR_UNIQUE_ID has another value'
}
