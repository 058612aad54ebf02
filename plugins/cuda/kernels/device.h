/* SPDX-License-Identifier: MIT */
/* device.h - what kernels of this plugin ask of the machine, in PTX: needs no header of the
 * toolkit. Follows dialect/cuda.h. */
#ifndef CUDA_KERNELS_DEVICE_H
#define CUDA_KERNELS_DEVICE_H

#define UNROLL _Pragma("unroll")
#define LOOP   _Pragma("unroll 1")
/* of a struct */
#define FUNC_IN static inline __attribute__((device))
#define RARE    static __attribute__((device, noinline))

struct __attribute__((aligned(16))) quad {
    u32 v[4];
};

FUNC int local_count()
{
    int n;
    asm("mov.u32 %0, %%ntid.x;" : "=r"(n));
    return n;
}

FUNC int group_count()
{
    int n;
    asm("mov.u32 %0, %%nctaid.x;" : "=r"(n));
    return n;
}

/* ---- launches that begin early (programmatic dependent launch) ---- */

/* Lets the next kernel begin as soon as there is room. */
FUNC void launch_next()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Waits until the kernels before this one have completed. */
FUNC void wait_for_previous()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Both. */
FUNC void take_turn()
{
    launch_next();
    wait_for_previous();
}

/* ---- a warp, a group ---- */

FUNC void warp_barrier()
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

/* Of the lane `distance` away, whose place differs in that bit. */
FUNC u32 from_lane(u32 v, int distance)
{
    u32 other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=r"(other)
                 : "r"(v), "r"(distance));
    return other;
}

FUNC float from_lane(float v, int distance)
{
    return f32_of_bits(from_lane(bits_of_f32(v), distance));
}

/* Of the lane `lane`. */
FUNC float of_lane(float v, int lane)
{
    u32 other;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=r"(other)
                 : "r"(bits_of_f32(v)), "r"(lane));
    return f32_of_bits(other);
}

FUNC float warp_sum(float v)
{
    UNROLL for (int distance = 16; distance; distance /= 2) v += from_lane(v, distance);
    return v;
}

/* A barrier of the group; whether all threads say so. */
FUNC bool all_threads(bool say)
{
    u32 all;
    asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.and.pred q, 0, p; "
                 "selp.u32 %0, 1, 0, q; }"
                 : "=r"(all)
                 : "r"((u32)say)
                 : "memory");
    return all != 0;
}

/* ---- arithmetic ---- */

FUNC u32 max_u32(u32 a, u32 b)
{
    return a > b ? a : b;
}

FUNC int nearest_int(float v)
{
    int i;
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(i) : "f"(v));
    return i;
}

FUNC int dot4(u32 a, u32 b, int sum)
{
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* For results of 16 bits. */

FUNC u16 bf16_near(float v)
{
#if __CUDA_ARCH__ >= 900
    u16 h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
#else
    return bf16_of_f32(v);
#endif
}

/* e^x */
FUNC float exp_near(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
}

FUNC float divide_near(float a, float b)
{
    float q;
    asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));
    return q;
}

/* Four bytes of the eight of b:a, as the digits of `which` say. */
FUNC u32 permute(u32 a, u32 b, u32 which)
{
    u32 v;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(which));
    return v;
}

/* ---- memory ---- */

FUNC u32 shared_address(const void *p)
{
    u32 at;
    asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }"
        : "=r"(at)
        : "l"(p));
    return at;
}

/* What createpolicy.fractional.L2::evict_first makes on 9.0: what is read again stays longer. */
#define READ_ONCE 0x12f0000000000000ull

FUNC struct quad load_quad(u64 from)
{
    struct quad v;
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.v[0]), "=r"(v.v[1]), "=r"(v.v[2]), "=r"(v.v[3])
                 : "l"(from));
    return v;
}

FUNC void store_quad(u64 to, const struct quad &v)
{
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(v.v[0]),
                 "r"(v.v[1]), "r"(v.v[2]), "r"(v.v[3])
                 : "memory");
}

FUNC void load_two(u32 *v, u64 from)
{
    asm volatile("ld.global.v2.u32 {%0,%1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "l"(from));
}

/* ---- barriers in shared memory (mbarrier) ---- */

FUNC void barrier_init(u32 barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* After all barrier_init(), before copies use them. */
FUNC void barriers_ready()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::
                     : "memory");
#endif
}

FUNC void arrive(u32 barrier)
{
    asm volatile(
        "{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier)
        : "memory");
}

/* Arrives once the thread's copies have. */
FUNC void arrive_after_copies(u32 barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier)
                 : "memory");
}

#if __CUDA_ARCH__ >= 900
/* Arrives, and adds to the bytes that copies have to bring. */
FUNC void expect_bytes(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}
#endif

FUNC void wait_for(u32 barrier, u32 phase)
{
    u32 done;
    do {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
            "selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(barrier), "r"(phase)
            : "memory");
#else
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(phase)
                     : "memory");
#endif
    } while (!done);
}

#endif
