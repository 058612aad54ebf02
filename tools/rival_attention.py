#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long cuDNN's attention of one query takes, through PyTorch, on an NVIDIA GPU.

The rival of "checkops --perf --graph -k attention_decode": 64 calls in a graph, on caches that take turns and exceed
the L2 cache, bf16, 32 heads of 128 elements that share 8. Prints the median of 25 graphs, in us a call, for keys that
lie head by head, and for keys that lie as in a cache of hw. Needs PyTorch with CUDA and cuDNN.

usage: rival_attention.py [KEYS...]    (default: 1024 4096 32768)
"""

import statistics
import sys

CALLS, GRAPHS = 64, 25
HEADS, KV_HEADS, SIZE = 32, 8, 128
CACHES = 640 << 20  # bytes of keys and values that take turns


def tensors(torch, count, keys, as_cache):
    def one():
        if as_cache:
            x = torch.randn(1, keys, KV_HEADS, SIZE, device="cuda", dtype=torch.bfloat16)
            return x.transpose(1, 2)
        return torch.randn(1, KV_HEADS, keys, SIZE, device="cuda", dtype=torch.bfloat16)

    return [one() for _ in range(count)]


def microseconds(torch, call):
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        call(0)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            for i in range(CALLS):
                call(i)
        taken = []
        for _ in range(GRAPHS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            taken.append(begin.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(taken)


def main():
    try:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError as error:
        sys.exit(f"rival_attention.py: PyTorch 2.3 or later is needed: {error}")
    if not torch.cuda.is_available():
        sys.exit("rival_attention.py: PyTorch finds no CUDA device")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    for keys in [int(text) for text in sys.argv[1:]] or [1024, 4096, 32768]:
        count = max(1, min(80, 1 + CACHES // (2 * KV_HEADS * keys * SIZE * 2)))
        q = [torch.randn(1, HEADS, 1, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
        for as_cache in False, True:
            k, v = tensors(torch, count, keys, as_cache), tensors(torch, count, keys, as_cache)

            def call(i, q=q, k=k, v=v):
                n = i % len(q)
                torch.nn.functional.scaled_dot_product_attention(q[n], k[n], v[n], enable_gqa=True)

            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                taken = microseconds(torch, call)
            print(f"{keys:8d} keys, {'as in a cache of hw' if as_cache else 'head by head':20s} {taken:8.2f} us")


if __name__ == "__main__":
    main()
