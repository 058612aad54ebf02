/* SPDX-License-Identifier: MIT */
/* CUDA C++ (nvcc, NVRTC, clang). It needs no header of the toolkit, and none that
 * a compiler includes by itself: positions and conversions are written in PTX. */
#ifndef KERNEL_NAME
#define KERNEL_NAME(name) name
#endif
#define KERNEL(name) extern "C" __attribute__((global)) void KERNEL_NAME(name)
#define FUNC         static inline __attribute__((device))
#define LOCAL_FUNC   FUNC
#define LOOP_FUNC    FUNC
#define GLOBAL
#define LOCAL
#define SHARED __attribute__((shared))
#define PRIVATE
#define ARGS(type) type
#define GRID
#define BARRIER() __syncthreads()

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;

FUNC int group_id()
{
    int i;
    asm("mov.u32 %0, %%ctaid.x;" : "=r"(i));
    return i;
}

FUNC int local_id()
{
    int i;
    asm("mov.u32 %0, %%tid.x;" : "=r"(i));
    return i;
}

FUNC float f32_of_bits(u32 u)
{
    float f;
    asm("mov.b32 %0, %1;" : "=f"(f) : "r"(u));
    return f;
}

FUNC u32 bits_of_f32(float f)
{
    u32 u;
    asm("mov.b32 %0, %1;" : "=r"(u) : "f"(f));
    return u;
}

FUNC float mul_exact(float a, float b)
{
    float f;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(f) : "f"(a), "f"(b));
    return f;
}

FUNC float sqrt_f32(float x)
{
    float f;
    asm("sqrt.rn.f32 %0, %1;" : "=f"(f) : "f"(x));
    return f;
}

FUNC float f32_of_f16(u16 h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}

FUNC u16 f16_of_f32(float f)
{
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
