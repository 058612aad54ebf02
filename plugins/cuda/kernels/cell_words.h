/* SPDX-License-Identifier: MIT */
/* cell_words.h - words of blocks in shared memory, and what they hold: numbers of f16, codes of 4
 * bits and their fifth bits. Follows device.h. */
#ifndef CUDA_KERNELS_CELL_WORDS_H
#define CUDA_KERNELS_CELL_WORDS_H

FUNC float half_of(u32 word)
{
    return f32_of_f16((u16)word);
}

/* The word that begins in the middle of words[0]. */
FUNC u32 straddling(const u32 *words)
{
    return permute(words[0], words[1], 0x5432);
}

FUNC u32 low_nibbles(u32 codes)
{
    return codes & 0x0f0f0f0fu;
}

FUNC u32 high_nibbles(u32 codes)
{
    return codes >> 4 & 0x0f0f0f0fu;
}

/* Four of 32 fifth bits, from bit `first` on, where codes of four bits lack them. */
FUNC u32 fifths_of(u32 bits, int first)
{
    return ((bits >> first & 15) * 0x00204081u & 0x01010101u) << 4;
}

/* Four bytes from an even address on. */
FUNC u32 word_at(const u8 *from)
{
    const u32 *words = (const u32 *)(from - (u64)from % 4);
    return permute(words[0], words[1], (u64)from % 4 ? 0x5432 : 0x3210);
}

/* `count` words from an even address on. */
FUNC void words_at(u32 *to, const u8 *from, int count)
{
    const u32 *words = (const u32 *)(from - (u64)from % 4);
    const u32 bytes = (u64)from % 4 ? 0x5432 : 0x3210;
    u32 word = words[0];
    UNROLL for (int i = 0; i < count; i++)
    {
        const u32 next = words[i + 1];
        to[i] = permute(word, next, bytes);
        word = next;
    }
}

#endif
