#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The command `hw inspect`: $HW is the command, $MODEL a model.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR" || exit 1
}

# Runs the command and stores standard output in the file `out`, standard error in `err`.
inspect()
{
    status=0
    "$HW" inspect "$@" >out 2>err || status=$?
    cat out err
}

# Writes odd.gguf: values of every kind, and tensors of types that hw does not compute.
make_odd()
{
    python3 - <<'END'
import struct
def text(s): return struct.pack('<Q', len(s)) + s
def pair(key, kind, value): return text(key.encode()) + struct.pack('<I', kind) + value
def array(kind, items): return struct.pack('<IQ', kind, len(items)) + b''.join(items)
def numbers(count): return array(5, [struct.pack('<i', i) for i in range(count)])
pairs = [
    pair('general.architecture', 8, text(b'alien')),
    pair('n.u8', 0, b'\xff'), pair('n.i8', 1, b'\xff'),
    pair('n.u16', 2, b'\xfe\xff'), pair('n.i16', 3, b'\xfe\xff'),
    pair('n.u32', 4, b'\xff' * 4), pair('n.i32', 5, b'\xff' * 4),
    pair('n.u64', 10, b'\xff' * 8), pair('n.i64', 11, b'\xff' * 8),
    pair('n.f32', 6, struct.pack('<f', 1e-5)), pair('n.f64', 12, struct.pack('<d', 0.1)),
    pair('n.nan', 6, struct.pack('<f', float('nan'))), pair('n.inf', 12, struct.pack('<d', float('-inf'))),
    pair('n.bool', 7, b'\1'),
    pair('s.odd', 8, text(b'a\xff\x1b[2J\x7fb\xc2\x9b2J')), pair('s.long', 8, text(('\u00e4' * 100).encode())),
    pair('s.nul', 8, text(b'a\0b')), pair('s.empty', 8, text(b'')),
    pair('a.nested', 9, array(9, [numbers(0), numbers(2), numbers(9)])),
    pair('a.texts', 9, array(8, [text(b't%d' % i) for i in range(9)])),
]
def tensor(name, extents, kind, start):
    return text(name) + struct.pack('<I%dQIQ' % len(extents), len(extents), *extents, kind, start)
tensors = [tensor(b'b.second', (256, 2), 10, 192), tensor(b'a.first', (3, 2, 2), 27, 0), tensor(b'c', (5,), 0, 96)]
head = b'GGUF' + struct.pack('<IQQ', 2, len(tensors), len(pairs)) + b''.join(pairs) + b''.join(tensors)
open('odd.gguf', 'wb').write(head + b'\0' * (-len(head) % 32) + b'\1' * (192 + 168))
END
}

@test "facts, metadata and tensors of a model, as text" {
    inspect "$MODEL"
    [ "$status" -eq 0 ]
    [ ! -s err ]
    grep -qE '^format +GGUF version 3, 3.49 MiB$' out
    grep -qE '^architecture +llama: 4 layers of 256, 768 inside; 4 heads of 64, 2 for keys; ' out
    grep -qE '^architecture .*; a context of 512; 1024 tokens$' out
    grep -qE '^parameters +3\.41 million$' out
    grep -qE '^ +Q8_0 +29 tensors, 3\.45 MiB, 8\.5 bits per weight$' out
    grep -qE '^  llama.attention.layer_norm_rms_epsilon +f32 +1e-5$' out
    grep -qE '^  tokenizer.ggml.token_type +i32\[1024\] +\[2, 3, 3, 6, 6, 6, 6, 6, \.\.\.\]$' out
    grep -qE '^  blk.3.ffn_down.weight +Q8_0 +768 x 256, 204 KiB$' out
    run ! grep -q '^hw run' out
    [ "$(sed -n '/^tensors/,$p' out | wc -l)" -eq 39 ]
    inspect --all "$MODEL"
    [ "$status" -eq 0 ]
    [ "$(grep '  tokenizer.ggml.token_type' out | wc -c)" -gt 3000 ]
}

@test "JSON agrees with the file" {
    inspect "$MODEL" --json
    [ "$status" -eq 0 ]
    python3 - <<'END'
import json, math, os
tree = json.load(open('out'))
data = open(os.environ['MODEL'], 'rb').read()
assert tree['schema'] == 1 and tree['bytes'] == len(data) and tree['refusal'] is None
assert tree['shape']['layers'] == 4 and tree['shape']['vocabulary'] == 1024
assert sum(t['tensors'] for t in tree['types']) == len(tree['tensors']) == 38
assert sum(t['bytes'] for t in tree['types']) == sum(t['bytes'] for t in tree['tensors'])
assert tree['parameters'] == sum(t['elements'] for t in tree['tensors'])
for t in tree['tensors']:
    assert math.prod(t['extents']) == t['elements'] and t['offset'] % tree['alignment'] == 0
    assert t['bytes'] == t['elements'] * {'F32': 128, 'Q8_0': 34}[t['type']] // 32
assert max(t['offset'] + t['bytes'] for t in tree['tensors']) <= len(data)
tokens = tree['metadata']['tokenizer.ggml.tokens']
assert tokens['count'] == 1024 and tokens['value'] == ['<unk>', '<s>', '</s>'] + ['<0x%02X>' % i for i in range(5)]
END
}

@test "values of every kind, types that hw does not compute, and version 2" {
    make_odd
    inspect odd.gguf --json
    [ "$status" -eq 0 ]
    python3 - <<'END'
import json
tree = json.load(open('out'))
values = {key: pair['value'] for key, pair in tree['metadata'].items()}
assert tree['version'] == 2 and tree['architecture'] == 'alien' and tree['shape'] is None
assert "'general.architecture' is 'alien'" in tree['refusal'], tree['refusal']
for key, wanted in {'u8': 255, 'i8': -1, 'u16': 65534, 'i16': -2, 'u32': 2 ** 32 - 1, 'i32': -1,
                    'u64': str(2 ** 64 - 1), 'i64': -1, 'f32': 1e-5, 'f64': 0.1, 'bool': True, 'inf': '-inf'}.items():
    assert values['n.' + key] == wanted, (key, values['n.' + key])
assert values['n.nan'] in ('nan', '-nan')
assert values['s.odd'] == 'a\ufffd\x1b[2J\x7fb\x9b2J' and values['s.long'] == '\u00e4' * 100 and values['s.empty'] == ''
assert values['s.nul'] == 'a\0b'
assert values['a.nested'] == [[], [0, 1], [0, 1, 2, 3, 4, 5, 6, 7]], values['a.nested']
assert values['a.texts'] == ['t%d' % i for i in range(8)] and tree['metadata']['a.texts']['count'] == 9
assert [t['name'] for t in tree['tensors']] == ['b.second', 'a.first', 'c']
assert {t['type']: t['computed'] for t in tree['types']} == {'F32': True, 'Q2_K': False, 'I64': False}
END
    run ! env LC_ALL=C grep -qP '\xc2\x9b|\x7f' out # which a terminal would obey
    inspect odd.gguf --all --json
    python3 - <<'END'
import json
metadata = json.load(open('out'))['metadata']
assert len(metadata['a.texts']['value']) == 9 and len(metadata['a.nested']['value'][2]) == 9
END
    inspect odd.gguf
    grep -qE '^hw run +odd.gguf: ' out
    grep -qE '^ +Q2_K +1 tensors, 168 bytes, 2.625 bits per weight \(hw does not compute this type\)$' out
    grep -qE '^  a.first +I64 +3 x 2 x 2, 96 bytes$' out
    grep -qE '^  a.texts +string\[9\] +\["t0", .*"t7", \.\.\.\]$' out
    grep -qE '^  s.long +string +(ä){30}\.\.\.$' out
    grep -qE '^  s.nul +string +a\\x00b$' out
    grep -qF '\x1b[2J\x7fb\xc2\x9b2J' out
    run ! grep -qP '[\x00-\x09\x0b-\x1f\x7f]' out
    run ! env LC_ALL=C grep -q $'\xc2\x9b' out
}

@test "the tensors as CSV" {
    inspect "$MODEL" --csv
    [ "$status" -eq 0 ]
    [ "$(head -n 1 out)" = name,type,elements,bytes,offset ]
    [ "$(wc -l <out)" -eq 39 ]
}

@test "bad files and words are one line each" {
    inspect; [ "$status" -eq 2 ]
    grep -q 'the model file is missing' err
    inspect "$MODEL" more; [ "$status" -eq 2 ]
    head -c 1000 "$MODEL" >short.gguf
    for file in nothing.gguf . short.gguf /dev/null; do
        inspect $file
        [ "$status" -eq 1 ]
        [ ! -s out ]
        [ "$(wc -l <err)" -eq 1 ]
        grep -qF -- "$file" err
    done
}
