#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The command `hw quantize`: $HW is the command, $MODEL a model of type Q8_0.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR" || exit 1
    export HW_BACKENDS=cpu
}

# Runs the command and stores standard output in the file `out`, standard error in `err`.
quantize()
{
    status=0
    "$HW" quantize "$@" >out 2>err || status=$?
    cat out err
}

# refused STATUS WORDS...: standard output is empty, standard error is one line with the words, and new.gguf does not
# exist.
refused()
{
    [ "$status" -eq "$1" ]
    [ ! -s out ]
    [ "$(wc -l <err)" -eq 1 ]
    shift
    for word in "$@"; do
        grep -qF -- "$word" err
    done
    [ ! -e new.gguf ]
    [ -z "$(find . -name '*.part')" ]
}

# make NAME TYPE COLS VALUES...: writes a file with the matrix a.weight, whose rows repeat the values, a two-dimensional
# norm, and a vector; type 0 is F32, 1 F16, 10 Q2_K.
make()
{
    python3 - "$@" <<'END'
import struct, sys
name, kind, cols, values = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [float(v) for v in sys.argv[4:]]
def text(s): return struct.pack('<Q', len(s)) + s
def pair(key, value): return text(key) + struct.pack('<I', 8) + text(value)
rows = [values[i % len(values)] for i in range(cols)] * 2
matrix = b'\0' * (cols // 256 * 84 * 2) if kind == 10 else struct.pack('<%d%s' % (len(rows), 'fe'[kind]), *rows)
def tensor(name, extents, kind, start):
    return text(name) + struct.pack('<I%dQIQ' % len(extents), len(extents), *extents, kind, start)
pad = lambda data, to: data + b'\0' * (-len(data) % to)
data, tensors = b'', b''
for n, extents, k, content in ((b'a.weight', (cols, 2), kind, matrix), (b'b_norm.weight', (4, 2), 0, b'\0\0\x80?' * 8),
                               (b'c.bias', (3,), 0, b'\0\0\0@' * 3)):
    tensors += tensor(n, extents, k, len(data))
    data = pad(data + content, 64)
pairs = pair(b'z.last', b'first') + text(b'general.alignment') + struct.pack('<II', 4, 64) \
    + text(b'general.file_type') + struct.pack('<II', 4, 99) + pair(b'a.first', b'last')
head = b'GGUF' + struct.pack('<IQQ', 3, 3, 4) + pairs + tensors
open(name, 'wb').write(pad(head, 64) + data)
END
}

@test "f32 has every value of Q8_0, and q8_0 of it scores the same" {
    quantize "$MODEL" f32.gguf f32
    [ "$status" -eq 0 ]
    [ ! -s err ]
    grep -qE '^before +3\.46 MiB: F32 9 KiB, Q8_0 3\.45 MiB$' out
    grep -qE '^after +13\.0[0-9] MiB: F32 13\.0[0-9] MiB$' out
    grep -qE '^written +f32.gguf, 13\.0[0-9] MiB in [0-9.]+ s$' out
    quantize f32.gguf q8.gguf Q8_0
    [ "$status" -eq 0 ]
    "$HW" inspect --json "$MODEL" >model.json
    "$HW" inspect --json f32.gguf >f32.json
    "$HW" inspect --json q8.gguf >q8.json
    python3 - <<'END'
import json, os, struct
trees = [(json.load(open(name + '.json')), open(path, 'rb').read())
         for name, path in (('model', os.environ['MODEL']), ('f32', 'f32.gguf'), ('q8', 'q8.gguf'))]
def data(tree, name):
    t = [t for t in tree[0]['tensors'] if t['name'] == name][0]
    return t['type'], tree[1][t['offset']:t['offset'] + t['bytes']]
names = [t['name'] for t in trees[0][0]['tensors']]
for tree, kind in ((trees[1][0], 0), (trees[2][0], 7)):
    assert [t['name'] for t in tree['tensors']] == names
    wanted = dict(trees[0][0]['metadata'])
    wanted['general.file_type'] = {'type': 'u32', 'value': kind}
    assert tree['metadata'] == wanted
def single(x): return struct.unpack('<f', struct.pack('<f', x))[0]
def decode(blocks):
    values = []
    for at in range(0, len(blocks), 34):
        scale, *codes = struct.unpack_from('<e32b', blocks, at)
        values += [single(scale * code) for code in codes]
    return values
for name in ('blk.1.attn_k.weight', 'output_norm.weight'):
    kind, blocks = data(trees[0], name)
    values = decode(blocks) if kind == 'Q8_0' else list(struct.unpack('<%df' % (len(blocks) // 4), blocks))
    kind, floats = data(trees[1], name)
    assert kind == 'F32' and list(struct.unpack('<%df' % (len(floats) // 4), floats)) == values
    kind, again = data(trees[2], name)
    if kind != 'Q8_0':
        continue
    worst = 0
    for at in range(0, len(values), 32): # at most half a step of the scale
        block, decoded = values[at:at + 32], decode(again[at // 32 * 34:at // 32 * 34 + 34])
        step = max(map(abs, block)) / 127
        worst = max([worst] + [abs(a - b) / step for a, b in zip(block, decoded) if step])
    assert worst < 0.57, worst
END
    printf 'First Citizen:\nBefore we proceed any further, hear me speak.\n' >text
    for file in "$MODEL" f32.gguf q8.gguf; do
        "$HW" run "$file" --precision fp32 --perplexity text --json >"$(basename "$file").json"
    done
    python3 - <<'END'
import json, os
names = os.path.basename(os.environ['MODEL']), 'f32.gguf', 'q8.gguf'
nll = [json.load(open(name + '.json'))['nll'] for name in names]
assert abs(nll[1] - nll[0]) < 1e-5 and abs(nll[2] - nll[0]) < 1e-2, nll
END
}

@test "a model of every type can be run, and scores about the same" {
    printf 'First Citizen:\nBefore we proceed any further, hear me speak.\n' >text
    "$HW" run "$MODEL" --perplexity text --json >model.json
    for type in f16 bf16 q4_0 q4_1 q5_0 q5_1 q4_K q5_K q6_K Q4_K_S Q4_K_M Q5_K_S Q5_K_M; do
        quantize "$MODEL" $type.gguf $type
        [ "$status" -eq 0 ]
        "$HW" run $type.gguf --perplexity text --json >$type.json
        "$HW" inspect $type.gguf --json >inspect.json
        rm $type.gguf
        TYPE=$type python3 - <<'END'
import json, os
numbers = {'f16': 1, 'q4_0': 2, 'q4_1': 3, 'q8_0': 7, 'q5_0': 8, 'q5_1': 9, 'q4_K': 14, 'Q4_K_S': 14, 'Q4_K_M': 15,
           'q5_K': 16, 'Q5_K_S': 16, 'Q5_K_M': 17, 'q6_K': 18, 'bf16': 32}
written = json.load(open('inspect.json'))['metadata']['general.file_type']
assert written == {'type': 'u32', 'value': numbers[os.environ['TYPE']]}, written
nll = [json.load(open(name + '.json'))['nll'] for name in ('model', os.environ['TYPE'])]
assert abs(nll[1] - nll[0]) < 0.05, nll
END
    done
}

@test "the same type is copied as it is" {
    quantize "$MODEL" same.gguf q8_0
    [ "$status" -eq 0 ]
    "$HW" inspect --csv "$MODEL" | cut -d , -f 1-4 >before
    "$HW" inspect --csv same.gguf | cut -d , -f 1-4 >after
    cmp before after
    cmp <(tail -c 3600000 "$MODEL") <(tail -c 3600000 same.gguf)
    quantize "$MODEL" same.gguf q8_0 --force --json
    [ "$status" -eq 0 ]
    python3 - <<'END'
import json, os
tree = json.load(open('out'))
assert tree['written'] is True and tree['bytes_before'] == tree['bytes_after']
assert tree['file_bytes'] == os.path.getsize('same.gguf') == os.path.getsize(os.environ['MODEL'])
assert all(t['from'] == t['to'] == t['wanted'] for t in tree['tensors']) and len(tree['tensors']) == 38
END
}

@test "the mixtures store the matrices that matter with more bits" {
    quantize "$MODEL" new.gguf Q4_K_M --dry-run --json
    [ "$status" -eq 0 ]
    [ ! -e new.gguf ]
    python3 - <<'END'
import json
tree = json.load(open('out'))
types = {t['name']: t['to'] for t in tree['tensors']}
assert tree['written'] is False
more = {'token_embd.weight'} | {'blk.%d.%s.weight' % (i, n) for i in (2, 3) for n in ('attn_v', 'ffn_down')}
for name, kind in types.items():
    assert kind == ('F32' if 'norm' in name else 'Q6_K' if name in more else 'Q4_K'), (name, kind)
END
    quantize "$MODEL" new.gguf q4_0 -n -v
    grep -qE '^  token_embd.weight +Q8_0 -> Q6_K, 272 KiB -> 210 KiB$' out
    grep -qE '^  blk.0.attn_norm.weight +F32$' out
    grep -qE '^not written, because of --dry-run$' out
    quantize "$MODEL" new.gguf q4_0 -n -v --pure
    grep -qE '^  token_embd.weight +Q8_0 -> Q4_0, 272 KiB -> 144 KiB$' out
}

@test "rows that are not whole blocks get another type, with a note; the rest of the file is kept" {
    make odd.gguf 0 48 0.5 -2 0.25
    quantize odd.gguf new.gguf q8_0
    [ "$status" -eq 0 ]
    grep -qE '^  a.weight +F32 -> F16, 384 bytes -> 192 bytes \(rows of 48 elements are not whole Q8_0 ' out
    "$HW" inspect --json new.gguf >new.json
    python3 - <<'END'
import json, struct
tree, data = json.load(open('new.json')), open('new.gguf', 'rb').read()
assert [(t['name'], t['type'], t['extents']) for t in tree['tensors']] == [
    ('a.weight', 'F16', [48, 2]), ('b_norm.weight', 'F32', [4, 2]), ('c.bias', 'F32', [3])]
assert tree['alignment'] == 64 and all(t['offset'] % 64 == 0 for t in tree['tensors'])
at = tree['tensors'][0]['offset']
assert struct.unpack('<96e', data[at:at + 192]) == (0.5, -2, 0.25) * 32
at = tree['tensors'][2]['offset']
assert data[at:at + 12] == b'\0\0\0@' * 3
assert data.index(b'z.last') < data.index(b'a.first') and data.count(b'general.file_type') == 1
assert tree['metadata']['general.file_type']['value'] == 7
END
    make wide.gguf 1 96 1 2
    quantize wide.gguf wide-out.gguf q4_K -n
    [ "$status" -eq 0 ]
    grep -q 'F16 -> Q5_0, .* are not whole Q4_K blocks of 256' out
}

@test "values that the type cannot store are refused, and the old file stays" {
    make nan.gguf 0 64 1 nan
    quantize nan.gguf new.gguf q8_0; refused 1 "tensor 'a.weight'" 'nan' 'the file is damaged'
    make large.gguf 0 64 1 70000
    quantize large.gguf new.gguf f16; refused 1 "tensor 'a.weight'" '70000' 'use bf16'
    echo old >old
    quantize large.gguf old f16 --force; refused 1 '70000'
    [ "$(cat old)" = old ]
    quantize large.gguf $'new\e.gguf' bf16
    [ "$status" -eq 0 ]
    grep -qF 'new\x1b.gguf' out
}

@test "no file is overwritten by mistake, and bad words are one line each" {
    cp "$MODEL" in.gguf
    ln -s in.gguf link.gguf
    ln in.gguf hard.gguf
    echo old >old
    mkdir folder
    for name in in.gguf link.gguf hard.gguf; do
        quantize in.gguf $name f16 --force; refused 1 "$name: is the file to read"
    done
    cmp in.gguf "$MODEL"
    quantize in.gguf old f16; refused 1 'old: exists; --force replaces it'
    [ "$(cat old)" = old ]
    quantize in.gguf folder f16 --force; refused 1 'folder: exists, and is not a regular file'
    quantize in.gguf none/new.gguf f16; refused 1 'none/new.gguf' 'No such file'
    quantize none.gguf new.gguf f16; refused 1 'none.gguf: cannot be opened'
    quantize in.gguf '' f16; refused 1 'the name of the file to write is empty'
    quantize in.gguf new.gguf q8; refused 2 'q8: no such type' "'q8_0'"
    quantize in.gguf new.gguf; refused 2 'IN.gguf, OUT.gguf and TYPE are required'
    quantize in.gguf new.gguf f16 --device nosuch; refused 1 '--device: ' 'nosuch'
    make alien.gguf 10 256 0
    quantize alien.gguf new.gguf f16; refused 1 "tensor 'a.weight' has type Q2_K, which hw cannot convert"
    quantize in.gguf old f16 --force
    [ "$status" -eq 0 ]
    [ "$(head -c 4 old)" = GGUF ]
}

@test "--force keeps the permissions, and replaces a link, not what it leads to" {
    for mode in 600 644 640; do
        echo old >old
        chmod $mode old
        quantize "$MODEL" old q8_0 --force
        [ "$status" -eq 0 ]
        [ "$(stat -c %a old)" = $mode ]
    done
    echo target >target
    ln -s target link
    quantize "$MODEL" link q8_0; refused 1 'link: exists; --force replaces it'
    quantize "$MODEL" link q8_0 --force
    [ "$status" -eq 0 ]
    [ "$(cat target)" = target ]
    [ ! -L link ]
    ln -s nothing dangling
    quantize "$MODEL" dangling q8_0; refused 1 'dangling: exists; --force replaces it'
    (umask 027 && quantize "$MODEL" fresh q8_0)
    [ "$(stat -c %a fresh)" = 640 ]
}

@test "a name may be as long as the system allows, and a longer one is refused before the work" {
    long=$(printf 'x%.0s' {1..255})
    quantize "$MODEL" "$long" q8_0
    [ "$status" -eq 0 ]
    quantize "$MODEL" "$long" f16 --force
    [ "$status" -eq 0 ]
    quantize "$MODEL" "x$long" f16 --force --device nosuch; refused 1 "x$long: File name too long"
}

@test "the progress stays on one line of the terminal" {
    for columns in 15 20 30 80; do
        rm -f new.gguf
        TERM=xterm script -qefc "stty cols $columns; '$HW' quantize '$MODEL' new.gguf q4_0" /dev/null </dev/null |
            tr '\r' '\n' | grep '^quantizing' >bar || [ $columns -eq 15 ]
        cat bar
        awk -v columns=$columns 'length($0) > columns - 1 { bad = 1 } END { exit bad }' bar
    done
    [ -s bar ]
}

@test "a write error leaves nothing" {
    run bash -c 'trap "" XFSZ; ulimit -f 1024; "$HW" quantize "$MODEL" new.gguf f32'
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == "hw quantize: new.gguf: cannot be written: "* ]]
    [ ! -e new.gguf ]
    [ -z "$(find . -name '*.part')" ]
}

@test "Ctrl-C leaves nothing" {
    # One matrix of 64 GiB of zeros, sparse on disk.
    python3 - <<'END'
import struct
head = b'GGUF' + struct.pack('<IQQ', 3, 1, 0)
head += struct.pack('<Q', 6) + b'weight' + struct.pack('<IQQIQ', 2, 1 << 12, 1 << 22, 0, 0)
head += b'\0' * (-len(head) % 32)
with open('zeros.gguf', 'wb') as file:
    file.write(head)
    file.truncate(len(head) + (1 << 36))
END
    "$HW" quantize zeros.gguf new.gguf q8_0 >out 2>err &
    pid=$!
    # From then on the command catches SIGTERM, and soon it writes.
    until (($((16#$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$pid/status))) & 0x4000)); do sleep 0.05; done
    sleep 0.3
    kill -INT $pid
    status=0
    wait $pid || status=$?
    refused 1 'interrupted; new.gguf is not written'
}
