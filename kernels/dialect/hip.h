/* SPDX-License-Identifier: MIT */
/* HIP (hipcc, hiprtc): clang builtins only, so that hiprtc needs no include path. The
 * barrier is between workgroup fences; without them, group memory could be read before it
 * is written. */
#ifndef KERNEL_NAME
#define KERNEL_NAME(name) name
#endif
/* Without the size of a group, the compiler prepares for 1024 work-items, with fewer
 * registers for each. */
#define KERNEL(name)                                                                       \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(GROUP, GROUP))) void     \
    KERNEL_NAME(name)
#define FUNC       static inline __attribute__((device))
#define LOCAL_FUNC FUNC
#define LOOP_FUNC  FUNC
#define GLOBAL
#define LOCAL
#define SHARED __attribute__((shared))
#define PRIVATE
#define ARGS(type) type
#define GRID
#define BARRIER()                                                                          \
    (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(),  \
     __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
#define group_id() ((int)__builtin_amdgcn_workgroup_id_x())
#define local_id() ((int)__builtin_amdgcn_workitem_id_x())

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;

FUNC float f32_of_bits(u32 u)
{
    return __builtin_bit_cast(float, u);
}

FUNC u32 bits_of_f32(float f)
{
    return __builtin_bit_cast(u32, f);
}

FUNC float mul_exact(float a, float b)
{
#pragma clang fp contract(off)
    return a * b;
}

FUNC float sqrt_f32(float x)
{
    return __builtin_sqrtf(x);
}

FUNC float f32_of_f16(u16 h)
{
    return (float)__builtin_bit_cast(_Float16, h);
}

FUNC u16 f16_of_f32(float f)
{
    return __builtin_bit_cast(u16, (_Float16)f);
}
