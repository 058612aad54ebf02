/* SPDX-License-Identifier: MIT */
/* tune_measure.c - measures the rows of a profile: transfers, and ops in several sizes. */
#define _POSIX_C_SOURCE 200809L
#include "tune.h"

#include "command/measure.h"
#include "command/output.h"
#include "command/shapes.h"

#include <verify.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile sig_atomic_t tune_stopped;

/* ---- one figure ---- */

enum { LEAST_SAMPLES = 7, MOST_SAMPLES = 200, WARM_UP = 2, TRIES = 3 };

/* One unit of work, which is timed until its results are in host memory. */
struct work {
    enum hw_status (*run)(struct hw_queue *queue, const void *what);
    const void *what;
};

static enum hw_status time_once(struct hw_queue *queue, const struct work *work, double *ns)
{
    const double start = now_ns();
    enum hw_status status = work->run(queue, work->what);
    if (!status)
        status = hw_queue_wait(queue);
    *ns = now_ns() - start;
    return status;
}

/* HW_END: interrupted. HW_INTERNAL, after a complaint: the clock makes no sense. */
static enum hw_status measure_once(struct hw_queue *queue, const struct work *work,
                                   double seconds, struct spread *spread)
{
    double samples[MOST_SAMPLES];
    const double end = now_ns() + seconds * 1e9, last = end + 10e9;
    enum hw_status status = HW_OK;
    size_t count = 0;
    for (int i = 0; i < WARM_UP && !status; i++)
        status = time_once(queue, work, &samples[0]);
    while (!status && count < MOST_SAMPLES && (count < LEAST_SAMPLES || now_ns() < end) &&
           (count == 0 || now_ns() < last)) {
        status = tune_stopped ? HW_END : time_once(queue, work, &samples[count]);
        count++;
    }
    if (status)
        return status;
    *spread = spread_of(samples, count);
    if (isfinite(spread->median) && spread->p10 > 0 && spread->median < 1e12)
        return HW_OK;
    complain("a call took %g ns; is the clock of this machine right?", spread->median);
    return HW_INTERNAL;
}

/* How much longer a slow call takes than a fast one, relative to the fast one. The median is not
 * used, because it may be that of a slow call. */
static double width_of(const struct spread *spread)
{
    return (spread->p90 - spread->p10) / spread->p10;
}

/* A slow call takes more than twice as long as a fast one, and the difference is large enough to
 * matter. */
static bool is_unsteady(const struct spread *spread)
{
    const double nothing = 2000; /* ns */
    return spread->p90 > 2 * spread->p10 + nothing;
}

/* Returns the first steady try, or else the steadiest one. */
static enum hw_status measure(struct hw_queue *queue, const struct work *work,
                              double seconds, struct spread *spread)
{
    enum hw_status status = measure_once(queue, work, seconds, spread);
    for (int i = 1; i < TRIES && !status && is_unsteady(spread); i++) {
        struct spread again;
        status = measure_once(queue, work, seconds, &again);
        if (!status && width_of(&again) < width_of(spread))
            *spread = again;
    }
    return status;
}

/* ---- rows ---- */

/* Times by amount of work or bytes, less the base. */
struct curve {
    double base, spread; /* ns; relative */
    bool unsteady;       /* some of the times are */
    int count;
    double amount[TUNE_SIZES], ns[TUNE_SIZES];
};

/* Noise only makes calls look slower, so a time is at most that of the next larger amount. */
static void smooth(struct curve *c)
{
    for (int i = c->count - 2; i >= 0; i--)
        c->ns[i] = fmin(c->ns[i], c->ns[i + 1]);
}

/* The library does better without a row than with a wrong one. */
static bool refuse_row(struct tuning *t, const char *name, const struct curve *c)
{
    t->unsteady++;
    complain("%s: %s is not kept: the times of one call vary by %.0f %%", t->profile.device,
             name, 100 * c->spread);
    return true;
}

static bool write_row(struct tuning *t, const char *name, struct curve *c)
{
    char line[TUNE_ROW];
    if (c->unsteady && !t->wishes->unsteady)
        return refuse_row(t, name, c);
    smooth(c);
    int used = snprintf(line, sizeof line, "%s %.0f %.0f %d", name,
                        c->base > 1 ? c->base : 1, fmin(c->spread * 1000, 999999),
                        c->count);
    for (int i = 0; i < c->count; i++)
        used += snprintf(line + used, sizeof line - (size_t)used, " %.0f:%.0f",
                         c->amount[i], c->ns[i]);
    return tune_add(&t->profile, line);
}

/* ---- transfers ---- */

struct move {
    struct hw_tensor there;
    void *here;
    uint64_t bytes;
};

static enum hw_status move_up(struct hw_queue *queue, const void *what)
{
    const struct move *m = what;
    return hw_tensor_write(queue, &m->there, m->here, m->bytes);
}

static enum hw_status move_down(struct hw_queue *queue, const void *what)
{
    const struct move *m = what;
    return hw_tensor_read(queue, &m->there, m->here, m->bytes);
}

static enum hw_status nothing(struct hw_queue *queue, const void *what)
{
    (void)queue, (void)what;
    return HW_OK;
}

static enum hw_status measure_move(struct tuning *t, bool up, int64_t bytes,
                                   struct spread *spread)
{
    struct move m = { .here = calloc(1, (size_t)bytes), .bytes = (uint64_t)bytes };
    const struct work work = { up ? move_up : move_down, &m };
    enum hw_status status = HW_NO_MEMORY;
    if (m.here)
        memset(m.here, 0x5a,
               (size_t)bytes); /* maps real pages instead of the page of zeros */
    if (m.here && !(status = hw_tensor_alloc(hw_queue_device(t->queue), 0, HW_I8, 1, &bytes,
                                             &m.there))) {
        status = measure(t->queue, &work, t->seconds, spread);
        hw_buffer_free(m.there.buffer);
    }
    free(m.here);
    return status;
}

/* Times are less that of the smallest transfer, which is part of the base of each call. */
static enum hw_status measure_moves(struct tuning *t, const char *name, bool up)
{
    static const int64_t all[] = { 1 << 10, 16 << 10, 128 << 10, 1 << 20,
                                   4 << 20, 16 << 20, 64 << 20 };
    struct curve c = { .base = 1 };
    double least = 0;
    enum hw_status status = HW_OK;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && !status; i++) {
        struct spread spread = { 0 };
        if (t->wishes->quick && (i % 2 || i == 6))
            continue;
        if ((status = measure_move(t, up, all[i], &spread)))
            break;
        least = i ? least : spread.median;
        c.amount[c.count] = (double)all[i];
        c.ns[c.count++] = fmax(spread.median - least, i ? 1 : 0);
        c.spread = fmax(c.spread, width_of(&spread));
        c.unsteady |= is_unsteady(&spread);
    }
    return status ? status : write_row(t, name, &c) ? HW_OK : HW_IO;
}

static enum hw_status measure_wait(struct tuning *t)
{
    const struct work work = { nothing, NULL };
    struct spread spread;
    const enum hw_status status = measure(t->queue, &work, t->seconds, &spread);
    struct curve c = { .base = status ? 0 : spread.median,
                       .spread = status ? 0 : width_of(&spread),
                       .unsteady = !status && is_unsteady(&spread) };
    return status ? status : write_row(t, "wait", &c) ? HW_OK : HW_IO;
}

enum hw_status tune_measure_basics(struct tuning *t)
{
    enum hw_status status = HW_OK;
    if (t->moves && !tune_has(&t->profile, "up"))
        status = measure_moves(t, "up", true);
    if (!status && t->moves && !tune_has(&t->profile, "down"))
        status = measure_moves(t, "down", false);
    if (!status && !tune_has(&t->profile, "wait"))
        status = measure_wait(t);
    /* The times of ops are computed from those of copies, so both rows must be there. */
    return !status && t->moves &&
                   (!tune_has(&t->profile, "up") || !tune_has(&t->profile, "down"))
               ? HW_IO
               : status;
}

/* ---- earlier rows ---- */

/* Reads a curve back from the profile. */
static bool find_curve(const struct tune_profile *profile, const char *name,
                       struct curve *c)
{
    const char *line = profile->rows;
    const size_t length = strlen(name);
    int used = 0;
    *c = (struct curve){ .count = 0 };
    while (line && (strncmp(line, name, length) != 0 || line[length] != ' ')) {
        line = strchr(line, '\n');
        line += line != NULL;
        if (line && !*line)
            return false;
    }
    if (!line || sscanf(line + length, " %lf %*f %d%n", &c->base, &c->count, &used) != 2 ||
        c->count < 0 || c->count > TUNE_SIZES)
        return false;
    line += length + (size_t)used;
    for (int i = 0; i < c->count; i++) {
        if (sscanf(line, " %lf:%lf%n", &c->amount[i], &c->ns[i], &used) != 2)
            return false;
        line += used;
    }
    return true;
}

/* Interpolates as the library does. */
static double at(const struct curve *c, double amount)
{
    int i = 0;
    while (i < c->count && c->amount[i] < amount)
        i++;
    if (c->count == 0 || amount <= 0)
        return 0;
    const int near = i < c->count ? i : c->count - 1;
    if (i == 0 || i == c->count)
        return c->ns[near] * amount / c->amount[near];
    return c->ns[i - 1] + (c->ns[i] - c->ns[i - 1]) * (amount - c->amount[i - 1]) /
                              (c->amount[i] - c->amount[i - 1]);
}

/* Nanoseconds to copy all operands to the device and the results back. */
static double time_of_moves(const struct tuning *t, const struct verify_host_call *call)
{
    struct curve up, down;
    struct hw_field_info field = { .size = sizeof field };
    double ns = 0;
    if (!t->moves || !find_curve(&t->profile, "up", &up) ||
        !find_curve(&t->profile, "down", &down))
        return 0;
    for (uint32_t i = 0; !hw_op_field(call->op, i, &field); i++) {
        if (field.type != HW_FIELD_TENSOR)
            continue;
        const struct hw_tensor *tensor =
            (const struct hw_tensor *)(const void *)((const char *)call->args +
                                                     field.offset);
        const double bytes = tensor->dtype ? (double)hw_tensor_bytes(tensor) : 0;
        const bool written = field.role >= HW_ROLE_OUT;
        if (!written || field.role == HW_ROLE_INOUT)
            ns += at(&up, bytes);
        if (written)
            ns += at(&down, bytes);
    }
    return ns;
}

/* ---- ops ---- */

static enum hw_status submit(struct hw_queue *queue, const void *what)
{
    const struct verify_host_call *call = what;
    return hw_submit(queue, call->op, call->args, hw_op_size(call->op));
}

/* A shape that the device does not compute ends the row. */
static enum hw_status measure_shape(struct tuning *t, const struct tune_row *row, int index,
                                    struct curve *c)
{
    char test[SHAPE_CASE], error[VERIFY_ERROR_TEXT];
    struct hw_route_info info = { .size = sizeof info };
    struct verify_host_call *call;
    struct spread spread;
    if (!shape_case(row->op, row->shape[index], row->types, test))
        return HW_INTERNAL;
    enum hw_status status = verify_host_call(test, true, &call, error);
    if (status) {
        complain("%s: %s", test, error);
        return status;
    }
    const struct work work = { submit, call };
    status = hw_device_supports(hw_queue_device(t->queue), call->op, call->args,
                                hw_op_size(call->op));
    if (!status)
        status = measure(t->queue, &work, t->seconds, &spread);
    if (!status)
        status = hw_queue_route(t->queue, call->op, call->args, hw_op_size(call->op),
                                &info);
    if (!status) {
        const double ns = spread.median - time_of_moves(t, call);
        c->amount[c->count] = !strcmp(row->form, "one") ? info.weights : info.work;
        c->ns[c->count++] = ns;
        c->spread = fmax(c->spread, width_of(&spread));
        c->unsteady |= is_unsteady(&spread);
    }
    verify_host_call_free(call);
    return status;
}

/* The base is the time of the smallest call; a row of form "one" takes that of form "many". */
static void set_base(const struct tuning *t, const struct tune_row *row, struct curve *c)
{
    struct tune_row many = *row;
    struct curve other;
    char name[TUNE_NAME];
    many.form = "many";
    tune_name(&many, name);
    c->base = fmax(c->ns[0], 1);
    if (!strcmp(row->form, "one") && find_curve(&t->profile, name, &other))
        c->base = other.base;
    for (int i = 0; i < c->count; i++)
        c->ns[i] = fmax(c->ns[i] - c->base, 0);
}

enum hw_status tune_measure_row(struct tuning *t, const struct tune_row *row)
{
    struct curve c = { .count = 0 };
    char name[TUNE_NAME];
    enum hw_status status = HW_OK;
    tune_name(row, name);
    if (tune_has(&t->profile, name))
        return HW_OK;
    for (int i = 0; i < row->count && !status; i++)
        status = measure_shape(t, row, i, &c);
    if (status == HW_UNSUPPORTED || status == HW_NO_MEMORY)
        status = HW_OK; /* the sizes measured so far count */
    if (status || c.count == 0)
        return status;
    set_base(t, row, &c);
    return write_row(t, name, &c) ? HW_OK : HW_IO;
}
