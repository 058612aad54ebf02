/* SPDX-License-Identifier: MIT */
/* units.h - units of 32 numbers of a block type as words of four codes, for tuned products. Follows
 * keys.h.
 *
 * The plan of a kernel that reads units defines B_TYPE and UNITS_IN_GROUP: 1 if blocks lie in group
 * memory, in whole words that may be read beyond them; 0 if they are read from global memory. */
#if defined(UNITS_IN_GROUP)

#define UNIT_q8_0 1
#define UNIT_q4_0 2
#define UNIT_q4_1 3
#define UNIT_q5_0 4
#define UNIT_q5_1 5
#define UNIT_q4_K 6
#define UNIT_q5_K 7
#define UNIT_q6_K 8
#define UNIT_B    JOIN(UNIT_, B_TYPE)

#define TYPE_BYTES JOIN(BYTES_, B_TYPE)
#define BYTES_q8_0 Q8_0_BYTES
#define BYTES_q4_0 Q4_0_BYTES
#define BYTES_q4_1 Q4_1_BYTES
#define BYTES_q5_0 Q5_0_BYTES
#define BYTES_q5_1 Q5_1_BYTES
#define BYTES_q4_K Q4_K_BYTES
#define BYTES_q5_K Q5_K_BYTES
#define BYTES_q6_K Q6_K_BYTES

#define HAS_SUPERS  (UNIT_B >= UNIT_q4_K)
#define HAS_FIFTHS  (UNIT_B == UNIT_q5_0 || UNIT_B == UNIT_q5_1 || UNIT_B == UNIT_q5_K)
#define HAS_MINIMUM (UNIT_B == UNIT_q4_1 || UNIT_B == UNIT_q5_1)

/* A number is scale * code + offset. Each half of a unit, 16 neighbours, has its own. Codes of q8_0
 * have a sign, and no offset. */
struct unit {
    uint code[8]; /* 4 in each */
    float scale[2], offset[2];
};

/* Four codes as floats. */
#if UNIT_B == UNIT_q8_0
#define CODES(word) convert_float4(as_char4(word))
#else
#define CODES(word) convert_float4(as_uchar4(word))
#endif

/* ---- bytes and words ---- */

#if UNITS_IN_GROUP
#define BYTES LOCAL const u8 *
#define WORDS LOCAL const uint *
#define PAIRS LOCAL const u16 *
#else
#define BYTES GLOBAL const u8 *
#define PAIRS GLOBAL const u16 *
#endif

FUNC float scale_at(BYTES from, int at)
{
    return f32_of_f16(((PAIRS)from)[at / 2]);
}

/* `count` words from byte `at`, which is even; whole words begin at `from`. */
FUNC void get_words(PRIVATE uint *to, BYTES from, int at, int count)
{
#if UNITS_IN_GROUP
    const int shift = at % 4 * 8;
    WORDS words = (WORDS)from + at / 4;
    uint low = words[0];
    for (int i = 0; i < count; i++) {
        const uint high = words[1 + i];
        to[i] = (uint)(((ulong)high << 32 | low) >> shift);
        low = high;
    }
#else
    PAIRS pairs = (PAIRS)(from + at);
    for (int i = 0; i < count; i++)
        to[i] = pairs[2 * i] | (uint)pairs[2 * i + 1] << 16;
#endif
}

/* Codes of 4 bits, those of a byte in both halves. */
FUNC void get_fours(PRIVATE uint *code, BYTES from, int at)
{
    uint words[4];
    get_words(words, from, at, 4);
    for (int i = 0; i < 4; i++) {
        code[i] = words[i] & 0x0f0f0f0fu;
        code[i + 4] = words[i] >> 4 & 0x0f0f0f0fu;
    }
}

/* Bit i of 4, as bit 4 of byte i. */
FUNC uint fifths_of(uint bits)
{
    return ((bits & 15) * 0x00204081u & 0x01010101u) << 4;
}

/* ---- units: number `number` of those that begin at byte `at` ---- */

#if UNIT_B == UNIT_q8_0

FUNC void get_unit(PRIVATE struct unit *u, BYTES from, int at, int number)
{
    at += number * TYPE_BYTES;
    get_words(u->code, from, at + 2, 8);
    u->scale[0] = u->scale[1] = scale_at(from, at);
    u->offset[0] = u->offset[1] = -0.0f;
}

#elif !HAS_SUPERS

FUNC void get_unit(PRIVATE struct unit *u, BYTES from, int at, int number)
{
    at += number * TYPE_BYTES;
    const float d = scale_at(from, at);
    get_fours(u->code, from, at + 2 + 2 * HAS_MINIMUM + 4 * HAS_FIFTHS);
#if HAS_FIFTHS
    uint fifths;
    get_words(&fifths, from, at + 2 + 2 * HAS_MINIMUM, 1);
    for (int i = 0; i < 8; i++)
        u->code[i] |= fifths_of(fifths >> 4 * i);
#endif
    u->scale[0] = u->scale[1] = d;
    u->offset[0] = u->offset[1] = HAS_MINIMUM ? scale_at(from, at + 2)
                                              : d * (HAS_FIFTHS ? -16.0f : -8.0f);
}

#elif UNIT_B == UNIT_q6_K

/* Runs r and r + 2 share bytes. */
FUNC void get_unit(PRIVATE struct unit *u, BYTES from, int at, int number)
{
    const int part = number % 8, upper = part / 4, odd = part / 2 % 2, last = part % 2;
    uint high[4];
    at += number / 8 * TYPE_BYTES;
    get_fours(u->code, from, at + upper * 64 + odd * 32 + last * 16);
    get_words(high, from, at + 128 + upper * 32 + last * 16, 4);
    for (int i = 0; i < 4; i++) {
        u->code[i] |= (high[i] >> 2 * odd & 0x03030303u) << 4;
        u->code[i + 4] |= (high[i] >> (2 * odd + 4) & 0x03030303u) << 4;
    }
    const float d = scale_at(from, at + 208);
    for (int i = 0; i < 2; i++) {
        const int run = upper * 4 + odd + 2 * i;
        u->scale[i] = d * (float)(i8)from[at + 192 + run * 2 + last];
        u->offset[i] = -32.0f * u->scale[i];
    }
}

#else /* q4_K, q5_K */

/* The shares of a run in the scale, and in the minimum if `of` is 4. */
FUNC float share_at(BYTES shares, int run, int of)
{
    const int high = shares[run % 4 + 8] >> of & 15;
    const int low = shares[run % 4 + of];
    return (float)(run < 4 ? low & 63 : high | low >> 6 << 4);
}

FUNC void get_unit(PRIVATE struct unit *u, BYTES from, int at, int number)
{
    const int part = number % 8, run = part / 2 * 2;
    at += number / 8 * TYPE_BYTES;
    get_fours(u->code, from, at + TYPE_BYTES - 128 + part * 16);
#if HAS_FIFTHS
    uint fifths[4];
    get_words(fifths, from, at + 16 + part % 2 * 16, 4);
    for (int i = 0; i < 4; i++) {
        u->code[i] |= (fifths[i] >> run & 0x01010101u) << 4;
        u->code[i + 4] |= (fifths[i] >> (run + 1) & 0x01010101u) << 4;
    }
#endif
    const float d = scale_at(from, at), m = scale_at(from, at + 2);
    for (int i = 0; i < 2; i++) {
        u->scale[i] = d * share_at(from + at + 4, run + i, 0);
        u->offset[i] = -m * share_at(from + at + 4, run + i, 4);
    }
}

#endif

#endif
