#!/bin/sh
# SPDX-License-Identifier: MIT
# The images in plugins/cuda/images: the kernels compiled, for a build without the compilers. Each PTX begins with the
# compiler that made it and a hash of the sources that it was made from; beside a cubin, a .txt says the same. A build
# with compilers takes a cubin from there, too: to make it again would take minutes, and it was measured.
#   images.sh hash IMAGE          prints the hash of an image's sources as they are: "mixed", "matmul_gemv.sm_90a"
#   images.sh stale               succeeds if images were made from other sources than these, and prints their names
#   images.sh compile any|same COMPILER COMMAND...  compiles an image by COMMAND, which is COMPILER, or takes that of
#                                 images, by any or by the same compiler; writes the .txt beside a cubin; fails where
#                                 ptxas lets the matrix units wait for each other (C75xx)
#   images.sh lacks COMPILER ...  as the COMMAND of a build without a compiler: fails, and says what to do
#   images.sh code HEADER COMPILER FILE...  writes which CUDA, as the driver has its version, the newest compiler is of
#                                 that these .txt name, and which one COMPILER, which translates PTX
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

header()
{
    echo "// SPDX-License-Identifier: MIT"
    echo "// Made by \"ninja -C build cuda-images\" from the kernels: change those instead."
    echo "// compiler: $2"
    echo "// sources: $(hash "$1")"
}

# depends OUTPUT IMAGE: the files that the image is made from, as Ninja reads them.
depends()
{
    source=$root/plugins/cuda/kernels/${2%%.*}.cu
    if [ -f "$source" ]; then
        ${CC:-cc} -E -M -MT "$1" -x c -I "$root/kernels" "$source"
    else
        printf '%s:' "$1"
        find "$root/kernels" -name '*.[ch]' -o -name '*.def' | sed 's/ /\\ /g; s/^/ /' | tr -d '\n'
        echo
    fi
}

# The .txt of a PTX is the PTX itself: it begins with those lines.
compile()
{
    which=$1
    compiler=$2
    shift 2
    for word; do
        case ${previous-} in
        -o) output=$word ;;
        -MF) depfile=$word ;;
        esac
        previous=$word
    done
    name=$(basename "$output")
    image=${name%.cubin}
    image=${image%.ptx}
    text=${name%.cubin}
    [ "$text" = "$name" ] || text=$text.txt
    [ "$which" = any ] && by=any || by=$compiler
    if made "$root/plugins/cuda/images/$text" "$image" "$by"; then
        cp "$root/plugins/cuda/images/$name" "$output"
        [ "$text" = "$name" ] || cp "$root/plugins/cuda/images/$text" "$(dirname "$output")"
        depends "$output" "$image" >"$depfile"
        return
    fi
    log=$("$@" 2>&1) || { echo "$log" >&2 && return 1; }
    [ -z "$log" ] || echo "$log" >&2
    case $log in *"(C75"*) return 1 ;; esac
    [ "$text" = "$name" ] || header "$image" "$compiler" >"$(dirname "$output")/$text"
}

lacks()
{
    echo "the kernels have changed since this image in plugins/cuda/images was made, and this build has no compiler" \
        "for it: install $1; then, or to leave the CUDA plugin out, run: ninja reconfigure (in the build directory)" >&2
    return 1
}

# "Build cuda_13.0.r13.0/compiler.36424714_0 -O3", "NVRTC 12.9": the newest one, as 13000
newest()
{
    sed -nE 's/.*(NVRTC |cuda_)([0-9]+)\.([0-9]+).*/\2 \3/p' |
        awk '{ version = $1 * 1000 + $2 * 10 } version > newest { newest = version } END { print newest + 0 }'
}

# Left as it is if nothing has changed, so that the plugin is not compiled again for each change of a kernel.
code()
{
    header=$1
    translator=$2
    shift 2
    {
        echo "/* Written by plugins/cuda/images.sh. */"
        echo "#define MACHINE_CODE_CUDA $(cat "$@" | grep '^// compiler: ' | newest)"
        echo "#define TRANSLATED_CODE_CUDA $(echo "$translator" | newest)"
    } >"$header.new"
    cmp -s "$header.new" "$header" || cp "$header.new" "$header"
    rm "$header.new"
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
