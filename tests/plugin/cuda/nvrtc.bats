#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# plugins/cuda/nvrtc.py, with which a build without nvcc compiles kernels.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_DIRNAME/../../.." || exit 1
    nvrtc=$PWD/plugins/cuda/nvrtc.py
    version=$("$nvrtc" --version) || skip "NVRTC (libnvrtc.so) is not installed"
    out=$BATS_TEST_TMPDIR/heads.sm_90a.cubin
}

# compiled SOURCE: compiles a cubin the way meson.build does if it is not among the images.
compiled()
{
    local nobody="made no image"
    plugins/cuda/images.sh compile same "$nobody" "$nvrtc" -cubin -arch=sm_90a -MD -MF "$out.d" -Ikernels -o "$out" "$1"
}

@test "NVRTC accepts the kernels of every cubin" {
    known=$("$nvrtc" --list-gpu-arch)
    [[ $known == *compute_120* ]] || skip "not applicable: $version does not know compute capability 12.0"
    count=0
    for cubin in plugins/cuda/images/*.cubin; do
        image=$(basename "$cubin" .cubin)
        source=plugins/cuda/kernels/${image%%.*}.cu
        run "$nvrtc" -fdevice-syntax-only "-arch=${image##*.}" -Ikernels "$source"
        [[ $status -eq 0 && -z $output ]] || { echo "$image: $output" && false; }
        count=$((count + 1))
    done
    [ $count -gt 0 ]
}

@test "NVRTC makes a cubin, and a depfile names what it was made from" {
    compiled plugins/cuda/kernels/heads.cu
    readelf -h "$out" | grep -q 'NVIDIA CUDA'
    readelf -sW "$out" | grep -q ' FUNC .* heads_move$'
    grep -q "^$out:" "$out.d"
    grep -qF kernels/rope.c "$out.d"
}

@test "NVRTC makes PTX, with what is defined" {
    arch=$("$nvrtc" --list-gpu-arch | head -n 1)
    echo 'extern "C" __attribute__((global)) void NAME(int *p) { *p = 1; }' >"$BATS_TEST_TMPDIR/one.cu"
    "$nvrtc" -ptx "-arch=${arch/compute/sm}" -DNAME=one -MD -MF "$out.d" -o "$out" "$BATS_TEST_TMPDIR/one.cu"
    grep -q '\.entry one(' "$out"
    [ "$(tr -d '\0' <"$out" | wc -c)" -eq "$(wc -c <"$out")" ]
}

@test "what NVRTC says about an error is printed, and nothing is written" {
    echo 'extern "C" __attribute__((global)) void one(int *p) { *p = nowhere; }' >"$BATS_TEST_TMPDIR/one.cu"
    run -1 compiled "$BATS_TEST_TMPDIR/one.cu"
    [[ $output == *'one.cu(1): error: identifier "nowhere" is undefined'* ]]
    [ ! -e "$out" ]
}

@test "matrix units that wait for each other are an error with NVRTC, too" {
    cat >"$BATS_TEST_TMPDIR/waits.cu" <<'EOF'
extern "C" __attribute__((global)) void waits(float *p, unsigned long long at, int n)
{
    float v[4] = { p[0], p[1], p[2], p[3] };
    for (int i = 0; i < n; i++) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %4, 1, 1, 1, 0, 0;"
                     : "+f"(v[0]), "+f"(v[1]), "+f"(v[2]), "+f"(v[3])
                     : "l"(at));
        v[0] *= 2.0f;
    }
    for (int i = 0; i < 4; i++)
        p[i] = v[i];
}
EOF
    run -1 compiled "$BATS_TEST_TMPDIR/waits.cu"
    [[ $output == *"(C75"* ]]
}
