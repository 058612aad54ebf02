#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Every op of HW_OPS is in each list of the tree where the compiler and the linker would not miss it: see the recipe in
# CONTRIBUTING.md. add_op.bats shows that these tests, the compiler and the linker find whatever is forgotten.

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    ops=$(sed -nE 's/^    X\([A-Z_0-9]+, ([a-z_0-9]+)\).*/\1/p' include/hw/ops.h)
    [ "$(wc -w <<<"$ops")" -ge 24 ]
}

# each TEST...: fails, and names the ops for which it does. TEST gets an op as its last argument.
each()
{
    local op missing=
    for op in $ops; do
        "$@" "$op" || missing+=" $op"
    done
    echo "missing:$missing"
    [ -z "$missing" ]
}

has_seed()
{
    [ -e "tests/fuzz/corpus/ops/$1.bin" ]
}

# A kernel is launched by its name, or from a table of kernels.
is_run()
{
    grep -qE "(LAUNCH\([^,]*, |PORTABLE_)$1\b" tests/kernels/run_*.c
}

is_row()
{
    grep -qE "^(EVERY_TIER|PORTABLE)\($1\b" plugins/cpu/kernels.def
}

is_computed_wrong()
{
    grep -qE "^  '$1_[a-z0-9_]+': '$1'" tests/wrong/meson.build
}

# Oclgrind 21.10 lacks llvm.experimental.noalias.scope.decl, which inlining generates in layernorm.
is_looked_at()
{
    [ "$1" = layernorm ] || grep -q "'$1(" tests/plugin/opencl/oclgrind.bats
}

# has_cases LEVEL OP: the lists of cases.def are expanded as a compiler would.
has_cases()
{
    grep -qiE "^ *case $2 $1\$" "$BATS_FILE_TMPDIR/cases"
}

setup_file()
{
    printf '%s\n' '#define PARAMETERS(op, list)' '#define CASES(op, level, row) case op level;' '#include "cases.def"' |
        "${CC:-cc}" -I"$BATS_TEST_DIRNAME/../../verify" -E -P - | tr ';' '\n' >"$BATS_FILE_TMPDIR/cases"
}

@test "each op has quick cases and full ones" {
    each has_cases QUICK
    each has_cases FULL
}

@test "each op has cases with hardly any work, and cases for the probe of a plugin" {
    each has_cases CALL
    each has_cases ADMISSION
}

@test "each op's kernel is run as plain C" {
    each is_run
}

@test "each op has a portable row of the CPU plugin" {
    each is_row
}

@test "each op is computed wrong by a plugin" {
    each is_computed_wrong
}

@test "each op has a case for Oclgrind" {
    each is_looked_at
}

@test "each op has a seed for the fuzzer of calls" {
    each has_seed
}
