#!/bin/sh
# SPDX-License-Identifier: MIT
# The images in plugins/cuda/images: PTX of the kernels, for a build where no compiler makes it. Each begins with the
# compiler that made it and a hash of the sources that it was made from.
#   images.sh hash                prints the hash of the sources as they are
#   images.sh stale               succeeds if an image was made from other sources than these
#   images.sh write DIR PTX...    writes the PTX that a build made to DIR, without comments
set -eu
root=$(dirname "$0")/../..

# The portable kernels as a CUDA program, and the list of them, as kernels.def describes; then the tuned ones.
program()
{
    cd "$root/kernels"
    cat dialect/cuda.h args.h prelude/math.h prelude/storage.h prelude/quantise.h prelude/group.h prelude/product.h
    sed -nE 's/^(MIXED|PLAIN|WEIGHTED)\(([a-z0-9_]+),.*/\2.c/p' kernels.def | xargs cat
    grep -E '^(MIXED|PLAIN|WEIGHTED|VARIANT)\(' kernels.def
    cat ../plugins/cuda/kernels/*.h ../plugins/cuda/kernels/*.cu | sed '/^#include/d'
}

# Of what the preprocessor leaves, without blanks: no comment counts, and no other language's part.
hash()
{
    (program) | ${CC:-cc} -E -P -x c - | tr -d '[:space:]' | sha256sum | cut -d ' ' -f 1
}

stale()
{
    now=$(hash)
    for image in "$root"/plugins/cuda/images/*.ptx; do
        grep -q "^// sources: $now\$" "$image" || return 0
    done
    return 1
}

# The build sets COMPILER: the first line of what its --version prints.
write()
{
    to=$1
    shift
    for ptx; do
        {
            echo "// SPDX-License-Identifier: MIT"
            echo "// Made by \"ninja -C build cuda-images\" from the kernels: change those instead."
            echo "// compiler: $COMPILER"
            echo "// sources: $(hash)"
            tr -s '\t ' ' ' <"$ptx" | sed -E 's|//.*||; s/^ //; s/ $//; /^$/d'
        } >"$to/$(basename "$ptx")"
    done
}

"$@"
