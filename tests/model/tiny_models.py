#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tiny_models.py DIRECTORY - writes a tiny random model of each kind that `hw run` reads, and tiny.json with the
scores that each gives after every token of a text, computed in double precision from the definitions.

Nothing here is taken from the decoder in C: blocks of numbers are decoded from the description of their formats, and
rope, attention and norms are computed one number at a time."""
import json
import math
import operator
import os
import random
import struct
import sys

from gguf_file import F32, STRING, U32, Gguf, f32
from tiny_bpe import Bpe

# ---- Types of weights: the number in the file, elements and bytes of a block, and how to decode it ----------------


def half(data, at):
    return struct.unpack_from('<e', data, at)[0]


def decode_f32(data, at):
    return [struct.unpack_from('<f', data, at)[0]]


def decode_f16(data, at):
    return [half(data, at)]


def decode_bf16(data, at):
    return [struct.unpack('<f', b'\0\0' + data[at:at + 2])[0]]


def decode_q8_0(data, at):
    return [half(data, at) * q for q in struct.unpack_from('<32b', data, at + 2)]


def decode_q4_0(data, at):
    codes = data[at + 2:at + 18]
    return [half(data, at) * ((c & 15) - 8) for c in codes] + [half(data, at) * ((c >> 4) - 8) for c in codes]


def decode_q4_1(data, at):
    codes = data[at + 4:at + 20]
    return [half(data, at) * code + half(data, at + 2) for code in [c & 15 for c in codes] + [c >> 4 for c in codes]]


def five_bit_codes(high, codes):
    """The fifth bits of all 32 codes are together, in front of the others."""
    fifths = int.from_bytes(high, 'little')
    low = [c & 15 for c in codes] + [c >> 4 for c in codes]
    return [code + 16 * (fifths >> i & 1) for i, code in enumerate(low)]


def decode_q5_0(data, at):
    return [half(data, at) * (code - 16) for code in five_bit_codes(data[at + 2:at + 6], data[at + 6:at + 22])]


def decode_q5_1(data, at):
    codes = five_bit_codes(data[at + 4:at + 8], data[at + 8:at + 24])
    return [half(data, at) * code + half(data, at + 2) for code in codes]


def six_bit_scales(b):
    """The 8 scales and 8 minima of 6 bits that q4_K and q5_K pack into 12 bytes."""
    scales = [b[j] & 63 for j in range(4)] + [b[j + 8] & 15 | b[j] >> 6 << 4 for j in range(4)]
    minima = [b[j + 4] & 63 for j in range(4)] + [b[j + 8] >> 4 | b[j + 4] >> 6 << 4 for j in range(4)]
    return scales, minima


def decode_q4_k(data, at, high_bits=None):
    scales, minima = six_bit_scales(data[at + 4:at + 16])
    codes = data[at + (16 if high_bits is None else 48):]
    out = []
    for group in range(8):
        for i in range(32):
            code = codes[group // 2 * 32 + i] >> 4 * (group % 2) & 15
            if high_bits is not None:
                code += 16 * (high_bits[i] >> group & 1)
            out.append(half(data, at) * scales[group] * code - half(data, at + 2) * minima[group])
    return out


def decode_q5_k(data, at):
    return decode_q4_k(data, at, data[at + 16:at + 48])


def decode_q6_k(data, at):
    low, high = data[at:at + 128], data[at + 128:at + 192]
    scales = struct.unpack_from('<16b', data, at + 192)
    out = []
    for i in range(256):
        part, quarter, element = i // 128, i // 32 % 4, i % 32
        code = low[part * 64 + quarter % 2 * 32 + element] >> quarter // 2 * 4 & 15
        code |= (high[part * 32 + element] >> quarter * 2 & 3) << 4
        out.append(half(data, at + 208) * scales[i // 16] * (code - 32))
    return out


TYPES = {
    'F32': (0, 1, 4, decode_f32),
    'F16': (1, 1, 2, decode_f16),
    'Q4_0': (2, 32, 18, decode_q4_0),
    'Q4_1': (3, 32, 20, decode_q4_1),
    'Q5_0': (6, 32, 22, decode_q5_0),
    'Q5_1': (7, 32, 24, decode_q5_1),
    'Q8_0': (8, 32, 34, decode_q8_0),
    'Q4_K': (12, 256, 144, decode_q4_k),
    'Q5_K': (13, 256, 176, decode_q5_k),
    'Q6_K': (14, 256, 210, decode_q6_k),
    'BF16': (30, 1, 2, decode_bf16),
}

# The average size of a block type's codes: the scale is chosen so that values are about `size`.
SPREAD = {'Q4_0': 4.6, 'Q4_1': 4.6, 'Q5_0': 9.2, 'Q5_1': 9.2, 'Q8_0': 74, 'Q4_K': 300, 'Q5_K': 600, 'Q6_K': 1400}

# The minimum of the types that have one, in units of the scale: it centres the numbers at zero.
MINIMUM = {'Q4_1': -7.5, 'Q5_1': -15.5, 'Q4_K': 7.5, 'Q5_K': 15.5}


def random_block(dice, kind, size):
    """A block of random codes; its scales are chosen, so that the numbers are finite and of the wanted size."""
    bytes_of_block = TYPES[kind][2]
    if kind == 'F32':
        return struct.pack('<f', dice.gauss(0, size))
    if kind == 'F16':
        return struct.pack('<e', dice.gauss(0, size))
    if kind == 'BF16':
        return struct.pack('<f', dice.gauss(0, size))[2:]
    block = bytearray(dice.randbytes(bytes_of_block))
    scale = size / SPREAD[kind] * dice.uniform(0.5, 1.5)
    if kind == 'Q6_K':
        struct.pack_into('<e', block, 208, scale)
    else:
        struct.pack_into('<e', block, 0, scale)
        if kind in MINIMUM:
            struct.pack_into('<e', block, 2, scale * MINIMUM[kind])
    return bytes(block)


# ---- The model ----------------------------------------------------------------------------------------------------


class Model:
    """Rows of decoded weights by name, and the file that holds them."""

    def __init__(self, name, seed, architecture, **shape):
        self.name, self.dice, self.architecture = name, random.Random(seed), architecture
        self.weights, self.file = {}, Gguf()
        self.bpe = Bpe(shape['pre']) if 'pre' in shape else None
        if self.bpe:
            self.bpe.put(self.file)
            shape['vocabulary'] = len(self.bpe.tokens)
        self.shape = {'rope_scale': 1, 'theta': 10000, 'window': 0, 'types': ['F32'], 'factors': False, 'bias': False,
                      'head_norm': False, 'half': False, 'own_output': True, 'yarn': {}, **shape}
        self.describe()
        self.make_weights()

    def __getattr__(self, name):
        return self.shape[name]

    def describe(self):
        put, prefix = self.file.put, self.architecture + '.'
        put('general.architecture', STRING, self.architecture)
        for key, number in (('context_length', 64), ('block_count', self.layers), ('embedding_length', self.width),
                            ('feed_forward_length', self.inner), ('attention.head_count', self.heads),
                            ('attention.head_count_kv', self.kv_heads)):
            put(prefix + key, U32, number)
        put(prefix + 'attention.layer_norm_rms_epsilon', F32, 1e-5)
        put(prefix + 'rope.freq_base', F32, self.theta)
        if self.head * self.heads != self.width:
            put(prefix + 'attention.key_length', U32, self.head)
            put(prefix + 'attention.value_length', U32, self.head)
        if self.window:
            put(prefix + 'attention.sliding_window', U32, self.window)
        if self.rope_scale != 1:
            put(prefix + 'rope.scaling.type', STRING, 'linear')
            put(prefix + 'rope.scaling.factor', F32, 1 / self.rope_scale)
        if self.yarn:
            put(prefix + 'rope.scaling.type', STRING, 'yarn')
        for key, number in self.yarn.items():
            put(prefix + 'rope.scaling.' + key, U32 if isinstance(number, int) else F32, number)

    def add(self, name, rows, cols, centre=0.0, size=None):
        """Matrices take the types of the model in turn; a vector (rows = 0) is F32 around `centre`."""
        matrices = sum(1 for weight in self.weights.values() if isinstance(weight[0], list))
        kind = self.types[matrices % len(self.types)] if rows else 'F32'
        number, block, block_bytes, decode = TYPES[kind]
        size = size or 1.4 / math.sqrt(cols)
        data = bytearray()
        for _ in range((rows or 1) * cols // block):
            if rows:
                data += random_block(self.dice, kind, size)
            else:
                data += struct.pack('<f', centre + self.dice.gauss(0, size))
        data = bytes(data)
        numbers = [x for at in range(0, len(data), block_bytes) for x in decode(data, at)]
        self.weights[name] = [numbers[i * cols:(i + 1) * cols] for i in range(rows)] if rows else numbers
        self.file.tensor(name, [cols, rows] if rows else [cols], number, data)

    def make_weights(self):
        queries, keys = self.heads * self.head, self.kv_heads * self.head
        self.add('token_embd.weight', self.vocabulary, self.width, size=1)
        self.add('output_norm.weight', 0, self.width, 1, 0.2)
        if self.own_output:
            self.add('output.weight', self.vocabulary, self.width)
        if self.factors:
            self.add('rope_freqs.weight', 0, self.head // 2, 4, 1.2)
        for i in range(self.layers):
            layer = 'blk.%d.' % i
            self.add(layer + 'attn_norm.weight', 0, self.width, 1, 0.2)
            for part, rows in (('q', queries), ('k', keys), ('v', keys)):
                self.add(layer + 'attn_%s.weight' % part, rows, self.width)
                if self.bias:
                    self.add(layer + 'attn_%s.bias' % part, 0, rows, 0, 0.5)
                if self.head_norm and part != 'v':
                    self.add(layer + 'attn_%s_norm.weight' % part, 0, self.head, 1, 0.3)
            self.add(layer + 'attn_output.weight', self.width, queries)
            self.add(layer + 'ffn_norm.weight', 0, self.width, 1, 0.2)
            self.add(layer + 'ffn_gate.weight', self.inner, self.width)
            self.add(layer + 'ffn_up.weight', self.inner, self.width)
            self.add(layer + 'ffn_down.weight', self.width, self.inner)

    # ---- The computation -----------------------------------------------------------------------------------------

    def norm(self, x, weight):
        mean = math.fsum(a * a for a in x) / len(x)
        return [a * w / math.sqrt(mean + f32(1e-5)) for a, w in zip(x, weight)]

    def project(self, name, x):
        y = [math.fsum(map(operator.mul, row, x)) for row in self.weights[name + '.weight']]
        bias = self.weights.get(name + '.bias')
        return [a + b for a, b in zip(y, bias)] if bias else y

    def speeds(self, dims):
        """The angle of each pair per position, and what rope multiplies q and k by. YaRN slows down the pairs that turn
        less than beta_slow times in the original context, leaves those that turn more than beta_fast times, and the
        pairs between are in proportion to their number."""
        full = [f32(self.theta) ** (-2 * i / dims) for i in range(dims // 2)]
        if not self.yarn:
            return [speed * self.rope_scale for speed in full], 1
        yarn = {'original_context_length': 64, 'attn_factor': 1, 'yarn_ext_factor': 1, 'yarn_beta_fast': 32,
                'yarn_beta_slow': 1, **self.yarn}

        def pair_of(turns):
            """theta ** (-2 pair / dims) * the original context = turns * 2 pi"""
            return math.log(yarn['original_context_length'] / (turns * 2 * math.pi), f32(self.theta)) * dims / 2

        first = max(math.floor(pair_of(f32(yarn['yarn_beta_fast']))), 0)
        last = min(math.ceil(pair_of(f32(yarn['yarn_beta_slow']))), dims - 1)
        speeds = []
        for i, speed in enumerate(full):
            slow = min(max((i - first) / max(last - first, 0.001), 0), 1)
            share = (1 - slow) * f32(yarn['yarn_ext_factor'])
            speeds.append(speed * (share + (1 - share) / f32(yarn['factor'])))
        return speeds, f32(yarn['attn_factor']) * (1 + 0.1 * math.log(f32(yarn['factor'])))

    def rope(self, x, position):
        """Turns each pair of one head. The file of a llama pairs neighbours, the others the two halves."""
        out, pairs = list(x), len(x) // 2
        speeds, size = self.speeds(len(x))
        for i in range(pairs):
            angle = position * speeds[i]
            if self.factors:
                angle /= self.weights['rope_freqs.weight'][i]
            a, b = (i, i + pairs) if self.half else (2 * i, 2 * i + 1)
            out[a] = size * (x[a] * math.cos(angle) - x[b] * math.sin(angle))
            out[b] = size * (x[a] * math.sin(angle) + x[b] * math.cos(angle))
        return out

    def split(self, x):
        return [x[i:i + self.head] for i in range(0, len(x), self.head)]

    def attend(self, layer, x, position, cache):
        q = self.split(self.project(layer + 'attn_q', x))
        k = self.split(self.project(layer + 'attn_k', x))
        v = self.split(self.project(layer + 'attn_v', x))
        if self.head_norm:
            q = [self.norm(head, self.weights[layer + 'attn_q_norm.weight']) for head in q]
            k = [self.norm(head, self.weights[layer + 'attn_k_norm.weight']) for head in k]
        q, k = ([self.rope(head, position) for head in heads] for heads in (q, k))
        cache.append((k, v))
        seen = cache[-self.window:] if self.window else cache
        out = []
        for h, query in enumerate(q):
            g = h // (self.heads // self.kv_heads)
            scores = [sum(a * b for a, b in zip(query, keys[g])) / math.sqrt(self.head) for keys, _ in seen]
            powers = [math.exp(score - max(scores)) for score in scores]
            out += [math.fsum(p * values[g][d] for p, (_, values) in zip(powers, seen)) / math.fsum(powers)
                    for d in range(self.head)]
        return self.project(layer + 'attn_output', out)

    def feed_forward(self, layer, x):
        gate, up = self.project(layer + 'ffn_gate', x), self.project(layer + 'ffn_up', x)
        return self.project(layer + 'ffn_down', [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])

    def step(self, token, position, caches):
        """The scores for the token that follows."""
        x = self.weights['token_embd.weight'][token]
        for i, cache in enumerate(caches):
            layer = 'blk.%d.' % i
            y = self.attend(layer, self.norm(x, self.weights[layer + 'attn_norm.weight']), position, cache)
            x = [a + b for a, b in zip(x, y)]
            y = self.feed_forward(layer, self.norm(x, self.weights[layer + 'ffn_norm.weight']))
            x = [a + b for a, b in zip(x, y)]
        return self.project('output' if self.own_output else 'token_embd',
                            self.norm(x, self.weights['output_norm.weight']))

    def run(self, prompt, more):
        """The tokens of the prompt and the `more` best that follow, and the scores after each."""
        tokens, rows, caches = list(prompt), [], [[] for _ in range(self.layers)]
        while len(rows) < len(tokens):
            rows.append(self.step(tokens[len(rows)], len(rows), caches))
            if len(rows) == len(tokens) < len(prompt) + more:
                tokens.append(rows[-1].index(max(rows[-1])))
        return tokens, rows


def models():
    small = {'layers': 2, 'width': 64, 'inner': 96, 'heads': 4, 'kv_heads': 2, 'head': 16}
    wide = {'layers': 1, 'width': 256, 'inner': 256, 'vocabulary': 24, 'heads': 4, 'kv_heads': 1, 'head': 64}
    yield Model('llama', 1, 'llama', **small, pre='llama-bpe', factors=True, theta=500000)
    yield Model('mistral', 2, 'llama', **{**small, 'kv_heads': 1}, pre='gpt-2', window=5, rope_scale=0.25,
                own_output=False)
    yield Model('mistral3', 7, 'mistral3', **{**small, 'layers': 1, 'head': 32}, pre='tekken', theta=1000000000)
    yield Model('qwen2', 3, 'qwen2', **small, pre='qwen2', half=True, bias=True, own_output=False, theta=1000000)
    yield Model('qwen3', 4, 'qwen3', **{**small, 'head': 24}, pre='qwen2', half=True, head_norm=True, theta=1000000)
    yield Model('yarn', 8, 'qwen2', **{**small, 'layers': 1, 'head': 32}, vocabulary=40, half=True, bias=True,
                yarn={'factor': 4.0, 'original_context_length': 16})
    yield Model('yarn_llama', 9, 'llama', **{**small, 'head': 32}, vocabulary=40, factors=True,
                yarn={'factor': 8.0, 'attn_factor': 0.8, 'yarn_ext_factor': 0.75, 'yarn_beta_fast': 4.0,
                      'yarn_beta_slow': 0.0625})
    yield Model('blocks', 5, 'llama', **wide, types=['Q8_0', 'Q4_0', 'F16', 'Q5_0', 'Q4_1', 'BF16', 'Q5_1'])
    yield Model('k_blocks', 6, 'qwen2', **wide, half=True, bias=True, types=['Q4_K', 'Q6_K', 'Q5_K'])


PROMPT = "The king didn't say été 1603"


def main():
    directory = sys.argv[1]
    golden = {}
    for model in models():
        prompt = [model.dice.randrange(model.shape['vocabulary']) for _ in range(9)]
        if model.bpe:
            prompt = model.bpe.encode(PROMPT.encode())
        tokens, rows = model.run(prompt, 8)
        golden[model.name] = {'prompt': PROMPT, 'prompt_ids': prompt, 'tokens': tokens,
                              'scores': [[float('%.9g' % score) for score in row] for row in rows]}
        with open(os.path.join(directory, 'tiny-%s.gguf' % model.name), 'wb') as file:
            file.write(model.file.bytes())
    with open(os.path.join(directory, 'tiny.json'), 'w', encoding='ascii') as file:
        json.dump(golden, file)


if __name__ == '__main__':
    main()
