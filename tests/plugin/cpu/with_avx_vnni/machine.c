/* SPDX-License-Identifier: MIT */
/* The CPU plugin on a processor that is said to have AVX-VNNI. Who loads it sees to the
 * instructions: avx_vnni.h. Installed programs do not come across it: it lies with the tests. */
#include "cpu.h"

void __real_machine_read(struct machine *machine, const char *root);
void __wrap_machine_read(struct machine *machine, const char *root);

/* The linker puts this in front of the plugin's own. */
void __wrap_machine_read(struct machine *machine, const char *root)
{
    __real_machine_read(machine, root);
    machine->features |= HAS(AVX_VNNI);
}
