#!/bin/bash
# SPDX-License-Identifier: MIT
# Makes the seeds of the fuzz targets elf, pe and macho from far.c: a plugin for each system and processor. They are in
# the tree, because not every machine has the compilers (Debian's clang-14, lld-14 and llvm-14). With a DIRECTORY, makes
# them there instead.
#
#   tests/foreign/make.sh [DIRECTORY]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../fuzz/corpus}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out/elf" "$out/pe" "$out/macho"

# compile TARGET OBJECT FLAG...
compile()
{
    local target=$1 object=$2
    shift 2
    clang-14 "--target=$target" "$@" -std=c11 -Os -fPIC -fvisibility=hidden -ffreestanding -fno-stack-protector \
        -nostdlibinc -I"$here/sdk" -I"$here/../../include" -c "$here/far.c" -o "$work/$object.o"
}

# Linux: an empty library with the C library's name is enough.
for target in aarch64-linux-gnu powerpc64-linux-gnu arm-linux-gnueabihf; do
    name=${target%%-*} flags=()
    [ "$name" != powerpc64 ] || flags=(-mabi=elfv2)
    compile "$target" "$name" "${flags[@]}"
    clang-14 "--target=$target" -x c -c /dev/null -o "$work/libc.o"
    ld.lld-14 -shared -soname libc.so.6 -o "$work/libc.so" "$work/libc.o"
    ld.lld-14 -shared -z now -z max-page-size=4096 --strip-all -o "$out/elf/far-$name.so" \
        "$work/$name.o" "$work/libc.so"
done

# Windows: the C library is msvcrt.dll; a .def lists its functions.
printf 'LIBRARY msvcrt.dll\nEXPORTS\nvsnprintf\nmemcpy\nmemset\n' >"$work/msvcrt.def"
while read -r name target machine; do
    compile "$target-pc-windows-gnu" "$name"
    llvm-dlltool-14 -m "$machine" -d "$work/msvcrt.def" -l "$work/$name.lib"
    lld-link-14 -lldmingw /dll /noentry /nodefaultlib /timestamp:0 "/out:$out/pe/far-$name.dll" \
        "/implib:$work/implib.lib" "$work/$name.o" "$work/$name.lib"
done <<'ROWS'
x86-64 x86_64 i386:x86-64
aarch64 aarch64 arm64
x86 i686 i386
ROWS

# A plugin that needs a part of Windows and two other libraries.
for library in far vcruntime140 api-ms-win-core-file-l1-1-0; do
    printf 'LIBRARY %s.dll\nEXPORTS\nneeded_%s\n' "$library" "${library//-/_}" >"$work/$library.def"
    llvm-dlltool-14 -m i386:x86-64 -d "$work/$library.def" -l "$work/$library.lib"
done
compile x86_64-pc-windows-gnu needing \
    -DNEEDS='X(needed_far) X(needed_vcruntime140) X(needed_api_ms_win_core_file_l1_1_0)'
lld-link-14 -lldmingw /dll /noentry /nodefaultlib /timestamp:0 "/out:$out/pe/far-needing.dll" \
    "/implib:$work/implib.lib" "$work/needing.o" "$work"/{x86-64,far,vcruntime140,api-ms-win-core-file-l1-1-0}.lib

# macOS: the C library is libSystem; a .tbd lists its functions.
cat >"$work/libSystem.tbd" <<'TBD'
--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: /usr/lib/libSystem.B.dylib
exports:
  - targets: [ x86_64-macos, arm64-macos ]
    symbols: [ _vsnprintf, _memcpy, _memset, dyld_stub_binder ]
...
TBD
for name in x86_64 arm64; do
    compile "$name-apple-macos11" "$name-macos"
    ld64.lld-14 -dylib -arch "$name" -platform_version macos 11.0 11.0 -install_name "hw_far.dylib" \
        -o "$work/$name.dylib" "$work/$name-macos.o" "$work/libSystem.tbd"
done
cp "$work/x86_64.dylib" "$out/macho/far-x86-64.dylib"
llvm-lipo-14 -create "$work/x86_64.dylib" "$work/arm64.dylib" -output "$out/macho/far-universal.dylib"

# A plugin that needs libraries through its own path, beside the program, and as a framework.
stub()
{
    printf -- '--- !tapi-tbd\ntbd-version: 4\ntargets: [ x86_64-macos ]\ninstall-name: "%s"\n' "$2" >"$work/$1.tbd"
    printf 'exports:\n  - targets: [ x86_64-macos ]\n    symbols: [ _needed_%s ]\n...\n' "$1" >>"$work/$1.tbd"
}
stub rpath @rpath/libfar.1.dylib
stub program @executable_path/../lib/libprogram.dylib
stub framework /Library/Frameworks/Far.framework/Versions/A/Far
compile x86_64-apple-macos11 needing-macos -DNEEDS='X(needed_rpath) X(needed_program) X(needed_framework)'
ld64.lld-14 -dylib -arch x86_64 -platform_version macos 11.0 11.0 -install_name hw_far.dylib \
    -rpath @loader_path/../lib -rpath /opt/far/lib -o "$out/macho/far-needing.dylib" "$work/needing-macos.o" \
    "$work"/{libSystem,rpath,program,framework}.tbd
