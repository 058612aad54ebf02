#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The recipe "add an op" of CONTRIBUTING.md is complete, and each step that is forgotten is an error: a copy of the tree
# gets a made-up op, halve, by the recipe alone, and then lacks one step after another. In each place, halve gets the
# text that the op silu has there, with its own name.

# NAME FILE START [END]: a step copies the lines of FILE from each that matches START to the next that matches END.
steps()
{
    cat <<'END'
operands include/hw/ops.h ^#define.HW_OPERANDS_SILU\(
scalars include/hw/ops.h ^#define.HW_SCALARS_SILU\(
struct include/hw/ops.h ^struct.hw_silu.{ ^};
wrapper include/hw/ops.h ^static.inline.enum.hw_status.hw_silu\( ^}
check core/call/check.c ^....RULES\(SILU,
oracle verify/oracle_pointwise.c ^bool.oracle_silu\( ^}
flops verify/oracle_pointwise.c ^double.flops_silu\( ^}
build verify/build.c ^static.void.build_silu\( ^}
parameters verify/cases.def ^PARAMETERS\(SILU,
quick verify/cases.def ^CASES\(SILU,.QUICK
full verify/cases.def ^CASES\(SILU,.FULL
call verify/cases.def ^CASES\(SILU,.CALL
admission verify/cases.def ^CASES\(SILU,.ADMISSION
kernel kernels/kernels.def ^PLAIN\(silu,
args kernels/args.h ^struct.silu_args ^};
run tests/kernels/run_rows.c LAUNCH.*,.silu,
lower plugins/common/lower_pointwise.c ^void.lower_silu\( ^}
row plugins/cpu/kernels.def ^EVERY_TIER\(silu\)
row_case tests/plugin/cpu/test_rows.c ^CASE\(silu\) ^}
row_test tests/plugin/cpu/test_rows.c ^....X\(SILU,
oclgrind tests/plugin/opencl/oclgrind.bats .silu\(type=
wrong tests/wrong/meson.build ^...silu_tail.:
END
    # The switches without a default.
    (cd "$source" && grep -rl 'case HW_OP_SILU:' core verify tests/call) |
        sed -E 's/.*/case:& & case.HW_OP_SILU:/'
}

rename='s/(^|[_.("'"'"']|, |int32_t )silu/\1halve/g; s/silu_/halve_/g; s/SILU/HALVE/g'

# copy_lines FILE START [END]
copy_lines()
{
    awk -v start="$2" -v end="${3-.}" '
        { print }
        $0 ~ start { on = 1 }
        on { text = text "copied:" $0 "\n" }
        on && $0 ~ end { printf "%s", text; text = ""; on = 0 }' "$1" |
        sed -E "/^copied:/ { s///; $rename; }" >"$1.new"
    mv "$1.new" "$1"
}

# The op's row, which is the last.
add_row()
{
    awk '/^#define HW_OPS\(X\)/ { on = 1 }
        on && !/\\$/ { print $0 " \\"; print "    X(HALVE, halve)"; on = 0; next }
        { print }' include/hw/ops.h >ops.h
    mv ops.h include/hw/ops.h
}

# The kernel's text, the wrong plugin, and a seed, which begins with the number of the op.
add_files()
{
    sed -E "$rename" "$source/kernels/silu.c" >kernels/halve.c
    sed -E "$rename" "$source/tests/wrong/silu_tail.c" >tests/wrong/halve_tail.c
    cp "$source/tests/fuzz/corpus/ops/silu.bin" tests/fuzz/corpus/ops/halve.bin
}

# edit FILE STEP: FILE has every step but this one.
edit()
{
    local name file start end
    cp "$source/$1" "$1"
    [ "$1" != include/hw/ops.h ] || [ "$2" = ops ] || add_row
    while read -r name file start end; do
        [ "$file" != "$1" ] || [ "$name" = "$2" ] || copy_lines "$file" "$start" ${end:+"$end"}
    done < <(steps)
}

# The text of the kernels, which the build makes of kernels.def, and the build stamp.
write_texts()
{
    local class
    echo '#define HW_BUILD_STAMP ""' >include/build_stamp.h
    for class in plain weighted mixed; do
        sed -nE "s/^${class^^}\(([a-z0-9_]+),.*/#include \"\1.c\"/p" kernels/kernels.def >kernels/text_$class.h
    done
}

setup_file()
{
    command -v make >/dev/null || return 0
    printf '#include <%s.h>\n' stdarg stddef stdint setjmp cmocka jansson |
        "${CC:-cc}" -x c -fsyntax-only - 2>/dev/null || return 0
    export source=$BATS_TEST_DIRNAME/../.. tree=$BATS_FILE_TMPDIR/tree
    mkdir -p "$tree"
    (cd "$source" && tar -cf - CONTRIBUTING.md core include kernels verify plugins/common plugins/cpu tools/bench \
        tools/command tools/util tests/call tests/fixtures tests/fuzz tests/kernels tests/plugin tests/recipe \
        tests/verify tests/wrong) | tar -xf - -C "$tree"
}

# Prints the first error of the compiler, of the linker or of recipe.bats; fails if there is none.
error()
{
    local said
    if ! said=$(make -sf tests/recipe/add_op.mk 2>&1); then
        grep -m 1 -E 'error:|undefined|No rule' <<<"$said" || echo "$said"
    elif ! said=$(bats tests/recipe/recipe.bats 2>&1); then
        grep -m 1 '^not ok' <<<"$said"
    else
        return 1
    fi
}

@test "an op that is added by the recipe compiles, links and is in each list" {
    [ -d "${tree-}" ] || skip "missing tool: make, cmocka or jansson"
    cd "$tree"
    add_files
    while read -r file; do
        edit "$file" none
    done < <(steps | cut -d ' ' -f 2 | sort -u)
    write_texts
    ! error || false
    mkdir "$BATS_FILE_TMPDIR/whole"
    cp -Rp . "$BATS_FILE_TMPDIR/whole"
}

@test "the recipe names each file that was changed" {
    cd "$BATS_TEST_DIRNAME/../.."
    # shellcheck disable=SC2016 # the backticks are Markdown's
    sed -n '/op:begin/,/op:end/p' CONTRIBUTING.md | grep -oE '`[a-z_]+/[^` ]+`' |
        tr -d '\`' >"$BATS_TEST_TMPDIR/patterns"
    while read -r file; do
        while read -r pattern; do
            # shellcheck disable=SC2053 # it is a pattern
            [[ $file == $pattern ]] && continue 2
        done <"$BATS_TEST_TMPDIR/patterns"
        echo "$file"
    done < <(source=$PWD steps | cut -d ' ' -f 2 | sort -u) >"$BATS_TEST_TMPDIR/unnamed"
    cat "$BATS_TEST_TMPDIR/unnamed"
    [ ! -s "$BATS_TEST_TMPDIR/unnamed" ]
}

@test "each step that is forgotten is an error of the compiler, of the linker or of a test" {
    [ -d "$BATS_FILE_TMPDIR/whole" ] || skip "not applicable: there is no such op"
    [ -z "$HW_TEST_QUICK" ] || skip "not applicable: the quick cases forget no step"
    cd "$tree"
    local name file rest silent=
    while read -r name file rest; do
        if [ "$name" = file ]; then
            rm "$file"
        else
            edit "$file" "$name"
        fi
        echo "$name, $file: $(error)" | grep ': .' || silent+=" $name"
        cp -Rp "$BATS_FILE_TMPDIR/whole/." .
    done < <(
        steps
        echo ops include/hw/ops.h
        printf 'file %s\n' kernels/halve.c tests/wrong/halve_tail.c tests/fuzz/corpus/ops/halve.bin
    )
    echo "forgotten without an error:$silent"
    [ -z "$silent" ]
}
