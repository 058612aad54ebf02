#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tiny_bpe.py DIRECTORY - trains a tiny byte-level vocabulary, and writes it for each pre-tokenizer with bpe.json: the
ids of many texts.

The encoder here is slow and written from the definitions: words are found by trying the alternatives of the published
expressions one after the other, and merging looks for the best pair again after every merge."""
import collections
import json
import os
import random
import re
import sys
import unicodedata

from gguf_file import BOOL, I32, STRING, U32, Gguf

CORPUS = """The king said that the king's men couldn't ride in the night, and they didn't. It's 1603: the queen is dead!
Where there's a will, there's a way... The river isn't there; the other thing, the nothing, the theme, the breathing.
Être ou ne pas être, là est la question. Où est l'été? Ça va, là-bas, c'est déjà l'été des étés.
    for i in range(100): print(i, "12345")   # there, there
中文文字和中文，中文。Наша страна, наша река, наша.
""" + '\u180e!\u017ft ' * 20
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
MERGES = 66
SPACES = '\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029' \
    '\u202f\u205f\u3000'

# ---- Words --------------------------------------------------------------------------------------------------------


def kind_of(c):
    """L, N, space or other."""
    if c in SPACES:
        return 's'
    major = unicodedata.category(c)[0]
    return major if major in 'LN' else 'o'


def run(text, at, kinds, most=None):
    """The end of the run of characters of these kinds."""
    end = at
    while end < len(text) and kind_of(text[end]) in kinds and (most is None or end - at < most):
        end += 1
    return end


def contraction(text, at, folds):
    for suffix in ('s', 't', 're', 've', 'm', 'll', 'd'):
        part = text[at + 1:at + 1 + len(suffix)]
        if text[at] == "'" and (part == suffix or folds and part.casefold() == suffix):
            return at + 1 + len(suffix)
    return None


def spaces(text, at):
    """Leaves the last of several spaces to the word that follows."""
    end = run(text, at, 's')
    return end if end == len(text) or end == at + 1 else end - 1


def gpt2_word(text, at, _):
    end = contraction(text, at, False)
    if end:
        return end
    start = at + (text[at] == ' ')
    for kind in 'LNo':
        if run(text, start, kind) > start:
            return run(text, start, kind)
    return spaces(text, at)


def modern_word(text, at, digits):
    """The end of the next word: of Llama 3 with up to 3 digits, of Qwen 2 with one."""
    end = contraction(text, at, True)
    if end:
        return end
    start = at + (text[at] not in '\r\n' and kind_of(text[at]) in 'so')
    if run(text, start, 'L') > start:
        return run(text, start, 'L')
    if kind_of(text[at]) == 'N':
        return run(text, at, 'N', digits)
    start = at + (text[at] == ' ')
    end = run(text, start, 'o')
    if end > start:
        while end < len(text) and text[end] in '\r\n':
            end += 1
        return end
    end = run(text, at, 's')
    while end > at and text[end - 1] not in '\r\n':
        end -= 1
    return end if end > at else spaces(text, at)


def letter_of(c):
    """A letter for the kind of a character, for the expression below."""
    if c in '\r\n /':
        return {'\r': 'r', '\n': 'r', ' ': ' ', '/': '/'}[c]
    kind = kind_of(c)
    if kind == 'L':
        return {'Lu': 'U', 'Lt': 'U', 'Ll': 'l'}.get(unicodedata.category(c), 'x')
    return 'M' if unicodedata.category(c)[0] == 'M' else kind


TEKKEN = re.compile('[^rUlxN]?[UxM]*[lxM]+|[^rUlxN]?[UxM]+[lxM]*|N| ?[oM/]+[r/]*|[s r]*r|[s r]+(?![^s r])|[s r]+')


def tekken_word(text, at, _):
    """Python's expressions have no Unicode categories, so the text becomes one letter for each character."""
    return at + TEKKEN.match(''.join(letter_of(c) for c in text[at:])).end()


WORDS = {'gpt-2': (gpt2_word, 0), 'llama-bpe': (modern_word, 3), 'qwen2': (modern_word, 1), 'smollm': (gpt2_word, 0),
         'tekken': (tekken_word, 0)}

WITH_WHOLE_WORDS = ('llama-bpe', 'tekken')  # a word that is a token is not split; texts begin with BOS


def is_invalid(c):
    return '\udc80' <= c <= '\udcff'


def parts(text, belongs):
    """Splits a text into stretches of characters that all belong, or all do not."""
    at = 0
    while at < len(text):
        end = at + 1
        while end < len(text) and belongs(text[end]) == belongs(text[at]):
            end += 1
        yield text[at:end]
        at = end


def words(pre, text):
    """The words of a text. Invalid bytes are escaped as surrogates in it, and are words of their own."""
    find, digits = WORDS[pre]
    for stretch in parts(text, is_invalid):
        pieces = [stretch]
        if pre == 'smollm':  # every digit alone, then the words between them
            pieces = [c for part in parts(stretch, lambda c: not is_invalid(c) and kind_of(c) == 'N')
                      for c in (part if kind_of(part[0]) == 'N' else [part])]
        for piece in pieces:
            at = 0
            while at < len(piece):
                end = len(piece) if is_invalid(piece[0]) else find(piece, at, digits)
                yield piece[at:end].encode('utf-8', 'surrogateescape')
                at = end


# ---- The vocabulary -----------------------------------------------------------------------------------------------


def spell(data):
    """How a file spells bytes."""
    return ''.join(SPELLING[b] for b in data)


def spelling():
    table, following = {}, 256
    for b in range(256):
        if 33 <= b <= 126 or 161 <= b <= 255 and b != 173:
            table[b] = chr(b)
        else:
            table[b] = chr(following)
            following += 1
    return table


SPELLING = spelling()


def join(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i:i + 2]) == pair:
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def train():
    """The merges: each time the most frequent pair, of equals the first by its bytes."""
    texts = [[bytes([b]) for b in word] for word in words('gpt-2', CORPUS)]
    merges = []
    for _ in range(MERGES):
        pairs = collections.Counter(pair for text in texts for pair in zip(text, text[1:]))
        merges.append(min(pairs, key=lambda pair: (-pairs[pair], pair)))
        texts = [join(text, merges[-1]) for text in texts]
    return merges


class Bpe:
    """The vocabulary with one of the pre-tokenizers."""
    merges = train()
    whole = ['<tool', '<tool_call>', 'été?']  # user-defined: found in any text before all else

    def __init__(self, pre):
        self.pre = pre
        self.ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        # The bytes in an unusual order, the results of merges, and a word that no merges produce.
        texts = [bytes([b * 7 % 256]) for b in range(256)] + [a + b for a, b in self.merges] + [b' kingdom']
        self.tokens = [(spell(text), NORMAL) for text in texts]
        self.ids = {text: i for i, text in enumerate(texts)}
        self.tokens += [(text, USER_DEFINED) for text in self.whole]
        self.bos, self.eos = len(self.tokens), len(self.tokens) + 1
        self.tokens += [('<|begin|>', CONTROL), ('<|end|>', CONTROL)]

    def put(self, file):
        file.put('tokenizer.ggml.model', STRING, 'gpt2')
        file.put('tokenizer.ggml.pre', STRING, self.pre)
        file.put('tokenizer.ggml.tokens', STRING, [text for text, _ in self.tokens])
        file.put('tokenizer.ggml.token_type', I32, [kind for _, kind in self.tokens])
        file.put('tokenizer.ggml.merges', STRING, [spell(a) + ' ' + spell(b) for a, b in self.merges])
        file.put('tokenizer.ggml.bos_token_id', U32, self.bos)
        file.put('tokenizer.ggml.eos_token_id', U32, self.eos)
        if self.pre == 'qwen2':
            file.put('tokenizer.ggml.add_bos_token', BOOL, False)

    def encode_word(self, word):
        if self.pre in WITH_WHOLE_WORDS and word in self.ids:
            return [self.ids[word]]
        symbols = [bytes([b]) for b in word]
        while True:
            ranked = [(self.ranks[pair], i) for i, pair in enumerate(zip(symbols, symbols[1:])) if pair in self.ranks]
            if not ranked:
                return [self.ids[symbol] for symbol in symbols]
            _, i = min(ranked)
            symbols[i:i + 2] = [symbols[i] + symbols[i + 1]]

    def encode(self, data):
        text, ids, begin, at = data.decode('utf-8', 'surrogateescape'), [], 0, 0
        if self.pre in WITH_WHOLE_WORDS:
            ids.append(self.bos)
        while at <= len(text):
            whole = max((w for w in self.whole if text.startswith(w, at)), key=len, default=None)
            if whole or at == len(text):
                ids += [i for word in words(self.pre, text[begin:at]) for i in self.encode_word(word)]
                if whole:
                    ids.append(next(i for i, token in enumerate(self.tokens) if token == (whole, USER_DEFINED)))
                at += len(whole or ' ')
                begin = at
            else:
                at += 1
        return ids


# ---- Texts --------------------------------------------------------------------------------------------------------

PARTS = [
    'the', 'king', ' king', ' kingdom', ' ', '  ', '\n', '\r\n', '\t', "'s", "'S", "'ll", "'LL", "'\u017f", "'\u017ft",
    "n't", '7', '1603', '123456', '½', 'Ⅷ', '!', '...', ' (', '—', 'été', 'e\u0301', 'là', '中文', 'наша', '\u3000',
    '\u00a0', '\u180e!', '\u0085', '\u200b', '\U0001f451', '\x00', '\x1c', '<|end|>', '<tool>', '<tool_call>', '<tool',
    'été?', 'x', 'The', 'KingThe', 'ÉTÉs', 'iPhone', '//\n', 'e\u0301\u0301T']
BYTES = [b'\x80', b'\xff\xfe', b'\xc3', b'\xe2\x96', b'\xed\xa0\x80', b'\xf4\x90\x80\x80', b'\xc0\x80', b'\xf0\x9f\x91']


def texts():
    dice = random.Random(1)
    yield b''
    yield from (line.encode() for line in CORPUS.split('\n'))
    yield CORPUS.encode()
    for part in PARTS:
        yield part.encode()
    for i in range(300):
        some = [dice.choice(PARTS).encode() for _ in range(dice.randrange(1, 12))]
        if i % 4 == 0:
            some.insert(dice.randrange(len(some)), dice.choice(BYTES))
        yield b''.join(some)


def main():
    golden = {}
    for pre in WORDS:
        bpe, file = Bpe(pre), Gguf()
        bpe.put(file)
        with open(os.path.join(sys.argv[1], 'bpe-%s.gguf' % pre), 'wb') as out:
            out.write(file.bytes())
        golden[pre] = [[text.hex(), bpe.encode(text)] for text in texts()]
    with open(os.path.join(sys.argv[1], 'bpe.json'), 'w', encoding='ascii') as out:
        json.dump(golden, out)


if __name__ == '__main__':
    main()
