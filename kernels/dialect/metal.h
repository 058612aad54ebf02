/* SPDX-License-Identifier: MIT */
/* Metal Shading Language. Thread positions arrive as arguments (GRID), so a kernel reads
 * them once and passes them down. The host turns fast math off. */
#include <metal_stdlib>
using namespace metal;
#ifndef KERNEL_NAME
#define KERNEL_NAME(name) name
#endif
#define KERNEL(name) kernel void KERNEL_NAME(name)
#define FUNC         static inline
#define LOCAL_FUNC   FUNC
#define LOOP_FUNC    FUNC
#define GLOBAL       device
#define LOCAL        threadgroup /* points at group memory */
#define SHARED       threadgroup /* declares group memory */
#define PRIVATE      thread
#define ARGS(type)   constant type &
#define GRID                                                                               \
    , uint group_id_ [[threadgroup_position_in_grid]],                                     \
        uint local_id_ [[thread_position_in_threadgroup]]
#define BARRIER()  threadgroup_barrier(mem_flags::mem_threadgroup)
#define group_id() ((int)group_id_)
#define local_id() ((int)local_id_)

typedef char i8;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef long i64;
typedef ulong u64;

FUNC float f32_of_bits(u32 u)
{
    return as_type<float>(u);
}

FUNC u32 bits_of_f32(float f)
{
    return as_type<u32>(f);
}

FUNC float mul_exact(float a, float b)
{
    return fma(a, b, -0.0f);
}

FUNC float sqrt_f32(float x)
{
    return precise::sqrt(x);
}

FUNC float f32_of_f16(u16 h)
{
    return (float)as_type<half>(h);
}

FUNC u16 f16_of_f32(float f)
{
    return as_type<u16>((half)f);
}
