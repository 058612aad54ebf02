/* SPDX-License-Identifier: MIT */
/* OpenCL C 1.2; half storage needs no extension through vload_half. */
/* A kernel cannot have the name of a function of the language, such as dot, which is a macro in
 * some implementations. */
#ifdef KERNEL_NAME
#define KERNEL(name) __kernel void KERNEL_NAME(name)
#else
#define KERNEL(name) __kernel void name##_kernel
#endif
#define FUNC static inline
/* A function that is not inlined can end up with the address of group memory in it, if all
 * its callers pass the same. PoCL before 4.0 finds such memory only in the kernel itself, and
 * lets all groups share what it does not find. */
#define LOCAL_FUNC static inline __attribute__((always_inline))
#define LOOP_FUNC  FUNC
#define GLOBAL     __global
#define LOCAL      __local
#define SHARED     __local
#define PRIVATE
#define ARGS(type) type
#define GRID
#define BARRIER()  barrier(CLK_LOCAL_MEM_FENCE)
#define group_id() ((int)get_group_id(0))
#define local_id() ((int)get_local_id(0))

typedef char i8;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef long i64;
typedef ulong u64;

FUNC float f32_of_bits(u32 u)
{
    return as_float(u);
}

FUNC u32 bits_of_f32(float f)
{
    return as_uint(f);
}

/* a * b, rounded before it is added to anything. A compiler that contracts in spite of the pragma
 * (HW_CONTRACTS: see the quirks of the plugin) cannot know that the bits added here are none: a
 * launch has at most three dimensions. */
FUNC float mul_exact(float a, float b)
{
#pragma OPENCL FP_CONTRACT OFF
#ifdef HW_CONTRACTS
    return as_float(as_uint(a * b) | get_work_dim() >> 2);
#else
    return a * b;
#endif
}

FUNC float sqrt_f32(float x)
{
    return sqrt(x);
}

FUNC float f32_of_f16(u16 h)
{
    return vload_half(0, (const half *)&h);
}

FUNC u16 f16_of_f32(float f)
{
    u16 h;
    vstore_half_rte(f, 0, (half *)&h);
    return h;
}
