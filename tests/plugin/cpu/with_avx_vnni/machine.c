/* SPDX-License-Identifier: MIT */
/* The CPU plugin on a processor that claims to have AVX-VNNI. The program that loads it must
 * emulate the instructions: avx_vnni.h. It is built with the tests and never installed. */
#include "cpu.h"

void __real_machine_read(struct machine *machine, const char *root);
void __wrap_machine_read(struct machine *machine, const char *root);

/* The linker puts this function in front of the plugin's own. */
void __wrap_machine_read(struct machine *machine, const char *root)
{
    __real_machine_read(machine, root);
    machine->features |= HAS(AVX_VNNI);
}
