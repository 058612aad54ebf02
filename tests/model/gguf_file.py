# SPDX-License-Identifier: MIT
"""gguf_file.py - writes GGUF v3 files, for the scripts of tests/model."""
import struct

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
ALIGNMENT = 32


def f32(number):
    """The nearest number that an f32 holds."""
    return struct.unpack('<f', struct.pack('<f', number))[0]


def text(string):
    data = string if isinstance(string, bytes) else string.encode()
    return struct.pack('<Q', len(data)) + data


def value(kind, content):
    if kind == STRING:
        return text(content)
    return struct.pack({U32: '<I', I32: '<i', F32: '<f', BOOL: '<?'}[kind], content)


class Gguf:
    """The pairs are (kind, value), or (kind, list) for an array of that kind."""

    def __init__(self):
        self.pairs = {}
        self.tensors = []

    def put(self, key, kind, content):
        self.pairs[key] = (kind, content)

    def tensor(self, name, extents, type_number, data):
        """`extents` are innermost first, as in the file."""
        self.tensors.append((name, extents, type_number, data))

    def bytes(self):
        out = bytearray(b'GGUF' + struct.pack('<IQQ', 3, len(self.tensors), len(self.pairs)))
        for key, (kind, content) in self.pairs.items():
            out += text(key)
            if isinstance(content, list):
                out += struct.pack('<IIQ', ARRAY, kind, len(content))
                out += b''.join(value(kind, element) for element in content)
            else:
                out += struct.pack('<I', kind) + value(kind, content)
        start = 0
        for name, extents, type_number, data in self.tensors:
            out += text(name) + struct.pack('<I', len(extents))
            out += b''.join(struct.pack('<Q', extent) for extent in extents)
            out += struct.pack('<IQ', type_number, start)
            start += -(-len(data) // ALIGNMENT) * ALIGNMENT
        for _, _, _, data in self.tensors:
            out += bytes(-len(out) % ALIGNMENT) + data
        return bytes(out)
