/* SPDX-License-Identifier: MIT */
/* cpu.h - the insides of the CPU plugin: which file does what.
 *
 *   plugin   the instance, and the table of what the plugin does
 *   device   the device: its facts, opening and closing it
 *   queue    queues
 *   event    events
 *   memory   buffers and transfers
 *   launch   an op becomes a plan (which code, which pointers), a plan is run; the rows
 *   plans    the plans that a queue remembers
 *   graph    lists of plans
 *   machine  facts of the processor, its cores and memory, read and never guessed
 *   threads  the team that shares an op's groups */
#ifndef CPU_H
#define CPU_H

#include <hw/plugin.h>

#include "common/lower.h"
#include "common/rows.h"
#include "common/slots.h"

#include <stdbool.h>

/* ---- machine.c ----------------------------------------------------------------------------- */

/* Feature bits of struct machine, named as in cpu.def. A tier is a bit, too. */
enum feature {
#define X86(NAME, leaf, subleaf, register, bit, state) FEATURE_##NAME,
#define ARM(NAME, word, bit)                           FEATURE_ARM_##NAME,
#define TIER(NAME, text, features)                     FEATURE_TIER_##NAME,
#include "cpu.def"
    FEATURE_COUNT
};
#define HAS(NAME) (UINT64_C(1) << FEATURE_##NAME)

struct machine {
    char name[128];
    char vendor[64];
    char arch[64];
    uint64_t features; /* HAS(AVX2) ... */
    uint32_t cores;    /* that this process may run on (its affinity) */
    /* how many cores' time the cgroup grants, rounded up; 0: no limit */
    uint32_t quota;
};

/* Reads the facts that do not change. `root` is put in front of /proc and /sys; only tests set
 * it to something other than "". */
void machine_read(struct machine *machine, const char *root);
/* Reads the bytes of memory and how many are free now, both within the cgroup's limit; 0 if
 * not known. */
void machine_memory(const char *root, uint64_t *total, uint64_t *free);

/* ---- threads.c ----------------------------------------------------------------------------- */

/* Computes groups first .. end - 1. Called on any thread of the team. */
typedef void team_fn(void *user, int64_t first, int64_t end);

struct team;

/* Creates a team of `threads`, including the caller of team_run(), and starts none of them
 * yet. A team with more threads than `cores` never spins. Returns NULL if out of memory. */
struct team *team_create(uint32_t threads, uint32_t cores);
/* Ends and joins the threads. Accepts NULL. */
void team_destroy(struct team *team);
/* Calls fn for groups 0 .. count - 1, in pieces of at least `grain`, on the threads of the
 * team, and returns when all are done. The first call starts the threads. If another caller
 * is using the team, this one computes its groups alone. */
void team_run(struct team *team, team_fn *fn, void *user, int64_t count, int64_t grain);
/* The number of threads that run, including the caller: 1 until the first team_run(). */
uint32_t team_size(const struct team *team);

/* ---- plugin.c ------------------------------------------------------------------------------ */

struct plugin {
    const struct hw_host *host;
    struct machine machine;
};

struct device {
    const struct hw_host *host;
    struct kernel_choice choice; /* HW_KERNEL's */
    struct team *team;
};

struct queue {
    struct device *device;
    struct kernel_choice choice;
    struct plans *plans;
    bool logged[]; /* by row: whether its first use was logged */
};

/* ---- launch.c ------------------------------------------------------------------------------ */

/* Computes groups first .. end - 1 of a planned call. Runs on any thread of the team. */
typedef void plan_run_fn(const struct plan *plan, int64_t first, int64_t end);

/* What a row's plan function fills in. `op` lives as long as the plan. It may be used again for
 * calls of other addresses, which only `pointer` may depend on. */
struct plan {
    const struct kernel_row *row;
    const void *op; /* the op's struct; its addresses may not be those of the call */
    plan_run_fn *run;
    int64_t groups; /* 0: nothing to do */
    double work;    /* multiply-adds of all groups, about: weighs the cost of threads */
    int64_t grain;  /* groups that one thread takes at least; set by launch.c */
    /* Of rows that compute what the portable kernel does, from the same arguments: */
    struct lowered lowered;
    void *pointer[PORTABLE_POINTERS]; /* in the kernel's order */
    portable_fn *portable;
};

/* Fills in all but `run`, as the portable kernel of the row's op has it (kernels/args.h
 * says what its arguments mean). Returns NULL, or why no portable kernel computes this. */
const char *plan_lowered(struct plan *plan, const struct kernel_row *row, const void *args);

extern const struct kernel_table launch_kernels;

/* Plans an op with the queue's rows. Returns NULL, or the reason why no row computes it. */
const char *launch_plan(struct queue *queue, uint32_t op, const void *args,
                        struct plan *plan);
void launch_run(struct queue *queue, struct plan *plan);

/* ---- plans.c ------------------------------------------------------------------------------- */

/* Returns NULL if out of memory. */
struct plans *plans_create(void);
/* Accepts NULL. */
void plans_destroy(struct plans *plans);
/* The plan of an op, made by an earlier call that was like this one, or now. It is the queue's,
 * until the next call. Returns NULL, and sets the reason, if no row computes it. */
struct plan *plans_find(struct queue *queue, uint32_t op, const void *args,
                        const char **why);

#endif
