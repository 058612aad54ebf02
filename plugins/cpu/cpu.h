/* SPDX-License-Identifier: MIT */
/* cpu.h - declarations shared by the files of the CPU plugin:
 *
 *   plugin   the instance, and the table of functions
 *   device   the device: its facts, opening and closing it
 *   queue    queues
 *   event    events
 *   memory   buffers and transfers
 *   launch   an op becomes a plan (which code, which pointers), a plan is run; the rows
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
    /* not a feature of the machine: HW_PRECISION allows fp16 */
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
    uint64_t set[16]; /* processor i is bit i of the whole set; only if known */
    bool known;
    uint32_t count;
};

/* Reads the facts that do not change. `root` is a prefix for /proc and /sys; only tests set it to
 * anything but "". */
void machine_read(struct machine *machine, const char *root);
/* The affinity of the calling thread. */
void machine_affinity(struct affinity *affinity);
/* The processors that the cgroup's quota allows, rounded up; 0: no limit. */
uint32_t machine_quota(const char *root);
/* The number of cores of these processors, fast or slow: threads of one core count once. */
uint32_t machine_cores(const struct affinity *affinity, const char *root);
/* The useful number of threads: one per core, or fewer if the cgroup's quota is smaller. */
static inline uint32_t machine_threads(uint32_t cores, uint32_t quota)
{
    return quota && quota < cores ? quota : cores;
}
/* Reads the total and the free bytes of memory, both within the cgroup's limit; 0 if unknown. */
void machine_memory(const char *root, uint64_t *total, uint64_t *free);

/* ---- threads.c ----------------------------------------------------------------------------- */

/* Computes groups first .. end - 1. `thread` is the number of the calling thread, 0 .. threads - 1;
 * no two threads of a job have the same number at once. */
typedef void team_fn(void *user, int64_t first, int64_t end, uint32_t thread);

struct team;

/* Creates a team of `threads`, including the caller of team_run(), without starting any. A team
 * with more threads than `processors` never spins. Returns NULL if out of memory. */
struct team *team_create(uint32_t threads, uint32_t processors);
/* Makes `threads` only an upper bound: the first call that depends on the number asks for it.
 * Several calls may ask at once; the first answer counts. */
typedef uint32_t team_count_fn(void *user);
void team_ask(struct team *team, team_count_fn *count, void *user);
/* Ends and joins the threads. Accepts NULL. */
void team_destroy(struct team *team);
/* Work for a team: fn for groups 0 .. count - 1, in pieces of at least `grain`. */
struct team_work {
    team_fn *fn;
    void *user;
    int64_t count, grain;
    /* about the time that one thread would take, in us; 0: one unit per `grain` */
    int64_t units;
};
/* Returns when all the work is done, on the threads of the team. The first call with enough work
 * for two threads starts them. If there is less work, or another caller is using the team, the
 * caller computes alone. */
void team_run(struct team *team, const struct team_work *work);
/* The number of running threads, including the caller: 1 until the first team_run(). */
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
    char *workspace; /* for the op that runs; grows to the largest need so far */
    uint64_t workspace_bytes;
    bool logged[]; /* by row: whether its first use has been logged */
};

/* ---- launch.c ------------------------------------------------------------------------------ */

/* Computes groups first .. end - 1 of a planned call on one of the team's threads. */
typedef void plan_run_fn(const struct plan *plan, int64_t first, int64_t end,
                         uint32_t thread);

/* Set by a row's plan function. `op` lives as long as the plan. The plan may be used again for
 * calls with other addresses, so only `pointer` may depend on addresses. */
struct plan {
    const struct kernel_row *row;
    const void *op; /* the op's struct; its addresses may differ from those in `pointer` */
    plan_run_fn *run;
    int64_t groups; /* 0: nothing to do */
    double work;    /* about the multiply-adds of all groups; weighs the cost of threads */
    int64_t grain;  /* groups that one thread takes at least; set by launch.c */
    /* Must be complete before `run` begins, for example the conversion of operands. NULL: nothing
     * to prepare. The team shares its groups like those of `run`. */
    plan_run_fn *prepare;
    int64_t prepare_groups, prepare_grain;
    /* The extra memory that `prepare` and `run` need: for all threads together, and per thread. See
     * plan_shared(), plan_own(). */
    uint64_t shared_bytes, own_bytes;
    char *workspace; /* set by launch.c for each run; aligned to 64 bytes */
    /* For rows that compute the same as the portable kernel, from the same arguments: */
    struct lowered lowered;
    void *pointer[PORTABLE_POINTERS]; /* in the kernel's order */
    portable_fn *portable;
};

/* Memory of a plan while it runs, aligned to 64 bytes. Its content is left over from earlier
 * ops. */
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

/* Fills in everything but `run`, with the arguments of the portable kernel of the row's op
 * (described in kernels/args.h). Returns NULL, or the reason why no portable kernel computes
 * this. */
const char *plan_lowered(struct plan *plan, const struct kernel_row *row, const void *args);
/* Like plan_lowered(), for a row that takes weights packed by hw_tensor_pack(): see
 * lower_packed(). */
const char *plan_lowered_packed(struct plan *plan, const struct kernel_row *row,
                                const void *args);

/* The least work for a thread, in multiply-adds of portable code: about 1 us. Rows that are faster
 * divide plan.work accordingly. */
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
/* Like launch_run(), for a plan with at least one group and a workspace. */
void launch_groups(struct team *team, struct plan *plan);
/* The bytes of workspace that a plan needs for `threads` threads. */
uint64_t launch_workspace(const struct plan *plan, uint32_t threads);
/* Makes the queue's workspace at least that large. This may move it. */
int32_t launch_reserve(struct queue *queue, uint64_t bytes);
void launch_drop_workspace(struct queue *queue);

/* ---- memory.c ------------------------------------------------------------------------------ */

/* Memory aligned to 256 bytes, on huge pages if it is large. Returns NULL if there is none. free()
 * frees it. */
void *memory_get(uint64_t bytes, bool zeroed);
/* The bytes that memory_get() allocates for `bytes`. */
uint64_t memory_whole(uint64_t bytes);

#endif
