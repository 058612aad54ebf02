#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles a kernel with NVRTC, NVIDIA's compiler as a library, where there is no nvcc. Its words are those of nvcc:
  nvrtc.py --version                     prints NVRTC and its version
  nvrtc.py --list-gpu-arch               prints the architectures that it knows, as compute_90
  nvrtc.py -fdevice-syntax-only -arch=sm_90 [-I... -D...] SOURCE
  nvrtc.py -cubin|-ptx -arch=sm_90 [-I... -D...] -MD -MF DEPFILE -o OUTPUT SOURCE
The exit status is 1 if NVRTC is not installed or refuses the source; what it says goes to stderr."""
import argparse
import ctypes
import glob
import os
import shlex
import subprocess
import sys

# What the loader finds, packages for Python (nvidia-cuda-nvrtc-cu12), and the toolkit. Machine code by CUDA 12 suits
# older drivers, but before 12.8 it does not know all the architectures.
NAMES = ["libnvrtc.so.12", "nvidia/*/lib/libnvrtc.so.12", "libnvrtc.so.13", "nvidia/*/lib/libnvrtc.so.13",
         "/usr/local/cuda/lib64/libnvrtc.so"]
NEWEST = "compute_120"


def libraries():
    for name in NAMES:
        packaged = [path for place in sys.path for path in glob.glob(os.path.join(place, name))]
        for path in packaged if "*" in name else [name]:
            try:
                yield ctypes.CDLL(path)
            except OSError:
                pass


def load():
    usable = []
    for nvrtc in libraries():
        try:
            if NEWEST in architectures(nvrtc):
                return nvrtc
            usable.append(nvrtc)
        except (AttributeError, SystemExit):  # too old, or damaged
            pass
    return usable[0] if usable else sys.exit("NVRTC (libnvrtc.so) 11.2 or later is not installed")


def check(nvrtc, result, what):
    if result != 0:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        sys.exit(f"NVRTC cannot {what}: {nvrtc.nvrtcGetErrorString(result).decode()}")


def version(nvrtc):
    major, minor = ctypes.c_int(), ctypes.c_int()
    check(nvrtc, nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "say its version")
    return f"NVRTC {major.value}.{minor.value}"


def architectures(nvrtc):
    count = ctypes.c_int()
    check(nvrtc, nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)), "count architectures")
    known = (ctypes.c_int * count.value)()
    check(nvrtc, nvrtc.nvrtcGetSupportedArchs(known), "list architectures")
    return [f"compute_{arch}" for arch in known]


def result_of(nvrtc, program, kind):
    """What a program has: its ProgramLog, PTX or CUBIN. The first two are text, with a NUL behind it."""
    size = ctypes.c_size_t()
    check(nvrtc, getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)), f"tell the size of a {kind}")
    data = ctypes.create_string_buffer(size.value)
    check(nvrtc, getattr(nvrtc, f"nvrtcGet{kind}")(program, data), f"return a {kind}")
    return data.raw if kind == "CUBIN" else data.value


def searched(words):
    """What both compilers are told about headers."""
    return [f"-I{path}" for path in words.include] + [f"-D{macro}" for macro in words.define]


def compile_source(nvrtc, words):
    arch = words.arch.replace("sm_", "compute_") if words.ptx else words.arch
    options = [f"--gpu-architecture={arch}", f"-I{os.path.dirname(words.source)}"] + searched(words)
    if words.syntax_only:
        options.append("--fdevice-syntax-only")
    with open(words.source, "rb") as source:
        text = source.read()
    program, name = ctypes.c_void_p(), os.fsencode(words.source)
    check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None), "create a program")
    array = (ctypes.c_char_p * len(options))(*map(os.fsencode, options))
    result = nvrtc.nvrtcCompileProgram(program, len(options), array)
    sys.stderr.buffer.write(result_of(nvrtc, program, "ProgramLog"))
    check(nvrtc, result, f"compile {words.source}")
    return program


def write_depfile(words):
    """NVRTC does not say which headers it read: the C compiler does."""
    subprocess.run(shlex.split(os.environ.get("CC", "cc")) + ["-E", "-M", "-MT", words.output, "-MF", words.depfile]
                   + searched(words) + ["-x", "c", words.source], check=True)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    for flag in ["--version", "--list-gpu-arch", "-cubin", "-ptx", "-MD"]:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-fdevice-syntax-only", dest="syntax_only", action="store_true")
    parser.add_argument("-arch")
    parser.add_argument("-I", dest="include", action="append", default=[])
    parser.add_argument("-D", dest="define", action="append", default=[])
    parser.add_argument("-MF", dest="depfile")
    parser.add_argument("-o", dest="output")
    parser.add_argument("source", nargs="?")
    return parser.parse_args()


def main():
    words, nvrtc = parse(), load()
    if words.version:
        print(version(nvrtc))
        return
    if words.list_gpu_arch:
        print("\n".join(architectures(nvrtc)))
        return
    program = compile_source(nvrtc, words)
    if words.output:
        image = result_of(nvrtc, program, "PTX" if words.ptx else "CUBIN")
        write_depfile(words)
        with open(words.output, "wb") as output:
            output.write(image)


if __name__ == "__main__":
    main()
