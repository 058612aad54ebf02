#!/bin/bash
# SPDX-License-Identifier: MIT
# Usage: tidy.sh BUILD - runs clang-tidy, as .clang-tidy says, over the files of core, examples, plugins, probe, proxy,
# tools and verify that BUILD compiles. The quick cases take the files that differ from the last commit: all take over a
# minute.
set -u

build=$1
cd "$(dirname "$0")/../.." || exit 1
program=clang-tidy-14
command -v "$program" >/dev/null || program=clang-tidy
if ! command -v "$program" >/dev/null; then
    echo "missing tool: clang-tidy"
    exit 77
fi
folders='core|examples|plugins|probe|proxy|tools|verify'
mapfile -t sources < <(sed -nE "s/.*\"file\": \"(\.\.\/)+(($folders)\/.*\.c)\".*/\2/p" \
    "$build/compile_commands.json" | sort -u)
if [ ${#sources[@]} -eq 0 ]; then
    echo "not applicable: the build directory is not in the tree"
    exit 77
fi
if [ -n "${HW_TEST_QUICK-}" ]; then
    mapfile -t sources < <(printf '%s\n' "${sources[@]}" | grep -Fxf <(git diff --name-only HEAD 2>/dev/null))
fi
if [ ${#sources[@]} -eq 0 ]; then
    echo "not applicable: no file differs from the last commit"
    exit 77
fi
printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -n 4 "$program" -p "$build" --quiet 2>&1 |
    grep -v ' warnings\? generated\.$'
exit "${PIPESTATUS[1]}"
