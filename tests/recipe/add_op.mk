# SPDX-License-Identifier: MIT
# For add_op.bats: compiles the files with lists of ops, and has the linker look for the functions of the op halve. What
# else it does not find does not count.
.RECIPEPREFIX = >
CFLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L -O0 -Wall -Wextra -Werror -fPIC -MMD
CFLAGS += -Iinclude -Icore -Iverify -Ikernels -Iplugins -Iplugins/cpu -Itools -Itools/bench -Itests/fixtures
CFLAGS += -DACT=f32 -DWGT=f32 -DFORM_PLAIN -DTABLE=portable_f32_f32_base # for kernels/portable.c
LINKED := $(wildcard verify/oracle*.c) verify/build.c verify/case.c verify/close.c \
    $(wildcard plugins/common/lower*.c) plugins/common/rows.c
SOURCES := tools/bench/bench_dispatch.c $(wildcard core/call/*.c core/memory/*.c core/route/*.c) core/load/defaults.c $(LINKED) kernels/portable.c \
    tests/call/calls.c tests/plugin/cpu/test_rows.c tests/wrong/reference.c tests/wrong/halve_tail.c
OBJECTS := $(SOURCES:.c=.o)

all: $(OBJECTS)
> ! $(CC) -shared -Wl,-z,defs -o all.so $(LINKED:.c=.o) 2>&1 | grep 'undefined .*halve'

%.o: %.c
> $(CC) $(CFLAGS) -c -o $@ $<

-include $(OBJECTS:.o=.d)
