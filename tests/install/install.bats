#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Installs this build into an empty prefix, moves it, and lives there as a user would: the README's program and a
# plugin from outside of the tree are built with pkg-config alone and run. Meson sets BUILD, PREFIX and LIBDIR.

bats_require_minimum_version 1.5.0

setup_file()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    export SOURCE=$PWD
    [ -n "${BUILD-}" ] || skip "not applicable: run by meson test, on what it built"
    # Installed into one place, used from another: no test here can lean on where the tree was built.
    DESTDIR=$BATS_FILE_TMPDIR/stage meson install -C "$BUILD" --no-rebuild --quiet >/dev/null
    mv "$BATS_FILE_TMPDIR/stage$PREFIX" "$BATS_FILE_TMPDIR/moved"
    export HOME_OF_HW=$BATS_FILE_TMPDIR/moved
    export PKG_CONFIG_PATH=$HOME_OF_HW/$LIBDIR/pkgconfig
    export LD_LIBRARY_PATH=$HOME_OF_HW/$LIBDIR
    unset HW_PLUGIN_PATH
}

setup()
{
    cd "$BATS_TEST_TMPDIR" || exit 1
}

# The moved tree's, whose prefix is another one than was configured: as docs/build.md says.
pkg-config()
{
    command pkg-config --define-variable=prefix="$HOME_OF_HW" "$@"
}

compile()
{
    # shellcheck disable=SC2086 # CC may be two words, as in "ccache gcc"
    ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror "$@"
}

@test "library, headers, plugin directory and pkg-config file are there" {
    test -L "$HOME_OF_HW/$LIBDIR/libhw.so"
    test -e "$HOME_OF_HW/$LIBDIR/libhw.so.0"
    test -f "$HOME_OF_HW/include/hw/hw.h"
    test -f "$HOME_OF_HW/include/hw/plugin.h"
    plugindir=$(pkg-config --variable=plugindir hw)
    [ "$(realpath "$plugindir")" = "$(realpath "$HOME_OF_HW/$LIBDIR/hw")" ]
    for plugin in $PLUGIN_NAMES; do
        test -f "$plugindir/hw_$plugin.so"
    done
}

@test "a plugin runs in a process of its own, and its proxy is not listed" {
    [ -x "$HOME_OF_HW/bin/hw" ] || skip "not applicable: built without the command"
    [[ $PLUGIN_NAMES == *cpu* ]] || skip "not applicable: built without the CPU plugin"
    HW_REQUIRE=cpu HW_WORKER=cpu HW_CACHE_DIR=off "$HOME_OF_HW/bin/hw" status >"$BATS_TEST_TMPDIR/status"
    cat "$BATS_TEST_TMPDIR/status"
    grep -q "In a process of its own (HW_WORKER): running" "$BATS_TEST_TMPDIR/status"
    run ! grep -q "hw_worker" "$BATS_TEST_TMPDIR/status"
}

@test "HW_SHADOW finds its judge" {
    [ -x "$HOME_OF_HW/bin/hw" ] || skip "not applicable: built without the command"
    [[ $PLUGIN_NAMES == *cpu* ]] || skip "not applicable: built without the CPU plugin"
    HW_SHADOW=1/1 HW_BACKENDS=cpu "$HOME_OF_HW/bin/hw" status
    rm "$HOME_OF_HW/libexec/hw/hw_shadow.so"
    HW_SHADOW=1/1 HW_BACKENDS=cpu run -1 "$HOME_OF_HW/bin/hw" status
    [[ $output == *"hw_shadow.so, which judges results, cannot be used: "*"unset HW_SHADOW"* ]]
}

@test "the command has its manual page and its completion" {
    [ -x "$HOME_OF_HW/bin/hw" ] || skip "not applicable: built without the command"
    test -f "$HOME_OF_HW/share/man/man1/hw.1"
    test -f "$HOME_OF_HW/share/bash-completion/completions/hw"
}

@test "hw-rival is not installed" {
    [ -z "$(find "$HOME_OF_HW" -name '*hw-rival*')" ]
}

@test "pkg-config prints the configured paths, without detours" {
    [ "$RELOCATABLE" = false ] || skip "not applicable: configured with pkgconfig.relocatable"
    run command pkg-config --cflags --libs hw
    echo "$output"
    [[ $output == "-I$PREFIX/include -L$PREFIX/$LIBDIR -lhw"* ]]
}

@test "nothing installed knows where it was built" {
    run ! grep -rF -e "$BUILD" -e "$SOURCE/" "$HOME_OF_HW"
}

@test "the installed examples build, and the README's prints what the README says" {
    for example in "$HOME_OF_HW/$DATADIR"/doc/hw/examples/*.c; do
        name=$(basename "$example" .c)
        # shellcheck disable=SC2046 # flags, on purpose
        compile -o "$name" "$example" $(pkg-config --cflags --libs hw)
        HW_BACKENDS=cpu "./$name" >"$name.output"
        cat "$name.output"
    done
    grep -qFxf rmsnorm.output "$SOURCE/README.md"
}

@test "the C++ example builds and runs" {
    for compiler in g++ clang++; do
        command -v "$compiler" >/dev/null || skip "missing tool: $compiler"
        # shellcheck disable=SC2046 # flags, on purpose
        "$compiler" -std=c++17 -Wall -Wextra -Wpedantic -Werror -o layer \
            "$HOME_OF_HW/$DATADIR/doc/hw/examples/layer.cpp" $(pkg-config --cflags --libs hw)
        HW_BACKENDS=cpu ./layer | tee output
        [ "$(cat output)" = "0.731 2.310 -0.269 0.311" ]
        HW_BACKENDS=nope run ! ./layer
        [[ $output == "HW_NO_DEVICE: "*nope* ]]
    done
}

@test "find_package: a program and a plugin with CMake" {
    command -v cmake >/dev/null || skip "not applicable: no cmake here"
    cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(hw 0.1 REQUIRED)
add_executable(program ${EXAMPLES}/rmsnorm.c)
target_link_libraries(program PRIVATE hw::hw)
add_library(hw_mine MODULE mine.c)
target_link_libraries(hw_mine PRIVATE hw::headers)
if(NOT EXISTS "${hw_PLUGIN_DIR}")
  message(FATAL_ERROR "hw_PLUGIN_DIR is ${hw_PLUGIN_DIR}")
endif()
find_package(hw 0.0 QUIET CONFIG)
if(hw_FOUND)
  message(FATAL_ERROR "0.0 is another series than 0.1")
endif()
END
    echo '#include <hw/plugin.h>' >mine.c
    cmake -S . -B cmake -DCMAKE_PREFIX_PATH="$HOME_OF_HW" -DEXAMPLES="$HOME_OF_HW/$DATADIR/doc/hw/examples"
    cmake --build cmake
    unset LD_LIBRARY_PATH
    HW_BACKENDS=cpu cmake/program | tee output
    grep -qFxf output "$SOURCE/README.md"
}

@test "the Python example runs" {
    command -v python3 >/dev/null || skip "not applicable: no python3 here"
    HW_BACKENDS=cpu python3 "$SOURCE/examples/softmax.py" | tee output
    [ "$(cat output)" = "cpu:0: 0.090 0.245 0.665" ]
}

@test "the Python example takes NumPy arrays and PyTorch tensors, and keeps temporary ones" {
    command -v python3 >/dev/null || skip "not applicable: no python3 here"
    HW_BACKENDS=cpu PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$SOURCE/examples python3 - <<'END'
import ctypes as c, types, weakref
from softmax import Queue, check, host, hw, struct_of

class Numpy:  # two columns of two, as numpy.asfortranarray() makes them
    def __init__(self, *values, typestr="<f4"):
        self.memory = (c.c_float * 4)(*values)
        self.__array_interface__ = {"data": (c.addressof(self.memory), False), "typestr": typestr, "shape": (2, 2),
                                    "strides": (4, 8)}

class Torch:
    shape, dtype, device = (2, 2), "torch.float32", types.SimpleNamespace(type="cpu")
    def __init__(self, *values):
        self.memory = (c.c_float * 4)(*values)
    def data_ptr(self):
        return c.addressof(self.memory)
    def element_size(self):
        return 4
    def stride(self):
        return 2, 1

def refused(array):
    try:
        host(array)
    except TypeError:
        return True

context = c.c_void_p()
check(hw.hw_open(None, context))
queue, x, y = Queue(hw.hw_device_default(context)), Numpy(1, 5, 3, 7), Torch(0, 0, 0, 0)
kept = weakref.ref(x)
queue.submit("add", a=host(x), b=host(Torch(10, 20, 30, 40)), y=host(y))
del x
assert kept()
queue.wait()
assert not kept() and list(y.memory) == [11, 23, 35, 47], list(y.memory)
assert struct_of("add") is struct_of("add")
there = Torch()
there.device = types.SimpleNamespace(type="cuda")
assert refused(there) and refused(Numpy(typestr=">f4")) and refused(Numpy(typestr="<f8")) and refused([1.0])
hw.hw_close(context)
END
}

@test "the Rust example builds and runs" {
    command -v rustc >/dev/null || skip "not applicable: no rustc here"
    rustc -O -L "$(pkg-config --variable=libdir hw)" -o silu "$SOURCE/examples/silu.rs"
    HW_BACKENDS=cpu ./silu | tee output
    [ "$(cat output)" = "-0.269 0.000 0.731" ]
}

@test "a program finds the library by a path of its own, as docs/build.md says" {
    unset LD_LIBRARY_PATH
    # shellcheck disable=SC2046 # flags, on purpose
    compile -o program "$SOURCE/examples/rmsnorm.c" $(pkg-config --cflags --libs hw) \
        -Wl,-rpath,"$(pkg-config --variable=libdir hw)"
    HW_BACKENDS=cpu ./program >output
    cat output
    grep -qFxf output "$SOURCE/README.md"
}

@test "meson devenv: the tree that is not installed builds and runs the same" {
    command -v meson >/dev/null || skip "missing tool: meson"
    unset PKG_CONFIG_PATH LD_LIBRARY_PATH
    # shellcheck disable=SC2016 # for the shell within
    HW_BACKENDS=cpu meson devenv -C "$BUILD" sh -ec 'cd "$0"
        ${CC:-cc} -o program "$1/examples/rmsnorm.c" $(pkg-config --cflags --libs hw)
        ./program >output
        pkg-config --variable=plugindir hw >plugindir' "$PWD" "$SOURCE"
    cat output plugindir
    grep -qFxf output "$SOURCE/README.md"
    [ "$(realpath "$(cat plugindir)")" = "$(realpath "$BUILD/plugins")" ]
}

@test "the moved command finds the moved plugins" {
    test -x "$HOME_OF_HW/bin/hw" || skip "not applicable: built without the command"
    unset LD_LIBRARY_PATH
    "$HOME_OF_HW/bin/hw" status >report
    cat report
    for plugin in $PLUGIN_NAMES; do
        grep -q "($plugin)" report
    done
}

@test "the plugin of docs/plugin-tutorial.md, with the op that the page adds, passes" {
    test -x "$HOME_OF_HW/bin/hw" || skip "not applicable: built without the command"
    tutorial=$HOME_OF_HW/$DATADIR/doc/hw/docs/plugin-tutorial.md
    cp -r "$HOME_OF_HW/$DATADIR/doc/hw/examples/minimal" mine
    cd mine
    sed -n '/copy:begin/,/copy:end/p' "$tutorial" | grep -vE '^(```|<!--)' >copy.c
    sed -e '/---- the table ----/r copy.c' -e 's/\.rmsnorm = rmsnorm/&, .copy = copy/' \
        -e 's/"minimal", "title=Minimal/"mine", "title=Mine/' hw_minimal.c >hw_mine.c
    line=$(grep -m 1 '^cc .*-o hw_mine.so' "$tutorial" | sed 's/^cc /compile /')
    eval "$line"
    "$HOME_OF_HW/bin/hw" verify --quick ./hw_mine.so | tee report
    grep -qE '^  copy +[1-9][0-9]* passed +0 failed' report
    grep -qE '^  rmsnorm +[1-9][0-9]* passed +0 failed' report
}

# The examples' plugins, built by the lines of CONTRIBUTING, in the current directory.
build_plugins()
{
    cp -r "$HOME_OF_HW/$DATADIR"/doc/hw/examples/{minimal,plugin} .
    sed -n '/plugin:begin/,/plugin:end/s/^cc /compile /p' "$SOURCE/CONTRIBUTING.md" >lines
    [ "$(wc -l <lines)" -eq 2 ]
}

@test "the plugins to start from are built as CONTRIBUTING says, dropped in and used" {
    test -x "$HOME_OF_HW/bin/hw" || skip "not applicable: built without the command"
    build_plugins
    . ./lines
    for name in minimal discrete; do
        [ "$(nm -D --defined-only "hw_$name.so" | awk '$2 != "A" { print $3 }')" = hw_plugin_entry ]
        run ! grep -F libhw "hw_$name.so"
        cp "hw_$name.so" "$(pkg-config --variable=plugindir hw)"
        # The moved library finds the moved hw-probe.
        HW_PROBE=child HW_LOG=debug "$HOME_OF_HW/bin/hw" status >report 2>log
        grep -q "trying .*/hw_$name.so in a process of its own" log
        cat report
        grep -q "($name)" report
        "$HOME_OF_HW/bin/hw" verify --quick "$PWD/hw_$name.so"
    done
}

@test "a tuned row in a copy of the plugin is one file and one line" {
    test -x "$HOME_OF_HW/bin/hw" || skip "not applicable: built without the command"
    build_plugins
    cat >plugin/kernels/silu_double.c <<'END'
/* y = x / (1 + e^-x), in double precision; wrong where SIGN is not 1. */
#include "walk.h"

#include <math.h>

static int32_t run(struct queue *queue, struct job *job)
{
    const struct hw_silu *op = &job->u.silu;
    int64_t index[HW_MAX_RANK] = { 0 };
    (void)queue;
    do {
        const double x = (double)*number(&op->x, index, op->x.rank);
        *number(&op->y, index, op->y.rank) = (float)(SIGN * x / (1.0 + exp(-x)));
    } while (advance(&op->y, index));
    return HW_OK;
}

const char *plan_silu_double(struct plan *plan, const struct kernel_row *row, const void *args)
{
    (void)row, (void)args;
    plan->run = run;
    return NULL;
}
END
    local condition='WHEN(op->x.rank <= 2, "two dimensions")'
    sed -i "/^ROW(silu,/i ROW(silu, silu_double, 0, TYPE(F32), $condition, plan_silu_double)" plugin/kernels.def
    sed -i 's/-Iplugin/& -DSIGN=-1/' lines
    . ./lines
    run ! "$HOME_OF_HW/bin/hw" verify --quick --op silu "$PWD/hw_discrete.so"
    grep -q silu_double <<<"$output"
    sed -i 's/-DSIGN=-1/-DSIGN=1/' lines
    . ./lines
    "$HOME_OF_HW/bin/hw" verify --quick --op silu "$PWD/hw_discrete.so"
}

@test "as a Meson subproject: by its name, with plugins and helpers, without tests and command" {
    command -v meson >/dev/null || skip "missing tool: meson"
    mkdir subprojects
    ln -s "$SOURCE" subprojects/hw
    cp "$SOURCE/examples/rmsnorm.c" main.c
    sed -n '/^```meson$/,/^```$/{//!p}' "$SOURCE/docs/embedding.md" >meson.build
    PKG_CONFIG_PATH='' meson setup build --wrap-mode=forcefallback
    ninja -C build -n app >steps
    for file in plugins/hw_cpu.so tools/probe/hw-probe tools/worker/hw-worker proxy/worker/hw_worker.so \
        verify/hw_shadow.so; do
        grep "target subprojects/hw/$file" steps
    done
    run ! grep -E 'subprojects/hw/(tests|tools/hw|plugins/cuda)' build/compile_commands.json
}

@test "an application that takes the library along, made as the page says" {
    cp "$SOURCE/examples/rmsnorm.c" main.c
    eval "$(sed -n '/^```sh$/,/^```$/{//!p;/^```$/q}' "$SOURCE/docs/shipping.md")"
    mv app elsewhere
    run --separate-stderr env -i HW_CACHE_DIR=off "$PWD/elsewhere/program"
    printf '%s\n' "$output" "$stderr"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    grep -q '^cpu' <<<"$output"
}
