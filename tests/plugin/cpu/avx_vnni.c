/* SPDX-License-Identifier: MIT */
/* Intel SDM 2A, 2.3 (VEX) and 2.1 (ModRM, SIB), 2D (the instructions), 1, 13.4 (XSAVE): Linux
 * stores the registers in the signal frame in XSAVE format, and restores them from there. */
#define _GNU_SOURCE /* REG_RIP */
#include "avx_vnni.h"

#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

atomic_ulong avx_vnni_count;
atomic_bool avx_vnni_mistaken;

/* ---- decoding ---- */

struct instruction {
    bool words;            /* of 16 bits instead of bytes */
    bool saturated, wide;  /* wide: 256 bits */
    unsigned sum, a, b;    /* numbers of registers */
    const uint8_t *memory; /* where b is; NULL: in a register */
    const uint8_t *next;
};

/* In the order of their encoding numbers. */
static const int general[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                 REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                 REG_R12, REG_R13, REG_R14, REG_R15 };

/* The instruction's bytes from ModRM on; x and b are the high bits of the register numbers. */
static void decode_operand(struct instruction *in, const uint8_t *code, const greg_t *regs,
                           unsigned x, unsigned b)
{
    enum { HAS_SIB = 4, NO_INDEX = 4, NO_BASE = 5 };
    const unsigned mode = *code >> 6;
    unsigned base = *code++ & 7;
    uint64_t address = 0;
    in->b = base | b;
    in->next = code;
    if (mode == 3)
        return;
    const bool from_next = mode == 0 && base == NO_BASE;
    if (base == HAS_SIB) {
        const unsigned scale = *code >> 6, index = (*code >> 3 & 7) | x;
        base = *code++ & 7;
        if (index != NO_INDEX)
            address = (uint64_t)regs[general[index]] << scale;
    }
    const bool has_base = mode != 0 || base != NO_BASE;
    int32_t far = 0;
    if (mode == 1)
        far = (int8_t)*code++;
    else if (mode == 2 || !has_base) {
        memcpy(&far, code, sizeof far);
        code += sizeof far;
    }
    if (has_base)
        address += (uint64_t)regs[general[base | b]];
    else if (from_next)
        address = (uint64_t)(uintptr_t)code;
    in->memory = (const uint8_t *)(uintptr_t)(address + (uint64_t)(int64_t)far);
    in->next = code;
}

/* C4, then ~R ~X ~B and the map 0F38, W (0), ~vvvv, L and the prefix 66, 50 to 53, ModRM. */
static bool decode(struct instruction *in, const greg_t *regs)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)regs[REG_RIP];
    if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x83) != 1 ||
        (code[3] & 0xfc) != 0x50)
        return false;
    *in = (struct instruction){
        .words = code[3] & 2,
        .saturated = code[3] & 1,
        .wide = code[2] & 4,
        .sum = (code[4] >> 3 & 7) | (code[1] & 0x80 ? 0 : 8),
        .a = ~code[2] >> 3 & 15,
    };
    decode_operand(in, code + 4, regs, code[1] & 0x40 ? 0 : 8, code[1] & 0x20 ? 0 : 8);
    return true;
}

/* ---- computing ---- */

static int32_t add_products(const struct instruction *in, int32_t sum, uint32_t a,
                            uint32_t b)
{
    const int count = (in->words ? 2 : 4) - avx_vnni_mistaken;
    int64_t total = sum;
    for (int i = 0; i < count; i++)
        total += in->words ? (int16_t)(a >> 16 * i) * (int16_t)(b >> 16 * i)
                           : (uint8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i);
    if (in->saturated && total != (int32_t)total)
        return total < 0 ? INT32_MIN : INT32_MAX;
    return (int32_t)(uint32_t)(uint64_t)total;
}

/* ---- the registers of the frame ---- */

enum { XMM, YMM, ZMM, PARTS };

/* Components of vector registers in the XSAVE area: their bit in XSTATE_BV, offset and size. */
static struct {
    unsigned bit, at, bytes;
} parts[PARTS] = { { 1, 160, 16 }, { 2, 0, 16 }, { 6, 0, 32 } };

static void find_parts(void)
{
    unsigned eax, ecx, edx;
    for (int i = YMM; i < PARTS; i++)
        __cpuid_count(0xd, parts[i].bit, eax, parts[i].at, ecx, edx);
}

static void *part(uint8_t *area, int which, unsigned number)
{
    return area + parts[which].at + number * parts[which].bytes;
}

/* Whether the frame contains the component: Linux records that in bytes that XSAVE leaves
 * unused. */
static bool is_saved(const uint8_t *area, int which)
{
    struct _fpx_sw_bytes linux_says;
    memcpy(&linux_says, area + 464, sizeof linux_says);
    return linux_says.magic1 == FP_XSTATE_MAGIC1 &&
           linux_says.xstate_bv >> parts[which].bit & 1;
}

/* A component missing in XSTATE_BV is zero in all registers, whatever the area contains. Its
 * products and sums are then zero as well: nothing has to be written back there. */
static void read_part(uint8_t *area, int which, unsigned number, uint32_t lanes[4])
{
    enum { XSTATE_BV = 512 };
    uint64_t has;
    memcpy(&has, area + XSTATE_BV, sizeof has);
    memset(lanes, 0, 16);
    if (has >> parts[which].bit & 1)
        memcpy(lanes, part(area, which, number), 16);
}

static void read_vector(uint8_t *area, unsigned number, uint32_t lanes[8])
{
    read_part(area, XMM, number, lanes);
    read_part(area, YMM, number, lanes + 4);
}

/* VEX zeroes the bits above the result. */
static void write_vector(uint8_t *area, unsigned number, const uint32_t lanes[8])
{
    memcpy(part(area, XMM, number), lanes, 16);
    memcpy(part(area, YMM, number), lanes + 4, 16);
    if (is_saved(area, ZMM))
        memset(part(area, ZMM, number), 0, parts[ZMM].bytes);
}

static void execute(const struct instruction *in, uint8_t *area)
{
    const int lanes = in->wide ? 8 : 4;
    uint32_t sum[8], a[8], b[8], result[8] = { 0 };
    read_vector(area, in->sum, sum);
    read_vector(area, in->a, a);
    if (in->memory)
        memcpy(b, in->memory, (size_t)lanes * 4);
    else
        read_vector(area, in->b, b);
    for (int i = 0; i < lanes; i++)
        result[i] = (uint32_t)add_products(in, (int32_t)sum[i], a[i], b[i]);
    write_vector(area, in->sum, result);
}

/* ---- the signal ---- */

static struct sigaction before;

static void invalid_instruction(int number, siginfo_t *info, void *context)
{
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
    uint8_t *area = (uint8_t *)machine->fpregs;
    struct instruction in;
    (void)info;
    if (!is_saved(area, YMM) || !decode(&in, machine->gregs)) {
        sigaction(number, &before, NULL); /* which now gets it, as it is raised again */
        return;
    }
    execute(&in, area);
    machine->gregs[REG_RIP] = (greg_t)(uintptr_t)in.next;
    avx_vnni_count++;
}

void avx_vnni_begin(void)
{
    struct sigaction action = { .sa_sigaction = invalid_instruction,
                                .sa_flags = SA_SIGINFO };
    find_parts();
    sigaction(SIGILL, &action, &before);
}
