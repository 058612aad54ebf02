#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The architecture, read back from the build: exported symbols, needed libraries, size, and the includes of each file.
# Meson sets LIBRARY (libhw.so), PLUGINS (the built plugins), PROXIES, BUILD and NINJA.

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    [ -n "${LIBRARY-}" ] || skip "not applicable: run by meson test, on what it built"
    for object in $LIBRARY $PLUGINS $PROXIES; do
        [ -f "$object" ]
    done
}

exported()
{
    nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }'
}

needed()
{
    readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'
}

# Fails and shows the lines of stdin, if there are any.
nothing()
{
    local lines
    lines=$(cat)
    printf '%s\n' "$lines"
    [ -z "$lines" ]
}

@test "the library exports hw_* and nothing else" {
    exported "$LIBRARY" | grep -q '^hw_'
    exported "$LIBRARY" | grep -v '^hw_' | nothing
}

@test "every public function is exported" {
    declared=$(sed -nE 's/^HW_EXPORT [^(]*[ *](hw_[a-z0-9_]+)\(.*/\1/p' include/hw/{hw,ops,interop,report}.h | sort -u)
    [ -n "$declared" ]
    comm -23 <(echo "$declared") <(exported "$LIBRARY" | sort -u) | nothing
}

@test "no exported function is undocumented" {
    for symbol in $(exported "$LIBRARY"); do
        grep -qE "\b$symbol\(" include/hw/*.h || echo "$symbol"
    done | nothing
}

@test "the library reads variables where it looks whether it has elevated rights" {
    # config.c reads settings, libraries.c in hw-probe LD_LIBRARY_PATH; test_elevated.c tests both.
    grep -lE '\b(secure_)?getenv\(' -r core probe | grep -vxE 'core/settings/config\.c|probe/libraries\.c' | nothing
    grep -hE '\b(secure_)?getenv\(' -r core probe | grep -v 'elevated ? NULL : getenv(' | nothing
}

@test "the library needs libc only" {
    needed "$LIBRARY" | grep -vE '^(libc\.so\.6|ld-linux[-a-z0-9_]*\.so\.[0-9])$' | nothing
}

@test "the library is under 256 KiB when stripped" {
    strip -o "$BATS_TEST_TMPDIR/stripped" "$LIBRARY"
    size=$(stat -c %s "$BATS_TEST_TMPDIR/stripped")
    echo "$size bytes"
    [ "$size" -lt $((256 * 1024)) ]
}

@test "its name has a version in it" {
    readelf -d "$LIBRARY" | grep -qE 'SONAME.*\[libhw\.so\.[0-9]+\]'
}

@test "a plugin exports hw_plugin_entry alone, and carries a manifest" {
    [ -n "$PLUGINS" ] || skip "not applicable: built without plugins"
    for plugin in $PLUGINS; do
        [ "$(exported "$plugin")" = hw_plugin_entry ]
        readelf -SW "$plugin" | grep -qE '\.note\.hw +NOTE'
    done
}

@test "a plugin takes nothing from the library, nor from another plugin" {
    [ -n "$PLUGINS" ] || skip "not applicable: built without plugins"
    for plugin in $PLUGINS; do
        nm -D --undefined-only "$plugin" | grep -E ' hw_' | nothing
        needed "$plugin" | grep -E '^(lib)?hw' | nothing
    done
}

@test "a proxy exports its entry alone, and takes nothing from the library" {
    for proxy in $PROXIES; do
        case $proxy in
        */hw_shadow.so) [ "$(exported "$proxy")" = hw_shadow_entry ] ;;
        *) [ "$(exported "$proxy")" = hw_proxy_entry ] ;;
        esac
        nm -D --undefined-only "$proxy" | grep -E ' hw_' | nothing
        needed "$proxy" | grep -vE '^(lib[cm]\.so\.6|ld-linux[-a-z0-9_]*\.so\.[0-9])$' | nothing
        ldd -r "$proxy" 2>&1 | grep undefined | nothing
    done
}

@test "library and plugins ask for no executable stack and no path of the build" {
    for object in $LIBRARY $PLUGINS $PROXIES; do
        readelf -lW "$object" | grep -E 'GNU_STACK.*RWE' | nothing
        grep -F -- "$PWD" "$object" | nothing
    done
}

@test "core and kernels name no vendor" {
    vendors='amd|apple|cuda|cublas|cudnn|hip|hsa|huawei|intel|metal|mali|nvcc|nvidia|nvrtc|oneapi|opencl'
    vendors="$vendors|adreno|pocl|ptx|qualcomm|radeon|rocm|rusticl|spirv|sycl|vulkan"
    # The dialect headers connect the kernels to the vendors' compilers.
    git ls-files -- core 'kernels/*.[ch]' ':!kernels/dialect' |
        xargs grep -nIiE "(^|[^[:alpha:]])(lib)?($vendors)([^[:alpha:]]|$)" /dev/null |
        nothing
}

@test "each directory includes only what its layer may see" {
    "$NINJA" -C "$BUILD" -t deps | awk -v root="$PWD/" -v build="$BUILD/" -f tests/layers/includes.awk | nothing
}

# What includes.awk cannot see: functions that are declared in one room and defined in another.
@test "a call reaches no function of the way of a plugin file" {
    objects=$(dirname "$LIBRARY")
    defined() { nm --defined-only "$@" | awk '$2 == "T" { print $3 }' | sort -u; }
    used() { nm -u "$@" | awk 'NF == 2 { print $2 }' | sort -u; }
    above=$(find "$objects" -name '*.o' | grep -E '/(settings|load|cache|open)_[a-z_]+\.c\.o$')
    below=$(find "$objects" -name '*.o' | grep -E '/(call|route|memory|base|object)_[a-z_]+\.c\.o$')
    [ -n "$above" ] && [ -n "$below" ]
    # shellcheck disable=SC2086  # lists of paths without spaces
    comm -12 <(defined $above) <(used $below) | nothing
}

@test "no folder of the library has more than 25 files" {
    git ls-files -- core probe proxy | sed 's,/[^/]*$,,' | sort | uniq -c | awk '$1 > 25' | nothing
}

@test "each source of core includes its own header first" {
    for source in $(git ls-files -- 'core/*/*.c'); do
        header=${source%.c}.h
        [ -f "$header" ] || continue
        first=$(grep -m 1 '^#include' "$source")
        [ "$first" = "#include \"${header#core/}\"" ] || echo "$source: $first"
    done | nothing
}

# Tuned rows have a recipe of their own: neither an op nor a type variant needs one.
no_tuned_rows=(":!plugins/cpu/kernels" ":!plugins/cuda/tuned.def" ":!plugins/cuda/kernels.def" ":!plugins/cuda/kernels"
    ":!plugins/cuda/images/*.cubin" ":!tests/plugin/cuda/test_norms.c")

@test "CONTRIBUTING names the files that an op touches" {
    # No other op's text contains add_rmsnorm. Tests that use some op as an example are left out.
    {
        git grep -il add_rmsnorm -- include core kernels plugins verify tests/call/calls.c tests/kernels tests/plugin \
            tests/wrong "${no_tuned_rows[@]}"
        git ls-files -- '*add_rmsnorm*' "${no_tuned_rows[@]}"
    } | sort -u >"$BATS_TEST_TMPDIR/named"
    # shellcheck disable=SC2016 # the backticks are Markdown's
    sed -n '/op:begin/,/op:end/p' CONTRIBUTING.md | grep -oE '`[a-z_]+/[^` ]+`' | tr -d '\`' |
        sed 's/<op>/add_rmsnorm/' | grep -v ^docs/ >"$BATS_TEST_TMPDIR/patterns"
    while read -r pattern; do
        git ls-files -- ":(glob)$pattern"
    done <"$BATS_TEST_TMPDIR/patterns" | sort -u >"$BATS_TEST_TMPDIR/documented"
    comm -23 "$BATS_TEST_TMPDIR/named" "$BATS_TEST_TMPDIR/documented" | nothing
    while read -r pattern; do
        # shellcheck disable=SC2046 # paths without blanks
        git ls-files -- ":(glob)$pattern" | grep -q add_rmsnorm ||
            grep -qi add_rmsnorm $(git ls-files -- ":(glob)$pattern") || echo "$pattern"
    done <"$BATS_TEST_TMPDIR/patterns" | nothing
}

@test "CONTRIBUTING names the files that a type variant touches" {
    # No other text pairs these two types.
    git grep -lE "bf16(_|:|, ?|', ')f32" -- kernels plugins tests/kernels tests/plugin \
        "${no_tuned_rows[@]}" >"$BATS_TEST_TMPDIR/named"
    # shellcheck disable=SC2016 # the backticks are Markdown's
    sed -n '/variant:begin/,/variant:end/p' CONTRIBUTING.md | grep -oE '`[a-z_]+/[^` ]+`' | tr -d '\`' |
        diff - "$BATS_TEST_TMPDIR/named"
}
