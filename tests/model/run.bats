#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The command `hw run`: $HW is the command, $MODEL a model, $GOLDEN the expected output.

bats_require_minimum_version 1.5.0

setup()
{
    cd "$BATS_TEST_TMPDIR" || exit 1
    unset HW_BACKENDS HW_DISABLE HW_REQUIRE HW_MEMORY_LIMIT HW_PRECISION HW_CONFIG
}

# Runs the command and stores standard output in the file `out`, standard error in `err`.
hw_run()
{
    status=0
    "$HW" run "$@" >out 2>err || status=$?
}

# refused STATUS WORDS...: standard output is empty, and standard error is one line that contains the words.
refused()
{
    cat err
    [ "$status" -eq "$1" ]
    [ ! -s out ]
    [ "$(wc -l <err)" -eq 1 ]
    shift
    for word in "$@"; do
        grep -qF -- "$word" err
    done
}

# patched NAME KEY VALUE: makes a copy of the model with another number or boolean for KEY.
patched()
{
    python3 - "$@" <<'END'
import os, struct, sys
name, key, value = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
data = bytearray(open(os.environ['MODEL'], 'rb').read())
at = data.index(struct.pack('<Q', len(key)) + key) + 8 + len(key)
kind = struct.unpack_from('<I', data, at)[0]
assert kind in (4, 7), kind
struct.pack_into('<I' if kind == 4 else '<B', data, at + 4, value)
open(name, 'wb').write(data)
END
}

@test "greedy text is the golden text, and the summary is complete" {
    hw_run "$MODEL" --prompt 'ROMEO:' -n 64 --device cpu --precision fp32
    cat err
    [ "$status" -eq 0 ]
    python3 - <<'END'
import json, os
golden = json.load(open(os.environ['GOLDEN']))['Q8_0'][0]
assert open('out').read() == golden['text'] + '\n', open('out').read()
END
    grep -qE '^prompt +3 tokens, [0-9.]+ tok/s$' err
    grep -qE '^generation +64 tokens, [0-9.]+ tok/s \(ended: count\)$' err
    grep -qE '^device +cpu:0, .+' err
    grep -qE '^memory +3\.[0-9]+ MiB weights (packed in [0-9.]+ s|in the mapped file), .*' err
    grep -qE '^memory .*, [0-9.]+ [KM]iB KV cache \(f32, 67 tokens\), ' err
    grep -qE '^memory .*, [0-9.]+ [KM]iB scratch$' err
    grep -qE '^ops +[1-9][0-9]* on cpu:0$' err
    grep -qE '^loading +[0-9.]+ s$' err
}

@test "greedy text is the golden text on a device with memory of its own, which works ahead of the host" {
    for count in 1 2 63 64; do
        HW_TRUST=off HW_FALLBACK=allow HW_PLUGIN_PATH=$DISCRETE hw_run "$MODEL" --prompt 'ROMEO:' -n $count \
            -d discrete,cpu --precision fp32 --json
        cat err
        [ "$status" -eq 0 ]
        COUNT=$count python3 - <<'END'
import json, os
run, count = json.load(open('out')), int(os.environ['COUNT'])
assert run['ids'] == json.load(open(os.environ['GOLDEN']))['Q8_0'][0]['greedy_ids'][:count], run['ids']
assert run['device'] == 'discrete:0' and run['memory']['mapped'] == 0, run
assert 0 < run['memory']['uploaded'] <= run['memory']['weights'] and run['memory']['upload_seconds'] > 0, run
# The exact number of ops: in the prompt, q, k and v are one product in each of four layers, and so are gate and up,
# except in the last layer, where gate and up have a single row.
assert run['ops']['own'] + run['ops']['elsewhere'] == count * run['graph']['nodes'] - 4 * 2 - 3, run['ops']
END
    done
}

@test "JSON is one object with the same facts" {
    hw_run "$MODEL" --prompt 'The king' -n 64 --device cpu --precision fp32 --json
    [ "$status" -eq 0 ]
    [ ! -s err ]
    python3 - <<'END'
import json, os
golden = json.load(open(os.environ['GOLDEN']))['Q8_0'][1]
run = json.load(open('out'))
assert run['text'] == golden['text']
assert run['ids'] == golden['greedy_ids'] and run['prompt_ids'] == golden['prompt_ids']
assert run['backend'] == 'cpu' and run['device'] == 'cpu:0' and run['ended'] == 'count'
assert run['rate'] > 0 and run['prompt_rate'] > 0
assert run['memory']['mapped'] + run['memory']['packed'] >= 3628032 and run['memory']['weights'] == 0, run['memory']
assert run['memory']['peak'] >= sum(run['memory'][part] for part in ('weights', 'packed', 'cache', 'scratch'))
assert run['ops']['own'] == 64 * run['graph']['nodes'] and run['ops']['elsewhere'] == 0, run['ops']
END
}

# Packed weights are summed in another order, so the last bits of logits differ. With 8-bit activations, codes in the
# next layer may differ too, and the text where two tokens are almost equally likely.
@test "weights are packed, or used as they are stored, with the same text in fp32" {
    for precision in fp32 int8; do
        hw_run "$MODEL" --prompt 'The king' -n 64 --device cpu --precision $precision --json
        [ "$status" -eq 0 ]
        mv out packed
        hw_run "$MODEL" --prompt 'The king' -n 64 --device cpu --precision $precision --no-pack --json
        [ "$status" -eq 0 ]
        python3 - $precision <<'END'
import json, sys
packed, stored = (json.load(open(name)) for name in ('packed', 'out'))
assert len(packed['ids']) == len(stored['ids']) == 64
if sys.argv[1] == 'fp32':
    assert packed['text'] == stored['text'] and packed['ids'] == stored['ids']
assert stored['memory']['packed'] == 0 and stored['memory']['mapped'] >= 3628032, stored['memory']
memory = packed['memory']
if memory['packed']: # on processors with a tuned row for it
    assert memory['packed'] >= 3000000 and memory['mapped'] < 1000000 and memory['pack_seconds'] > 0, memory
END
    done
}

@test "equal seeds give equal text, different seeds do not, and the default seed is printed" {
    for name in 1.first 1.again 2.first; do
        hw_run "$MODEL" --prompt 'ROMEO:' -n 32 --temperature 1 --top-k 100 --top-p 0.95 --seed ${name%.*}
        [ "$status" -eq 0 ]
        mv out $name
    done
    cmp 1.first 1.again
    run ! cmp -s 1.first 2.first
    hw_run "$MODEL" -n 2 --temperature 1
    grep -qE '^seed +[0-9]+$' err
}

@test "without a prompt, generation starts from BOS" {
    hw_run "$MODEL" -n 8
    [ "$status" -eq 0 ]
    grep -q '^prompt  *1 tokens' err
    [ -s out ]
}

@test "a text begins with BOS, even if EOS is the same token; without BOS a prompt is required" {
    patched both.gguf tokenizer.ggml.bos_token_id 2
    hw_run both.gguf -n 8
    cat err
    [ "$status" -eq 0 ]
    grep -q '^prompt  *1 tokens' err
    hw_run both.gguf -n 8 --prompt 'ROMEO:'
    [ "$status" -eq 0 ]
    grep -q '^prompt  *3 tokens' err
    patched none.gguf tokenizer.ggml.add_bos_token 0
    hw_run none.gguf -n 8; refused 1 'there is no token to begin with' '(--prompt)'
    hw_run none.gguf -n 8 --prompt 'ROMEO:'
    [ "$status" -eq 0 ]
}

@test "a missing device is named with its option, and the devices that exist are listed" {
    hw_run "$MODEL" -p x -n 1 --device cpu:77; refused 1 '--device: ' '"cpu:77": no such device; there are: cpu:0'
    [ "$(grep -cF 'ask for it' err)" -eq 0 ]
}

@test "a model with wrong metadata about layers or vocabulary is refused" {
    patched layers.gguf llama.block_count 1
    hw_run layers.gguf -n 2; refused 1 "'blk.1.attn_k.weight' at byte" 'is not used by' "of 1 blocks"
    patched fewer.gguf llama.vocab_size 1000
    hw_run fewer.gguf -n 2; refused 1 '1024 tokens' 'vocabulary of 1000' 'vocab_size'
    patched more.gguf llama.vocab_size 2000
    hw_run more.gguf -n 2; refused 1 'vocab_size' 'is 2000' '1024 rows'
}

@test "one token has no rate, because the prompt produces it" {
    hw_run "$MODEL" -n 1
    grep -qE '^generation +1 tokens \(ended: count\)$' err
    hw_run "$MODEL" -n 1 --json
    grep -q '"rate": null' out
}

@test "default seeds differ, however quickly runs follow each other" {
    for _ in 1 2 3 4; do
        "$HW" run "$MODEL" -n 1 --temperature 1 2>&1 >/dev/null | grep '^seed' >>seeds
    done
    cat seeds
    [ "$(sort -u seeds | wc -l)" -eq 4 ]
}

@test "every type of KV cache works, and its reported size is right" {
    last=999999999
    for type in f32 f16 q8_0 q5_1 q4_0; do
        hw_run "$MODEL" --prompt 'The king' -n 16 --kv-type $type --json
        [ "$status" -eq 0 ]
        bytes=$(python3 -c 'import json; print(json.load(open("out"))["memory"]["cache"])')
        [ "$bytes" -lt "$last" ]
        last=$bytes
    done
}

@test "keys and values may have two types" {
    for types in f32,q4_0 q4_0,f32 Q4_0,f16 f16,f16; do
        hw_run "$MODEL" --prompt 'The king' -n 16 --context 64 --kv-type $types --json
        [ "$status" -eq 0 ]
        TYPES=$types python3 - <<'END'
import json, os
run, types = json.load(open('out')), os.environ['TYPES'].lower()
bits = {'f32': 32, 'f16': 16, 'q4_0': 4.5}
# 4 layers, 2 key heads of 64 elements
assert run['memory']['cache'] == sum(4 * run['context'] * 128 * bits[type] / 8 for type in types.split(',')), run
assert run['kv_type'] == ('f16' if types == 'f16,f16' else types)
END
    done
    hw_run "$MODEL" --kv-type f16,q4_0 -n 1
    grep -q ' KV cache (f16,q4_0, ' err
}

@test "a type of the cache whose blocks the heads do not fill is refused with those that fit" {
    [ -n "${TINY-}" ] || skip "missing tool: python3 or PCRE2"
    hw_run "$TINY/tiny-qwen3.gguf" -p king --kv-type f16,q8_0
    refused 1 'values of 24 elements are not whole q8_0 blocks of 32; use f32, f16 or bf16 for the KV cache'
    hw_run "$TINY/tiny-qwen3.gguf" -p king --kv-type q8_0,f16; refused 1 'keys of 24 elements'
}

@test "generation ends when the context is full" {
    hw_run "$MODEL" --prompt 'ROMEO:' -n 500 --context 20 --json
    [ "$status" -eq 0 ]
    grep -q '"ended": "context full"' out
    python3 -c 'import json; assert len(json.load(open("out"))["ids"]) == 18'
}

@test "perplexity: text and JSON agree" {
    printf 'First Citizen:\nBefore we proceed any further, hear me speak.\n' >text
    hw_run "$MODEL" --perplexity text
    cat out err
    [ "$status" -eq 0 ]
    grep -qE '^perplexity [0-9.]+  \([0-9.]+ nats per token; [0-9]+ tokens in windows of 512\)$' out
    mv out plain
    hw_run "$MODEL" --perplexity text --json
    python3 - <<'END'
import json, math
run = json.load(open('out'))
assert open('plain').read().startswith('perplexity %.4f  (%.6f nats' % (run['perplexity'], run['nll']))
assert abs(math.exp(run['nll']) - run['perplexity']) < 1e-6 * run['perplexity']
assert run['windows'] == 1 and 5 < run['perplexity'] < 50
END
}

@test "bench measures prompts and tokens at every depth, without a file and with one" {
    hw_run --shape tiny --bench -p 16,40 -n 8 --depth 0,100 -r 2 -d cpu
    cat out err
    [ "$status" -eq 0 ]
    head -n 1 out | grep -qE '^tokens per second +median +min +p10 +p90 +\(2 repetitions\)$'
    names=$(sed -nE '2,$s/  +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$//p' out | tr '\n' ';')
    [ "$names" = 'pp16;pp40;tg8;pp16 @ d100;pp40 @ d100;tg8 @ d100;' ]
    grep -qE '^model +tiny, bf16, random weights$' err
    grep -qE '^memory .* KV cache \(f16, 140 tokens\)' err
    hw_run "$MODEL" --bench -p 0 -n 3 -r 3 -d cpu --json
    [ "$status" -eq 0 ]
    python3 - <<'END'
import json
run = json.load(open('out'))
(row,) = run['results']
assert (row['test'], row['prompt'], row['tokens'], row['depth'], row['repetitions']) == ('tg3', 0, 3, 0, 3), row
assert 0 < row['rate']['min'] <= row['rate']['median'] <= row['rate']['p90'], row
# every pass counts, including the one before them
assert run['ops']['own'] == (3 + 1) * 3 * run['graph']['nodes'], run['ops']
END
}

@test "random weights are packed, too, and the others given back" {
    hw_run --shape tiny --type q8_0 --bench -p 4 -n 1 -r 1 -d cpu --json
    [ "$status" -eq 0 ]
    python3 - <<'END'
import json
memory = json.load(open('out'))['memory']
# the embedding and the norms are not used in products
assert not memory['packed'] or memory['weights'] < memory['packed'], memory
END
}

@test "random weights have the types that hw quantize chooses, and give finite scores" {
    for type in f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q4_K q5_K q6_K Q4_K_M Q5_K_M; do
        hw_run --shape tiny --type $type --bench -p 4 -n 1 -r 1 -d cpu --no-pack --json
        cat err
        [ "$status" -eq 0 ]
        TYPE=$type python3 - <<'END'
import json, os
width, inner, keys, words, layers = 256, 768, 128, 512, 2
bits = {'f32': 32, 'f16': 16, 'bf16': 16, 'q8_0': 8.5, 'q4_0': 4.5, 'q4_1': 5, 'q5_0': 5.5, 'q5_1': 6, 'q4_K': 4.5,
        'q5_K': 5.5, 'q6_K': 6.5625}
most = bits[os.environ['TYPE'].replace('Q', 'q').replace('_M', '')]
scores = most if most >= 8.5 else bits['q6_K']
# With two layers, no layer is in the first eighth, and the second is in the last eighth.
more = bits['q6_K'] if '_M' in os.environ['TYPE'] else most
matrices = words * width * (most + scores) + layers * (2 * width * width + keys * width + 2 * inner * width) * most
matrices += (keys * width + inner * width) * (most + more)
run = json.load(open('out'))
weights = matrices / 8 + (2 * layers + 1) * width * 4
# buffers are rounded up
assert weights <= run['memory']['weights'] < weights + 64 * 1024, (weights, run['memory'])
assert run['type'] == os.environ['TYPE'] and run['model'] == 'tiny', run
END
    done
}

@test "bench refuses what it cannot measure" {
    hw_run --shape tiny; refused 2 '--shape requires --bench'
    hw_run "$MODEL" --depth 3; refused 2 '--depth requires --bench'
    hw_run --bench; refused 2 'the model file is missing'
    hw_run "$MODEL" --shape tiny --bench; refused 2 'a model file and --shape exclude each other'
    hw_run "$MODEL" --type f16 --bench; refused 2 '--type requires --shape'
    hw_run --shape mistral --bench; refused 2 'mistral: no such shape' "'mistral-7b'"
    hw_run --shape tiny --type q9 --bench; refused 2 'q9: no such type' 'there are: f32, f16'
    hw_run "$MODEL" --bench -p 'The king'; refused 2 "--prompt: 'The king' must be a whole number"
    hw_run "$MODEL" --bench -p 1,,2; refused 2 "--prompt: '' must be a whole number"
    hw_run "$MODEL" --bench -p 0 -n 0; refused 2 '--prompt 0 and -n 0 leave nothing to measure'
    hw_run "$MODEL" --bench -r 0; refused 2 "--repetitions: '0'" 'from 1 to'
    hw_run "$MODEL" --bench --depth "$(seq -s , 17)"; refused 2 'has more than 16 numbers'
    hw_run "$MODEL" --bench --temperature 1; refused 2 '--temperature and --bench exclude each other'
    hw_run "$MODEL" --bench --perplexity x; refused 2 '--perplexity and --bench exclude each other'
    hw_run "$MODEL" --bench --depth 500 -n 13; refused 1 'the longest test has 1012 tokens' 'at most 512'
}

@test "precision comes from the option, a setting, or the weights" {
    # precision_is PRECISION TYPE OPTION...: checks the precision of the run and the type of its KV cache
    precision_is()
    {
        hw_run -p x -n 1 -d cpu --json "${@:3}"
        cat err
        WANTED="$1 $2" python3 -c 'import json, os
run = json.load(open("out"))
assert run["precision"] + " " + run["kv_type"] == os.environ["WANTED"], run'
    }
    precision_is int8 f16 "$MODEL"
    "$HW" quantize "$MODEL" f16.gguf f16 2>err
    precision_is fp16 f16 f16.gguf
    precision_is fp32 f32 "$MODEL" --precision fp32
    precision_is fp16 f16 "$MODEL" --precision fp16
    precision_is fp32 q8_0 "$MODEL" --precision fp32 --kv-type q8_0
    HW_PRECISION=fp32 precision_is fp32 f32 "$MODEL"
    HW_PRECISION=fp32 precision_is int8 f16 "$MODEL" --precision int8
    echo 'precision = fp16' >hw.conf
    HW_CONFIG=$PWD/hw.conf precision_is fp16 f16 "$MODEL"
    if [ -n "${TINY-}" ]; then
        precision_is fp32 f32 "$TINY/tiny-llama.gguf"
    fi
    hw_run "$MODEL" -p x -n 1 -d cpu
    grep -q '^precision   int8 or better$' err
    hw_run "$MODEL" --precision fp8; refused 2 'fp8: no such precision; there are: fp32, fp16, int8'
    HW_PRECISION=fp8 hw_run "$MODEL"; refused 1 'HW_PRECISION: "fp8" is not a value'
    HW_CONFIG=/nonexistent/hw.conf hw_run "$MODEL"; refused 1 '/nonexistent/hw.conf'
}

@test "less precision changes the perplexity by less than 0.2 %" {
    yes 'Before we proceed any further, hear me speak.' | head -n 20 >text
    hw_run "$MODEL" --perplexity text --precision fp32 --json
    mv out exact
    for precision in fp16 int8; do
        hw_run "$MODEL" --perplexity text --precision $precision --json
        python3 -c 'import json
a, b = (json.load(open(name))["perplexity"] for name in ("exact", "out"))
assert a != b and abs(a - b) < 0.002 * a, (a, b)'
    done
}

@test "text is streamed, and Ctrl-C ends it but prints the summary" {
    "$HW" run "$MODEL" -n 100000 --prompt 'ROMEO:' >out 2>err &
    pid=$!
    until [ -s out ] || ! kill -0 $pid; do :; done # the first piece is there before the last
    kill -INT $pid || true
    wait $pid
    cat err
    grep -qE 'ended: (interrupted|context full)' err # a fast device may have come to the end
    grep -q '^ops' err
}

@test "a perplexity run interrupted by Ctrl-C fails and reports its progress" {
    yes 'Before we proceed any further, hear me speak.' | head -n 3000 >text
    # The first window of 8 tokens must be complete by then, and the last one must not.
    for delay in 0.2 0.5 1 2 4 8 16; do
        "$HW" run "$MODEL" --perplexity text --context 8 >out 2>err &
        pid=$!
        # Sent twice, because Ctrl-C is also caught while a plugin starts.
        for _ in 1 2; do
            until (($((16#$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$pid/status))) & 2)); do :; done
            sleep 0.05
        done
        sleep $delay
        kill -INT $pid
        status=0
        wait $pid || status=$?
        cat out err
        [ "$status" -eq 1 ]
        grep -q 'before the first window' err || break
    done
    grep -qE '^perplexity [0-9.]+ .*; interrupted after [0-9]+ of [0-9]+ tokens in windows of 8\)$' out
    grep -qE '^scoring .*\(interrupted\)$' err
}

@test "usage errors print one line each, and nothing runs" {
    hw_run; refused 2 'the model file is missing'
    hw_run "$MODEL" --prompt ''; refused 2 '--prompt is empty'
    hw_run "$MODEL" -n 0; refused 2 "-n: '0'" '1 to'
    hw_run "$MODEL" -n 12x; refused 2 "-n: '12x'"
    hw_run "$MODEL" -n 99999999999999999999; refused 2 '-n:'
    hw_run "$MODEL" --temperature -1; refused 2 '--temperature'
    hw_run "$MODEL" --temperature nan; refused 2 '--temperature'
    hw_run "$MODEL" --top-k -1; refused 2 '--top-k'
    hw_run "$MODEL" --top-p 0; refused 2 '--top-p'
    hw_run "$MODEL" --top-p 1.01; refused 2 '--top-p'
    hw_run "$MODEL" --seed 1e5; refused 2 '--seed'
    hw_run "$MODEL" --seed 9223372036854775808; refused 2 '--seed' 'from 0 to 9223372036854775807'
    hw_run "$MODEL" --context 0; refused 2 '--context'
    hw_run "$MODEL" --kv-type q8; refused 2 'q8: no such type' "'q8_0'"
    hw_run "$MODEL" --kv-type f16,q9_0; refused 2 'q9_0: no such type' "'q8_0'"
    hw_run "$MODEL" --kv-type f64; refused 2 'f64: no such type' 'there are: f32, f16, bf16, q8_0'
    for types in '' ',' 'f16,' ',f16'; do
        hw_run "$MODEL" --kv-type "$types"; refused 2 '--kv-type: a type is missing; give one, or two as in q8_0,q5_1'
    done
    hw_run "$MODEL" --kv-type f16,f16,f16; refused 2 'f16,f16: no such type' 'there are: f32, f16, bf16, q8_0'
    hw_run "$MODEL" --prompt x --prompt-file y; refused 2 '--prompt and --prompt-file exclude each other'
    for option in '--prompt y' '--prompt-file y' '-n 5' '-t 1' '--top-k 3' '--top-p 0.5' '--seed 1'; do
        # shellcheck disable=SC2086 # an option and its value
        hw_run "$MODEL" --perplexity x $option; refused 2 'and --perplexity exclude each other'
    done
    hw_run "$MODEL" --tempreature 1; refused 2 '--temperature'
    hw_run "$MODEL" "$MODEL"; refused 2 'unexpected argument'
}

@test "bad files print one line each, with the reason" {
    head -c 1000 "$MODEL" >short.gguf
    : >empty.gguf
    mkfifo fifo
    echo text >text.gguf
    hw_run nothing.gguf; refused 1 'nothing.gguf' 'No such file'
    hw_run .; refused 1 'is a directory'
    hw_run fifo; refused 1 'is not a regular file'
    hw_run empty.gguf; refused 1 'is empty'
    hw_run text.gguf; refused 1 'is not a GGUF file'
    hw_run short.gguf; refused 1 'short.gguf' 'at byte' 'cut short'
    hw_run "$MODEL" --perplexity nothing; refused 1 'nothing: cannot be opened'
    hw_run "$MODEL" --perplexity empty.gguf; refused 1 'is empty'
    hw_run "$MODEL" --perplexity .; refused 1 'cannot be read'
    hw_run "$MODEL" --perplexity /dev/zero; refused 1 '/dev/zero: is longer than 256 MiB'
    hw_run "$MODEL" --prompt-file /dev/zero; refused 1 '/dev/zero: is longer than 256 MiB'
    hw_run "$MODEL" --prompt - </dev/zero; refused 1 'standard input: is longer than 256 MiB'
    hw_run "$MODEL" --prompt-file nothing; refused 1 'nothing: cannot be opened'
    hw_run "$MODEL" --prompt-file ''; refused 1 'the name of the file to read is empty'
    hw_run '' --prompt x; refused 1 'the name of the file is empty'
    hw_run "$MODEL" --prompt - </dev/null; refused 1 'the prompt is empty'
}

@test "what a message quotes from a file is escaped" {
    python3 - <<'END'
import os
data = open(os.environ['MODEL'], 'rb').read()
at = data.index(b'llama', data.index(b'general.architecture'))
open('arch.gguf', 'wb').write(data[:at] + b'\xff\x1b[2J' + data[at + 5:])
END
    hw_run arch.gguf; refused 1 "key 'general.architecture' is '\\xff\\x1b[2J', supported are 'llama'"
    python3 - <<'END'
import os
data = open(os.environ['MODEL'], 'rb').read()
at = data.index(b'llama', data.index(b'tokenizer.ggml.model'))
open('zero.gguf', 'wb').write(data[:at] + b'll\0\xc3\xa9' + data[at + 5:])
END
    hw_run zero.gguf; refused 1 "key 'tokenizer.ggml.model' is 'll\\x00é', supported are 'llama'"
    hw_run arch.gguf
    run ! grep -qP '[^\x20-\x7e]' err
}

@test "a prompt from standard input or a file is the same as one on the command line" {
    hw_run "$MODEL" --prompt 'ROMEO:' -n 16
    mv out typed
    echo 'ROMEO:' >prompt
    hw_run "$MODEL" -p - -n 16 <prompt
    cmp out typed
    hw_run "$MODEL" --prompt-file prompt -n 16
    cmp out typed
    hw_run "$MODEL" --prompt-file prompt -n 1 --json
    grep -q '"prompt": "ROMEO:"' out
}

@test "JSON has the whole prompt, with a zero byte and with bytes that are not UTF-8" {
    printf 'ab\0caf\303\251\377\302' >prompt
    hw_run "$MODEL" --prompt-file prompt -n 1 -d cpu --json
    cat out err
    [ "$status" -eq 0 ]
    python3 - <<'END'
import json
run = json.load(open('out'))
assert run['prompt'] == 'ab\0caf\u00e9\ufffd\ufffd', run['prompt']
END
}

@test "the error names a model that is truncated while in use" {
    [ "${SANITIZER-none}" = none ] || skip "not applicable: a sanitizer reports the crash in its own way"
    cp "$MODEL" cut.gguf
    mkfifo prompt
    "$HW" run cut.gguf -n 4 --prompt-file prompt >out 2>err &
    pid=$!
    exec 8>prompt # the metadata has been read by now
    truncate -s 200000 cut.gguf
    echo 'ROMEO:' >&8
    exec 8>&-
    status=0
    wait $pid || status=$?
    cat err
    [ "$status" -eq 135 ]
    grep -q '^hw run: bus error while using cut.gguf, which is mapped and may have been truncated$' err
}

@test "a crash of a plugin names the model and the device, not the file's length" {
    [ -n "${FEW-}" ] || skip "not applicable: a plugin of one op was not built"
    HW_TRUST=off HW_PLUGIN_PATH=$FEW DEADLY=queue:segv hw_run "$MODEL" -n 4 -d deadly,cpu
    cat err
    [ "$status" -eq 139 ]
    grep -qE '^hw run: segmentation fault while using .* on deadly:0; HW_DISABLE=deadly leaves the plugin out' err
    grep -q 'crash.md' err
    run ! grep -q truncated err
}

@test "with HW_SHADOW the summary says how many calls were compared" {
    HW_SHADOW=1/1 hw_run "$MODEL" -p A -n 2 -d cpu
    cat err
    grep -qE '^shadow +no call compared on cpu:0 \(errors.md in the documentation says which ones are not\)$' err
    HW_SHADOW=1/1 hw_run "$MODEL" -p A -n 2 -d cpu --json
    grep -q '"compared": 0' out
    hw_run "$MODEL" -p A -n 2 -d cpu
    run ! grep -q '^shadow' err
}

@test "ops that other devices compute are counted for those devices" {
    [ -n "${FEW-}" ] || skip "not applicable: a plugin of one op was not built"
    HW_TRUST=off HW_FALLBACK=allow HW_PLUGIN_PATH=$FEW hw_run "$MODEL" -n 4 -d deadly,cpu
    cat err
    [ "$status" -eq 0 ]
    grep -qE '^ops +0 on deadly:0, [1-9][0-9]* on cpu:0 \(matmul [0-9]+, .*\)$' err
}

@test "models of every kind continue a prompt with the golden tokens" {
    [ -n "${TINY-}" ] || skip "missing tool: python3 or PCRE2"
    for name in llama mistral mistral3 qwen2 qwen3; do
        NAME=$name python3 -c 'import json, os; print(json.load(open(os.environ["TINY"] + "/tiny.json"))[
            os.environ["NAME"]]["prompt"])' >prompt
        hw_run "$TINY/tiny-$name.gguf" --prompt-file prompt -n 8 --precision fp32 --json
        cat err
        [ "$status" -eq 0 ]
        NAME=$name python3 - <<'END'
import json, os
golden = json.load(open(os.environ['TINY'] + '/tiny.json'))[os.environ['NAME']]
run = json.load(open('out'))
assert run['prompt_ids'] == golden['prompt_ids'], run['prompt_ids']
assert run['prompt_ids'] + run['ids'] == golden['tokens'], run['ids']
END
    done
}

@test "missing devices, and contexts and memory that are too small" {
    hw_run "$MODEL" --device nosuch; refused 1 'nosuch' 'cpu'
    hw_run "$MODEL" --device cpu:99; refused 1 'cpu:99'
    hw_run "$MODEL" --context 513; refused 1 '513' '512'
    hw_run "$MODEL" --context 3 --prompt 'ROMEO:'; refused 1 'the prompt has 3 tokens' 'shorten the prompt'
    hw_run "$MODEL" --prompt "$(printf 'x%.0s' $(seq 600))"; refused 1 'the prompt has' 'the context 512'
    HW_MEMORY_LIMIT=1M hw_run "$MODEL"; refused 1 'no room for the model'
}

@test "a full disk is an error" {
    [ -w /dev/full ] || skip "not applicable: no /dev/full"
    status=0
    "$HW" run "$MODEL" -n 4 >/dev/full 2>err || status=$?
    cat err
    [ "$status" -eq 1 ]
    grep -q 'No space left' err
}

@test "without a terminal there are no colours, progress bar or control characters" {
    hw_run "$MODEL" --prompt 'ROMEO:' -n 16
    run ! grep -qP '[\x00-\x08\x0b-\x1f\x7f]' out err
}

# shown TERM WORD...: prints the terminal output of `hw run WORD...`.
shown()
{
    TERM=$1 python3 - "$HW" run "${@:2}" <<'END'
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
shown = b''
try:
    while more := os.read(terminal, 4096): # it ends with the process
        shown += more
except OSError:
    pass
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
END
}

@test "on a terminal, a bar shows how far loading and measuring are, and is gone afterwards" {
    export HW_TRUST=off HW_FALLBACK=allow HW_PLUGIN_PATH=$DISCRETE
    shown xterm "$MODEL" --prompt 'ROMEO:' -n 4 -d discrete,cpu >out
    grep -Pzq '\rloading \[ *\]   0%(?s:.*)\r\e\[K[^%]*$' out
    shown xterm --shape tiny --bench -p 8 -n 2 -r 2 -d cpu >out
    grep -Pzq '\rmeasuring \[ *\]   0%(?s:.*)\r\e\[K[^%]*$' out
    shown dumb "$MODEL" --prompt 'ROMEO:' -n 4 -d discrete,cpu >out
    grep -q 'ROMEO:' out
    run ! grep '%' out
}

@test "help lists the options" {
    hw_run --help
    [ "$status" -eq 0 ]
    for option in --prompt --prompt-file --tokens --temperature --top-k --top-p --seed --device --kv-type --context \
        --perplexity --bench --depth --repetitions --shape --type --precision --json; do
        grep -q -- "$option" out
    done
}
