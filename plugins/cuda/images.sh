#!/bin/sh
# SPDX-License-Identifier: MIT
# The images in plugins/cuda/images: the kernels compiled, for a build without the compilers. Each PTX begins with the
# compiler that made it and a hash of the sources that it was made from; beside a cubin, a .txt says the same. A build
# with compilers takes a cubin from there, too: to make it again would take minutes, and it was measured.
#   images.sh hash IMAGE          prints the hash of an image's sources as they are: "mixed", "matmul_gemv.sm_90a"
#   images.sh sources             prints the names of the files of which those are
#   images.sh stale               succeeds if images were made from other sources than these, and prints their names
#   images.sh compile COMPILER COMMAND...  compiles a cubin, or takes that of images; fails where ptxas lets the matrix
#                                 units wait for each other (C75xx)
#   images.sh write DIR FILE...   writes the images that a build made to DIR, PTX without comments; cubins by CUDA 12
#                                 alone, which drivers from 525 on load, those of CUDA 13 only from 580 on
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)

# The portable kernels as a CUDA program, and the list of them, as kernels.def describes.
portable()
{
    cd "$root/kernels"
    cat dialect/cuda.h args.h prelude/math.h prelude/storage.h prelude/quantise.h prelude/group.h prelude/product.h
    sed -nE 's/^(MIXED|PLAIN|WEIGHTED)\(([a-z0-9_]+),.*/\2.c/p' kernels.def | xargs cat
    grep -E '^(MIXED|PLAIN|WEIGHTED|VARIANT)\(' kernels.def
}

# Of what the preprocessor leaves, without blanks: no comment counts, and no other language's or architecture's part.
hash()
{
    source=$root/plugins/cuda/kernels/${1%%.*}.cu
    arch=$(echo "$1" | sed -nE 's/.*\.sm_([0-9]+).*/\1/p')
    if [ -f "$source" ]; then
        ${CC:-cc} -E -P -x c ${arch:+"-D__CUDA_ARCH__=${arch}0"} -I "$root/kernels" "$source"
    else
        (portable) | ${CC:-cc} -E -P -x c -
    fi | tr -d '[:space:]' | sha256sum | cut -d ' ' -f 1
}

sources()
{
    find "$root/kernels" "$root/plugins/cuda/kernels" "$root/plugins/cuda/portable.cu" -name '*.cu' -print \
        -o -name '*.h' -print -o -path "$root/kernels/*.c" -print -o -path "$root/kernels/*.def" -print
}

stale()
{
    portable=$(hash portable)
    status=1
    for file in "$root"/plugins/cuda/images/*.ptx "$root"/plugins/cuda/images/*.txt; do
        [ -f "$file" ] || continue
        image=$(basename "${file%.*}")
        now=$portable
        [ ! -f "$root/plugins/cuda/kernels/${image%%.*}.cu" ] || now=$(hash "$image")
        grep -q "^// sources: $now\$" "$file" || { echo "$image" && status=0; }
    done
    return $status
}

# made FILE IMAGE COMPILER: the one in images is what this compiler, or "any", made of these sources.
made()
{
    [ -f "$1" ] || return
    [ "$3" = any ] || grep -qxF "// compiler: $3" "$1" || return
    grep -qx "// sources: $(hash "$2")" "$1"
}

compile()
{
    compiler=$1
    shift
    for word; do
        case ${previous-} in
        -o) output=$word ;;
        -MF) depfile=$word ;;
        esac
        previous=$word
    done
    name=$(basename "$output" .cubin)
    if made "$root/plugins/cuda/images/$name.txt" "$name" "$compiler"; then
        cp "$root/plugins/cuda/images/$name.cubin" "$output"
        ${CC:-cc} -E -M -MT "$output" -MF "$depfile" -x c -I "$root/kernels" "$root/plugins/cuda/kernels/${name%%.*}.cu"
        return
    fi
    log=$("$@" 2>&1) || { echo "$log" >&2 && return 1; }
    [ -z "$log" ] || echo "$log" >&2
    case $log in *"(C75"*) return 1 ;; esac
}

header()
{
    echo "// SPDX-License-Identifier: MIT"
    echo "// Made by \"ninja -C build cuda-images\" from the kernels: change those instead."
    echo "// compiler: $2"
    echo "// sources: $(hash "$1")"
}

refuse()
{
    echo "images.sh: $1: the images are made by NVRTC 12.8 or later of CUDA 12, not by $CUBIN_COMPILER: install it" \
        "(for example Python's nvidia-cuda-nvrtc-cu12), and configure the build with -Dnvrtc=enabled" >&2
}

# The build sets PTX_COMPILER and CUBIN_COMPILER: a line of what their --version prints, and for cubins the options. An
# image whose sources have not changed is left as it is.
write()
{
    to=$1
    shift
    for file; do
        image=$(basename "${file%.cubin}")
        [ "$image" != "$(basename "$file")" ] && ! made "$to/$image.txt" "$image" any || continue
        case $CUBIN_COMPILER in "NVRTC 12."[89]) ;; *) refuse "$image" && return 1 ;; esac
    done
    for file; do
        name=$(basename "$file")
        image=${name%.*}
        case $name in
        *.ptx)
            {
                header "$image" "$PTX_COMPILER"
                tr -s '\t ' ' ' <"$file" | sed -E 's|//.*||; s/^ //; s/ $//; /^$/d'
            } >"$to/$name"
            ;;
        *.cubin)
            ! made "$to/$image.txt" "$image" any || continue
            cp "$file" "$to/$name"
            chmod 644 "$to/$name"
            header "$image" "$CUBIN_COMPILER" >"$to/$image.txt"
            ;;
        esac
    done
}

"$@"
