#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The OpenCL plugin under Oclgrind, which finds races, uninitialised values, stray accesses and wrong calls. Its exit
# status is useless: if it has found nothing, its log is empty or missing. $CHECKOPS is the program.

setup()
{
    [ -e /usr/lib/oclgrind/liboclgrind-rt-icd.so ] || skip "missing tool: Oclgrind (oclgrind)"
    echo /usr/lib/oclgrind/liboclgrind-rt-icd.so >"$BATS_TEST_TMPDIR/oclgrind.icd"
    unset HW_DISABLE HW_REQUIRE HW_MEMORY_LIMIT
    # hw-probe would run its cases under Oclgrind first, for each process again.
    export HW_BACKENDS=opencl HW_CACHE_DIR=off HW_PROBE=inproc OCL_ICD_VENDORS=$BATS_TEST_TMPDIR/oclgrind.icd
    # It lacks some instructions that optimisers generate.
    export OCLGRIND_BUILD_OPTIONS=-cl-opt-disable OCLGRIND_LOG=$BATS_TEST_TMPDIR/log
    export OCLGRIND_DATA_RACES=1 OCLGRIND_UNINITIALIZED=1 OCLGRIND_CHECK_API=1 OCLGRIND_MAX_ERRORS=10
}

not_quick()
{
    [ -z "$HW_TEST_QUICK" ] || skip "not applicable: the quick cases take the portable kernels with group memory alone"
}

# clean CASE...: fails unless each case passes and Oclgrind reports nothing. $row: only with this row.
clean()
{
    for case; do
        "$CHECKOPS" ${row+-k "$row"} -p "$case"
        if [ -s "$OCLGRIND_LOG" ]; then
            head -n 40 "$OCLGRIND_LOG"
            return 1
        fi
    done
}

# Oclgrind 21.10 lacks llvm.experimental.noalias.scope.decl, which inlining generates in layernorm. tests/recipe looks
# whether each other op is here.
@test "kernels that sum and search in group memory" {
    clean 'argmax(type=f32,shape=3x31,data=steps,keep=0)' \
        'dot(a=f32,b=f32,y=f32,shape=3x31,keep=0)' 'rmsnorm(type=bf16,weight=f32,shape=2x3x129)' \
        'softmax(type=f32,shape=3x31,log=0,data=uniform)' 'top_k(type=f32,shape=31,k=1,data=steps,values=0)' \
        'add_rmsnorm(type=f16,weight=same,shape=3x31)'
}

@test "kernels with tiles in group memory" {
    row=matmul clean 'matmul(a=f32,b=f32,c=f32,m=3,n=33,k=31)'
    row=attention clean 'attention(type=f32,kv=f32,tq=1,tmax=17,hq=4,hkv=2,causal=1)'
    clean 'matmul_id(a=f32,b=f32,c=f32,n=33,k=31,tokens=1,shared=0)' \
        'rope(type=f32,shape=2x3x64,interleaved=0,start=17)' 'conv2d(cin=3,cout=2,kh=3,kw=2,h=7,w=5,ph=1,pw=1,batch=2)'
}

# Oclgrind takes a second for some ten thousand instructions: each row runs by itself, on little more than one tile.
@test "tuned kernels" {
    not_quick
    row=matmul_tile clean 'matmul(m=33,n=34,k=20,b=f32,ta=0,tb=1)' 'matmul(m=36,n=36,k=24,b=f16,ta=1,tb=0)'
    row=matmul_stream clean 'matmul(a=f32,b=q8_0,c=f32,tb=1,m=1,n=33,k=96)'
    for row in attention_rows attention_split; do
        clean 'attention(kv=q8_0,tq=1,tmax=150,d=64,dv=32,hq=4,hkv=2,lengths=mixed,window=70,causal=1)'
    done
}

@test "products of bytes" {
    not_quick
    # A CPU has this row only with matmul_block, which needs this much group memory.
    export HW_PRECISION=int8 OCLGRIND_LOCAL_MEM_SIZE=196608
    row=matmul_dots clean 'matmul(a=f32,b=q8_0,c=f32,tb=1,m=5,n=33,k=96)'
}

# These have no races.
@test "kernels without group memory" {
    not_quick
    clean 'activation(kind=gelu,type=f32,shape=3x31)' 'add(type=f32,shape=3x31)' \
        'get_rows(table=q4_0,y=f32,cols=32,pick=spread,data=uniform)' \
        'set_rows(x=f32,table=q8_0,cols=32,pick=spread,data=uniform)' 'silu(type=f32,shape=3x31)' \
        'mul(type=f32,shape=3x31)' 'div(type=f32,shape=3x31,b=f16)' 'sub(type=f32,shape=3x31)' \
        'scale(type=f32,shape=3x31)' 'swiglu(type=f32,shape=3x33,packed=1)' 'glu(kind=gelu,type=f32,shape=3x31)' \
        'copy(src=f32,dst=q8_0,shape=3x64,data=uniform)' 'copy(src=f16,dst=f32,shape=3x64,data=steps)'
}
