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
 *   pack     packed weights, see pack.h
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
    /* not of the machine: what HW_PRECISION allows */
    FEATURE_ALLOW_FP16,
    FEATURE_ALLOW_INT8,
    FEATURE_COUNT
};
_Static_assert(FEATURE_COUNT <= 64, "bits of kernel_row.needs");
#define HAS(NAME) (UINT64_C(1) << FEATURE_##NAME)

struct machine {
    char name[128];
    char vendor[64];
    char arch[64];
    uint64_t features;   /* HAS(AVX2) ... */
    uint32_t processors; /* that this process may run on (its affinity) */
};

/* The processors that a thread may run on. */
struct affinity {
    uint64_t set[16]; /* bit i of them all: processor i; only if that is known */
    bool known;
    uint32_t count;
};

/* Reads the facts that do not change. `root` is put in front of /proc and /sys; only tests set
 * it to something other than "". */
void machine_read(struct machine *machine, const char *root);
/* Those of the calling thread. */
void machine_affinity(struct affinity *affinity);
/* How many processors' time the cgroup grants, rounded up; 0: no limit. */
uint32_t machine_quota(const char *root);
/* How many cores these processors are, of whatever speed: threads of one core count once. */
uint32_t machine_cores(const struct affinity *affinity, const char *root);
/* How many threads it is worth having: one for each core, fewer if the cgroup grants less time. */
static inline uint32_t machine_threads(uint32_t cores, uint32_t quota)
{
    return quota && quota < cores ? quota : cores;
}
/* Reads the bytes of memory and how many are free now, both within the cgroup's limit; 0 if
 * not known. */
void machine_memory(const char *root, uint64_t *total, uint64_t *free);

/* ---- threads.c ----------------------------------------------------------------------------- */

/* Computes groups first .. end - 1. `thread` is the one that calls, 0 .. threads - 1: no two of
 * a job have the same number at once. */
typedef void team_fn(void *user, int64_t first, int64_t end, uint32_t thread);

struct team;

/* Creates a team of `threads`, including the caller of team_run(), and starts none of them
 * yet. A team with more threads than `processors` never spins. Returns NULL if out of memory. */
struct team *team_create(uint32_t threads, uint32_t processors);
/* `threads` was the most that there may be. The first call that depends on it asks how many there
 * should be; several at once may, and the first answer counts. */
typedef uint32_t team_count_fn(void *user);
void team_ask(struct team *team, team_count_fn *count, void *user);
/* Ends and joins the threads. Accepts NULL. */
void team_destroy(struct team *team);
/* What a team computes: fn for groups 0 .. count - 1, in pieces of at least `grain`. */
struct team_work {
    team_fn *fn;
    void *user;
    int64_t count, grain;
    /* What one thread would take, in us, about; 0: a unit for each `grain`. */
    int64_t units;
};
/* Returns when all is done, on the threads of the team. The first call with enough for two starts
 * the threads. If there is less, or another caller is using the team, this one computes alone. */
void team_run(struct team *team, const struct team_work *work);
/* The number of threads that run, including the caller: 1 until the first team_run(). */
uint32_t team_size(const struct team *team);
/* The most that ever run. */
uint32_t team_limit(struct team *team);

/* ---- plugin.c ------------------------------------------------------------------------------ */

struct plugin {
    const struct hw_host *host;
    struct machine machine;
};

struct device {
    const struct hw_host *host;
    struct kernel_choice choice; /* HW_KERNEL's */
    struct affinity affinity;    /* of the thread that opened it */
    struct team *team;
    _Atomic bool told; /* the log has the number of threads */
};

struct queue {
    struct device *device;
    struct kernel_choice choice;
    struct plans *plans;
    char *workspace; /* of the op that runs; grows to what the largest one needs */
    uint64_t workspace_bytes;
    bool logged[]; /* by row: whether its first use was logged */
};

/* ---- launch.c ------------------------------------------------------------------------------ */

/* Computes groups first .. end - 1 of a planned call, as one of the team's threads. */
typedef void plan_run_fn(const struct plan *plan, int64_t first, int64_t end,
                         uint32_t thread);

/* What a row's plan function fills in. `op` lives as long as the plan. It may be used again for
 * calls of other addresses, which only `pointer` may depend on. */
struct plan {
    const struct kernel_row *row;
    const void *op; /* the op's struct; its addresses may not be those of the call */
    plan_run_fn *run;
    int64_t groups; /* 0: nothing to do */
    double work;    /* multiply-adds of all groups, about: weighs the cost of threads */
    int64_t grain;  /* groups that one thread takes at least; set by launch.c */
    /* What has to be complete before `run` begins, such as operands in another form. NULL:
     * nothing. Its groups are shared by the team like those of `run`. */
    plan_run_fn *prepare;
    int64_t prepare_groups, prepare_grain;
    /* The memory that `prepare` and `run` need besides: for all threads together, and for each.
     * See plan_shared(), plan_own(). */
    uint64_t shared_bytes, own_bytes;
    char *workspace; /* set by launch.c for each run; aligned to 64 bytes */
    /* Of rows that compute what the portable kernel does, from the same arguments: */
    struct lowered lowered;
    void *pointer[PORTABLE_POINTERS]; /* in the kernel's order */
    portable_fn *portable;
};

/* Memory of a plan while it runs, aligned to 64 bytes; what an earlier op left in it is there
 * still. */
static inline void *plan_shared(const struct plan *plan)
{
    return plan->workspace;
}

static inline uint64_t in_lines(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static inline void *plan_own(const struct plan *plan, uint32_t thread)
{
    return plan->workspace + in_lines(plan->shared_bytes) +
           thread * in_lines(plan->own_bytes);
}

/* Fills in all but `run`, as the portable kernel of the row's op has it (kernels/args.h
 * says what its arguments mean). Returns NULL, or why no portable kernel computes this. */
const char *plan_lowered(struct plan *plan, const struct kernel_row *row, const void *args);
/* The same for a row that takes weights as hw_tensor_pack() makes them: lower_packed(). */
const char *plan_lowered_packed(struct plan *plan, const struct kernel_row *row,
                                const void *args);

/* The work, in multiply-adds of portable code, that a thread takes at least: about 1 us. Rows that
 * are faster divide plan.work accordingly. */
#define WORTH_A_THREAD 8000.0

/* The units of struct team_work. */
static inline int64_t plan_units(const struct plan *plan)
{
    const double units = plan->work / WORTH_A_THREAD, most = 1e12;
    return (int64_t)(units < most ? units : most);
}

extern const struct kernel_table launch_kernels;

/* Plans an op with the queue's rows. Returns NULL, or the reason why no row computes it. */
const char *launch_plan(struct queue *queue, uint32_t op, const void *args,
                        struct plan *plan);
/* Returns HW_NO_MEMORY, with a message, if there is no memory for the plan's workspace. */
int32_t launch_run(struct queue *queue, struct plan *plan);
/* The same for a plan whose workspace is set and that has something to do. */
void launch_groups(struct team *team, struct plan *plan);
/* The bytes of workspace that a plan needs if so many threads may compute it. */
uint64_t launch_workspace(const struct plan *plan, uint32_t threads);
/* Makes the queue's workspace at least as large. Then it may be elsewhere. */
int32_t launch_reserve(struct queue *queue, uint64_t bytes);
void launch_drop_workspace(struct queue *queue);

/* ---- memory.c ------------------------------------------------------------------------------ */

/* Memory that is aligned to 256 bytes, on huge pages if it is large. NULL: there is none.
 * free() frees it. */
void *memory_get(uint64_t bytes, bool zeroed);
/* The bytes that memory_get() takes for so many. */
uint64_t memory_whole(uint64_t bytes);

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
