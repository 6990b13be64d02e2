/* SPDX-License-Identifier: Apache-2.0 */
/* Which repeat runs where and when: in plan order, each on as many nodes as it needs, several at once if they use different
   nodes. */
#include "base/base.h"

#include "run/run_attempt.h"

#include "base/log.h"

#define LOST_MAX        3           /* attempts of a repeat by one orchestrator */
#define DISK_FULL_BYTES (256 << 10) /* with less than this free, a log may have been truncated */
#define ABANDON_NS      (15 * NS_PER_S)

struct schedule {
    struct runner *r;
    struct attempt *active; /* one slot for each unit that runs; unit NULL: free */
    size_t n_slots;
    struct code code; /* of a command of one's own: all repeats are of one */
};

/* ---- progress ---- */

static uint64_t steps_of(const struct unit *unit)
{
    return (uint64_t)(unit->step->n_steps > 0 ? unit->step->n_steps : 1);
}

/* Lines stand for steps: near enough for a bar, and for nothing else. A repeat that does not count is not done: the bar does not fill up
   over it. */
static void show_progress(struct schedule *s)
{
    struct runner *r = s->r;
    uint64_t done = 0;
    for (size_t idx = 0; idx < r->n_units; idx++) {
        bool is_done = r->units[idx].state == UNIT_SPARE ||
                       (r->units[idx].state == UNIT_PARSED && r->units[idx].counts);
        done += is_done ? steps_of(&r->units[idx]) : 0;
    }
    for (size_t idx = 0; idx < s->n_slots; idx++) {
        const struct attempt *a = &s->active[idx];
        for (size_t m = 0; a->unit && m < a->n_jobs; m++) {
            uint64_t lines = a->jobs[m].job.has_metric ? a->jobs[m].log_lines : 0;
            uint64_t seen = lines ? lines - 1 : 0; /* the first says what it will do */
            done += seen < steps_of(a->unit) ? seen : steps_of(a->unit);
        }
    }
    progress_set(&r->progress, done);
}

/* ---- placing ---- */

static bool is_free(const struct runner *r, size_t node)
{
    return !r->nodes[node].is_busy && !r->nodes[node].is_bad && !r->nodes[node].is_renewing;
}

/* Nodes with the GPUs it needs, in the inventory's order: those that are free; of who takes turns always the same, once they are. */
static bool place(struct runner *r, struct unit *unit)
{
    bool takes_turns = r->frozen.plan.takes_turns;
    size_t n_wanted = (size_t)plan_step_nodes(unit->step);
    size_t *nodes = arena_array(r->arena, size_t, n_wanted);
    size_t n_free = 0;
    size_t n = 0;
    for (size_t idx = 0; idx < r->fleet.n_nodes && n < n_wanted; idx++) {
        bool is_eligible = is_free(r, idx) || (takes_turns && !r->nodes[idx].is_bad);
        if (is_eligible && plan_step_fits(unit->step, r->fleet.nodes[idx].spec)) {
            nodes[n++] = idx;
            n_free += is_free(r, idx);
        }
    }
    if (n_free < n_wanted) {
        return false;
    }
    unit->nodes = nodes;
    return true;
}

/* For one that was begun before: a node of it that is bad since does not keep it from its end. */
static bool nodes_are_idle(const struct runner *r, const struct unit *unit)
{
    for (size_t idx = 0; idx < (size_t)plan_step_nodes(unit->step); idx++) {
        const struct run_node *node = &r->nodes[unit->nodes[idx]];
        if (node->is_busy || (node->is_renewing && !node->is_bad)) {
            return false;
        }
    }
    return true;
}

/* Whether it could run if nothing else were running. */
static bool is_possible(const struct runner *r, const struct unit *unit)
{
    size_t n = 0;
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        n += !r->nodes[idx].is_bad && plan_step_fits(unit->step, r->fleet.nodes[idx].spec);
    }
    return n >= (size_t)plan_step_nodes(unit->step);
}

static bool is_open(const struct unit *unit)
{
    return unit->state < UNIT_FINISHED && !unit->is_given_up;
}

static bool is_active(const struct schedule *s, const struct unit *unit)
{
    for (size_t idx = 0; idx < s->n_slots; idx++) {
        if (s->active[idx].unit == unit) {
            return true;
        }
    }
    return false;
}

static void set_busy(struct runner *r, const struct unit *unit, bool is_busy)
{
    for (size_t idx = 0; idx < (size_t)plan_step_nodes(unit->step); idx++) {
        r->nodes[unit->nodes[idx]].is_busy = is_busy;
    }
}

/* ---- beginning and ending ---- */

static void give_up(struct unit *unit)
{
    unit->is_given_up = true;
    log_line(LOG_ERROR, "%.*s repeat %lld is given up: %s", STR_ARG(unit->step->case_id),
             (long long)unit->repeat, unit->err.msg);
}

static int begin(struct schedule *s, struct unit *unit, struct err *err)
{
    for (size_t idx = 0; idx < s->n_slots; idx++) {
        struct attempt *a = &s->active[idx];
        if (!a->unit) {
            set_busy(s->r, unit, true);
            return attempt_begin(a, s->r, unit, err);
        }
    }
    return err_set(err, ERR_INTERNAL, "no room for another attempt");
}

static const char *why_too_few(struct runner *r, const struct unit *unit)
{
    long long n_wanted = (long long)plan_step_nodes(unit->step);
    const char *text = arena_printf(r->arena, "needs %lld node%s: too few are left", n_wanted,
                                    n_wanted == 1 ? "" : "s");
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        const struct fleet_node *node = &r->fleet.nodes[idx];
        if (r->nodes[idx].is_bad && !r->nodes[idx].is_spare) {
            return arena_printf(r->arena, "%s; %.*s: %s", text, STR_ARG(node->spec->name),
                                node->err.msg);
        }
    }
    return text;
}

/* A repeat whose nodes are gone, or that was lost too many times, waits for `resume`. */
static bool must_give_up(struct runner *r, struct unit *unit)
{
    if (unit->n_lost >= LOST_MAX) {
        struct err before = unit->err;
        unit_blame(unit,
                   arena_printf(r->arena,
                                "%d attempts left no status (were they killed?)%s%s; reperf resume "
                                "%.*s tries again",
                                LOST_MAX, before.code ? "; the last: " : "", before.msg,
                                STR_ARG(r->dir.id)));
        return true;
    }
    if (!is_possible(r, unit)) {
        if (unit->err.code == ERR_NONE) {
            unit_blame(unit, why_too_few(r, unit));
        }
        return true;
    }
    return false;
}

/* Who takes turns waits until the one before is over, so that both have the same nodes to themselves. */
static bool must_wait(const struct schedule *s)
{
    for (size_t idx = 0; idx < s->n_slots; idx++) {
        if (s->active[idx].unit && s->r->frozen.plan.takes_turns) {
            return true;
        }
    }
    return false;
}

/* A repeat that is run only if those before it do not suffice waits for them. */
static bool is_held(struct runner *r, struct unit *unit)
{
    const struct plan *plan = &r->frozen.plan;
    if (unit->repeat <= plan->repeats) {
        return false;
    }
    for (size_t idx = 0; idx < r->n_units; idx++) {
        const struct unit *other = &r->units[idx];
        if (other->step == unit->step && other->repeat < unit->repeat &&
            other->state < UNIT_PARSED) {
            unit->is_given_up = other->is_given_up;
            unit->err = other->err;
            return true;
        }
    }
    if (result_has_enough(plan, &r->repeats[result_repeat_at(plan, unit->step, 1)],
                          unit->repeat - 1)) {
        unit->state = UNIT_SPARE;
        return true;
    }
    return false;
}

static bool may_begin(const struct schedule *s, struct unit *unit)
{
    if (is_held(s->r, unit)) {
        return false;
    }
    if (must_give_up(s->r, unit)) {
        give_up(unit);
        return false;
    }
    return !must_wait(s);
}

/* One log line for all: what is changed is put back, or a new run is made of it. */
static bool has_changed_code(struct schedule *s)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err why = {0};
    if (code_check(&arena, s->r->opts->clock, &s->code, NULL, &why) == 0) {
        return false;
    }
    if (why.code == ERR_INTEGRITY) {
        struct err what = why;
        why = (struct err){0};
        (void)!err_set(&why, what.code,
                       "%s: a repeat now would be of another program; put it back and resume, or "
                       "start a new run",
                       what.msg);
    }
    for (size_t idx = 0; idx < s->r->n_units; idx++) {
        struct unit *unit = &s->r->units[idx];
        if (unit->state == UNIT_TODO && !unit->is_given_up) {
            unit->is_given_up = true;
            unit->err = why;
        }
    }
    return true;
}

/* First those that run already, on the nodes that they have; then in plan order whatever fits. */
static int begin_what_fits(struct schedule *s, struct err *err)
{
    struct runner *r = s->r;
    for (int is_new = 0; is_new < 2; is_new++) {
        for (size_t idx = 0; idx < r->n_units; idx++) {
            struct unit *unit = &r->units[idx];
            if (!is_open(unit) || is_active(s, unit) ||
                (unit->state == UNIT_TODO) != (is_new == 1)) {
                continue;
            }
            if (is_new && !may_begin(s, unit)) {
                continue;
            }
            bool is_ready = is_new ? place(r, unit) : nodes_are_idle(r, unit);
            if (is_ready && is_new && has_changed_code(s)) {
                return 0;
            }
            if (is_ready && begin(s, unit, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* A log written to a full disk proves nothing, whatever the program reports: resume repeats it. */
static void forget_jobs(struct attempt *a)
{
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        struct remote *remote = a->jobs[idx].remote;
        struct err ignored = {0};
        while (remote->ops->forget(remote, a->jobs[idx].job.job.id, &ignored) == STEP_AGAIN) {
            if (loop_once(&a->r->loop, RUN_TICK_NS, &ignored) < 0) {
                return;
            }
        }
    }
}

static int end_attempt(struct schedule *s, struct attempt *a, struct err *err)
{
    struct runner *r = s->r;
    struct unit *unit = a->unit;
    int rc = 0;
    attempt_look_for_engines(a);
    if (a->end != END_STOPPED && run_expect_disk(r, DISK_FULL_BYTES, err) < 0) {
        forget_jobs(a);
        rc = -1;
    } else if (a->end == END_EXITED || a->end == END_DEADLINE) {
        rc = attempt_collect(a, err);
    } else {
        rc = attempt_lose(a, err);
    }
    set_busy(r, unit, false);
    attempt_release(a);
    *a = (struct attempt){0};
    if (rc == 0 && unit->state == UNIT_FINISHED) {
        rc = unit_parse(r, unit, err);
    }
    if (rc == 0 && unit->state == UNIT_PARSED && !unit->counts &&
        unit->n_retries < r->opts->retries) {
        unit->n_retries++;
        rc = unit_set_aside(r, unit, STR_EMPTY, err);
    }
    run_write_metrics(r, "running");
    return rc;
}

/* Jobs must not go on when we cannot follow them. */
static void abandon(struct schedule *s)
{
    struct runner *r = s->r;
    int64_t until_ns = loop_now_ns(&r->loop) + ABANDON_NS;
    bool is_any = true;
    while (is_any && loop_now_ns(&r->loop) < until_ns) {
        is_any = false;
        for (size_t idx = 0; idx < s->n_slots; idx++) {
            struct attempt *a = &s->active[idx];
            struct err ignored = {0};
            if (a->unit) {
                attempt_stop(a, END_STOPPED);
                is_any = attempt_step(a, &ignored) != STEP_DONE || is_any; /* each of them */
            }
        }
        struct err wait = {0};
        if (is_any && loop_once(&r->loop, RUN_TICK_NS, &wait) < 0) {
            return;
        }
    }
}

/* ---- the loop ---- */

static int step_all(struct schedule *s, size_t *ret_n_active, struct err *err)
{
    size_t n = 0;
    for (size_t idx = 0; idx < s->n_slots; idx++) {
        struct attempt *a = &s->active[idx];
        enum step step = a->unit ? attempt_step(a, err) : STEP_AGAIN;
        if (step == STEP_FAIL || (step == STEP_DONE && end_attempt(s, a, err) < 0)) {
            return -1;
        }
        n += a->unit != NULL;
    }
    *ret_n_active = n;
    return 0;
}

int run_parse_collected(struct runner *r, struct err *err)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        if (r->units[idx].state == UNIT_FINISHED && unit_parse(r, &r->units[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static bool is_anything_open(const struct runner *r)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        if (is_open(&r->units[idx])) {
            return true;
        }
    }
    return false;
}

/* Of nodes that no attempt is on. */
static int renew_idle(struct runner *r, struct err *err)
{
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        struct run_node *node = &r->nodes[idx];
        if (!node->is_due || node->is_busy || node->is_bad) {
            continue;
        }
        if (run_renew_lease(r, idx, err) == STEP_FAIL) {
            if (!run_is_node_error(err)) {
                return -1;
            }
            run_leave_out(r, idx, err);
            *err = (struct err){0};
        }
    }
    return 0;
}

static int carry_on(struct schedule *s, struct err *err)
{
    struct runner *r = s->r;
    size_t n_active = 0;
    while (n_active > 0 || (is_anything_open(r) && !r->stop_signal)) {
        size_t n_before = n_active;
        run_look_at_leases(r);
        if ((!r->stop_signal && begin_what_fits(s, err) < 0) || renew_idle(r, err) < 0 ||
            step_all(s, &n_active, err) < 0) {
            return -1;
        }
        show_progress(s);
        /* A unit that ended has freed nodes: others that fit need not wait. If there is none, nodes are busy with their
           leases. */
        if (n_active >= n_before && loop_once(&r->loop, RUN_TICK_NS, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int first_given_up(const struct runner *r, struct err *err)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        const struct unit *unit = &r->units[idx];
        if (unit->is_given_up) {
            return err_set(err, unit->err.code, "%.*s repeat %lld: %s",
                           STR_ARG(unit->step->case_id), (long long)unit->repeat, unit->err.msg);
        }
    }
    return 0;
}

int run_schedule(struct runner *r, struct err *err)
{
    struct schedule s = {.r = r, .n_slots = r->fleet.n_nodes};
    uint64_t total = 0;
    s.active = arena_array(r->arena, struct attempt, s.n_slots + 1);
    for (size_t idx = 0; idx < r->n_units; idx++) {
        total += steps_of(&r->units[idx]);
    }
    bool is_command = str_eq_z(r->frozen.report.cases[0].stack_id, COMMAND_STACK);
    if (run_parse_collected(r, err) < 0 ||
        (is_command && code_load(r->arena, r->dir.evidence, &s.code, err) < 0)) {
        return -1;
    }
    progress_start(&r->progress, r->opts->clock, "run", "steps", total);
    int rc = carry_on(&s, err);
    if (rc < 0) {
        abandon(&s);
    }
    progress_end(&r->progress);
    for (size_t idx = 0; idx < s.n_slots; idx++) {
        attempt_release(&s.active[idx]);
    }
    return rc < 0 || r->stop_signal ? rc : first_given_up(r, err);
}
