/* SPDX-License-Identifier: Apache-2.0 */
/* Before the first repeat the nodes of a run are reached, leased, and given what the steps need; after the last they are left as
   they were found, except for what is kept for the next run. An unreachable node is left out and the steps that need it wait for
   resume; any other failure (a changed host key, a full disk) ends the run. */
#include "base/base.h"

#include "run/run_attempt.h"

#include "base/log.h"
#include "evidence/environment.h"

#define LEASE_DEADLINE_NS (90 * NS_PER_S) /* for one node to answer */
#define LEASE_WAIT_NS     (2 * NS_PER_S)  /* between two looks at a node that another run has */
#define LEAVE_DEADLINE_NS (30 * NS_PER_S) /* likewise, at the end */

void run_leave_out(struct runner *r, size_t node_idx, const struct err *why)
{
    struct fleet_node *node = &r->fleet.nodes[node_idx];
    struct event_fields fields = {.node = node->spec->name, .text = str_of(why->msg)};
    if (node->is_left_out) {
        return;
    }
    node->is_left_out = true;
    node->err = *why;
    r->nodes[node_idx].is_bad = true;
    log_line(LOG_WARN, "%.*s is left out: %s", STR_ARG(node->spec->name), why->msg);
    events_write(&r->events, EV_NODE_LOST, &fields);
}

bool run_is_node_error(const struct err *err)
{
    return err->code == ERR_NODE || err->code == ERR_NET || err->code == ERR_TIMEOUT;
}

/* After work on all nodes: those that failed are left out, or end the run. */
int run_judge_nodes(struct runner *r, int n_failed, struct err *err)
{
    for (size_t idx = 0; n_failed > 0 && idx < r->fleet.n_nodes; idx++) {
        const struct fleet_node *node = &r->fleet.nodes[idx];
        if (node->is_left_out || node->err.code == ERR_NONE) {
            continue;
        }
        if (!run_is_node_error(&node->err)) {
            return err_set(err, node->err.code, "%.*s: %s", STR_ARG(node->spec->name),
                           node->err.msg);
        }
        run_leave_out(r, idx, &node->err);
    }
    return n_failed < 0 ? -1 : 0;
}

/* ---- leases ---- */

struct leases {
    struct runner *r;
    struct lease_op *ops; /* one a node */
    struct str *holders;
    enum lease_mode mode;
};

static enum step lease_node(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct leases *leases = ctx;
    return lease_step(&leases->ops[node_idx], node->remote, leases->r->dir.id.ptr, leases->mode,
                      &leases->holders[node_idx], err);
}

static int lease_round(struct leases *leases, enum lease_mode mode, struct err *err)
{
    struct runner *r = leases->r;
    leases->mode = mode;
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        lease_op_release(&leases->ops[idx]);
        leases->holders[idx] = STR_EMPTY;
    }
    int n_failed = fleet_each(&r->fleet, LEASE_DEADLINE_NS, lease_node, leases, err);
    return run_judge_nodes(r, n_failed, err);
}

/* The first node that another run has, or n_nodes. */
static size_t first_held(const struct leases *leases)
{
    size_t idx = 0;
    while (idx < leases->r->fleet.n_nodes && !leases->holders[idx].len) {
        idx++;
    }
    return idx;
}

static bool is_open(const struct unit *unit)
{
    return unit->state < UNIT_FINISHED && unit->step->cause == ERR_NONE;
}

/* How many nodes can have work at one time: all repeats that are to be done run beside each other, unless they take turns. */
static int64_t nodes_in_use(const struct runner *r)
{
    int64_t sum = 0;
    int64_t most = 0;
    for (size_t idx = 0; idx < r->n_units; idx++) {
        int64_t n = is_open(&r->units[idx]) ? plan_step_nodes(r->units[idx].step) : 0;
        sum += n;
        most = n > most ? n : most;
    }
    return r->frozen.plan.takes_turns ? most : sum;
}

/* Whether each repeat finds room among the chosen nodes, and has those that it was begun on. */
static bool is_enough(const struct runner *r, const bool *is_chosen)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        const struct unit *unit = &r->units[idx];
        int64_t n_lacking = is_open(unit) ? plan_step_nodes(unit->step) : 0;
        bool is_begun = n_lacking && unit->nodes;
        for (size_t at = 0; n_lacking && !is_begun && at < r->fleet.n_nodes; at++) {
            n_lacking -= is_chosen[at] && plan_step_fits(unit->step, r->fleet.nodes[at].spec);
        }
        for (int64_t at = 0; is_begun && at < plan_step_nodes(unit->step); at++) {
            n_lacking -= is_chosen[unit->nodes[at]];
        }
        if (n_lacking > 0) {
            return false;
        }
    }
    return true;
}

/* Of the nodes whose leases are ours as few as have work, in the inventory's order. False: they are not enough. */
static bool choose_nodes(const struct leases *leases, bool *is_chosen)
{
    const struct runner *r = leases->r;
    int64_t n_wanted = nodes_in_use(r);
    for (size_t idx = 0; idx < r->fleet.n_nodes && (n_wanted > 0 || !is_enough(r, is_chosen));
         idx++) {
        is_chosen[idx] = !leases->holders[idx].len && !r->nodes[idx].is_bad;
        n_wanted -= is_chosen[idx];
    }
    return is_enough(r, is_chosen);
}

/* The others are given back at once, and nothing more is asked of them. */
static int leave_spare(struct leases *leases, const bool *is_chosen, struct err *err)
{
    struct runner *r = leases->r;
    size_t *spare = arena_array(r->arena, size_t, r->fleet.n_nodes + 1);
    size_t n_spare = 0;
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        r->fleet.nodes[idx].is_left_out = r->nodes[idx].is_bad || is_chosen[idx];
    }
    int result = lease_round(leases, LEASE_DROP, err);
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        r->nodes[idx].is_spare = !r->nodes[idx].is_bad && !is_chosen[idx];
        r->nodes[idx].is_bad = !is_chosen[idx];
        r->fleet.nodes[idx].is_left_out = !is_chosen[idx];
        spare[n_spare] = idx;
        n_spare += r->nodes[idx].is_spare;
    }
    if (n_spare) {
        log_line(LOG_INFO, "left to other runs: %.*s",
                 STR_ARG(inventory_fold(r->arena, r->fleet.inventory, spare, n_spare)));
    }
    return result;
}

static int wait_a_while(struct runner *r, struct err *err)
{
    int64_t until_ns = loop_now_ns(&r->loop) + LEASE_WAIT_NS;
    while (!r->stop_signal && loop_now_ns(&r->loop) < until_ns) {
        if (loop_once(&r->loop, RUN_TICK_NS, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* All nodes that have work or none: otherwise two runs, each holding a part, would wait for each other for ever. */
static int take_leases(struct leases *leases, struct err *err)
{
    struct runner *r = leases->r;
    int64_t until_ns = loop_now_ns(&r->loop) + r->frozen.plan.deadline_s * NS_PER_S;
    bool is_said = false;
    for (;;) {
        if (lease_round(leases, LEASE_TAKE, err) < 0) {
            return -1;
        }
        size_t held = first_held(leases);
        bool *is_chosen = arena_array(r->arena, bool, r->fleet.n_nodes + 1);
        bool is_enough_ours = choose_nodes(leases, is_chosen);
        if (r->stop_signal) {
            return 0;
        }
        if (is_enough_ours) {
            return leave_spare(leases, is_chosen, err);
        }
        if (held == r->fleet.n_nodes) {
            return 0; /* those that are missing were not reached */
        }
        const char *holder = str_z(r->arena, leases->holders[held]);
        struct str node = r->fleet.nodes[held].spec->name;
        if (lease_round(leases, LEASE_DROP, err) < 0) {
            return -1;
        }
        if (loop_now_ns(&r->loop) >= until_ns) {
            return err_set(err, ERR_NODE,
                           "%.*s is held by run %s, and was not given back within %lld s",
                           STR_ARG(node), holder, (long long)r->frozen.plan.deadline_s);
        }
        if (!is_said) {
            log_line(LOG_WARN, "%.*s is held by run %s: waiting", STR_ARG(node), holder);
            is_said = true;
        }
        if (wait_a_while(r, err) < 0) {
            return -1;
        }
    }
}

/* Before the first job: a node whose lease another took over meanwhile is that other's. */
static int check_leases(struct leases *leases, struct err *err)
{
    struct runner *r = leases->r;
    if (lease_round(leases, LEASE_TAKE, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        if (leases->holders[idx].len) {
            struct err why = {0};
            (void)!err_set(&why, ERR_NODE, "its lease was taken over by run %.*s",
                           STR_ARG(str_sub(leases->holders[idx], 0, 160)));
            run_leave_out(r, idx, &why);
        }
    }
    r->lease_due_ns = loop_now_ns(&r->loop) + LEASE_RENEW_NS;
    return 0;
}

static void release_ops(struct leases *leases)
{
    for (size_t idx = 0; idx < leases->r->fleet.n_nodes; idx++) {
        lease_op_release(&leases->ops[idx]);
    }
}

void run_look_at_leases(struct runner *r)
{
    if (!r->has_leases || loop_now_ns(&r->loop) < r->lease_due_ns) {
        return;
    }
    r->lease_due_ns = loop_now_ns(&r->loop) + LEASE_RENEW_NS;
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        r->nodes[idx].is_due = !r->nodes[idx].is_bad;
    }
}

enum step run_renew_lease(struct runner *r, size_t node_idx, struct err *err)
{
    struct run_node *node = &r->nodes[node_idx];
    struct str holder = STR_EMPTY;
    enum step step = lease_step(&node->lease, r->fleet.nodes[node_idx].remote, r->dir.id.ptr,
                                LEASE_TAKE, &holder, err);
    node->is_renewing = step == STEP_AGAIN;
    if (step == STEP_AGAIN) {
        return step;
    }
    node->is_due = false;
    if (step == STEP_DONE && holder.len) {
        step = step_fail(err_set(err, ERR_NODE, "its lease was taken over by run %.*s",
                                 STR_ARG(str_sub(holder, 0, 60))));
    }
    lease_op_release(&node->lease);
    return step;
}

static struct leases leases_of(struct runner *r)
{
    return (struct leases){.r = r,
                           .ops = arena_array(r->arena, struct lease_op, r->fleet.n_nodes + 1),
                           .holders = arena_array(r->arena, struct str, r->fleet.n_nodes + 1)};
}

/* ---- what an earlier orchestrator lost sight of ---- */

struct sweep {
    struct runner *r;
    const struct run_orphan *orphan;
};

static enum step kill_orphan(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    const struct sweep *sweep = ctx;
    for (size_t idx = 0; idx < sweep->orphan->n_nodes; idx++) {
        if (sweep->orphan->nodes[idx] == node_idx) {
            return node->remote->ops->signal(node->remote, sweep->orphan->job_id, SIGKILL, err);
        }
    }
    return STEP_DONE;
}

static int sweep_orphans(struct runner *r, struct err *err)
{
    for (size_t idx = 0; idx < r->orphans.n; idx++) {
        if (r->frozen.plan.launcher == LAUNCHER_SLURM) {
            if (run_kill_job(r, &r->orphans.items[idx], err) < 0) {
                return -1;
            }
            continue;
        }
        struct sweep sweep = {r, &r->orphans.items[idx]};
        int n_failed = fleet_each(&r->fleet, LEASE_DEADLINE_NS, kill_orphan, &sweep, err);
        if (run_judge_nodes(r, n_failed, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- environment ---- */

static const char *environment_name(struct runner *r, size_t node_idx)
{
    return rundir_of_name(r->arena, RUNDIR_NODE, r->fleet.nodes[node_idx].spec->name);
}

static bool has_all_environments(struct runner *r)
{
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        if (!r->nodes[idx].is_bad && !map_get(&r->files, str_of(environment_name(r, idx)))) {
            return false;
        }
    }
    return true;
}

/* As they were when the run first came to them: a resumed run keeps what its journal has. */
static int freeze_environments(struct runner *r, struct err *err)
{
    struct node_environment *items =
        arena_array(r->arena, struct node_environment, r->fleet.n_nodes + 1);
    struct journal_record record = {.state = J_FILES};
    const struct environment_opts opts = {.clock = r->opts->clock};
    size_t n = 0;
    if (r->fleet.inventory->is_local || has_all_environments(r)) {
        return 0;
    }
    if (environment_of_nodes(r->arena, &r->fleet, &opts, items, &n, err) < 0) {
        return -1;
    }
    record.files = arena_array(r->arena, struct journal_file, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        const char *name = rundir_of_name(r->arena, RUNDIR_NODE, items[idx].name);
        if (!map_get(&r->files, str_of(name)) &&
            run_put_file(r, name, items[idx].json, &record.files[record.n_files++], err) < 0) {
            return -1;
        }
    }
    return (record.n_files && journal_append(&r->journal, &record, err) < 0) ||
                   frozen_load_machine(r->arena, &r->frozen, err) < 0
               ? -1
               : 0;
}

/* ---- the whole ---- */

static bool has_work(const struct runner *r)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        if (r->units[idx].state < UNIT_FINISHED) {
            return true;
        }
    }
    return false;
}

static int stage_under_leases(struct runner *r, struct leases *leases, struct err *err)
{
    struct run_keeper keeper;
    run_keep_begin(&keeper, r);
    int rc = sweep_orphans(r, err) < 0 || freeze_environments(r, err) < 0 ? -1 : 0;
    if (rc == 0 && !r->stop_signal) {
        rc = run_stage(r, err);
    }
    run_keep_end(&keeper);
    return rc < 0 || r->stop_signal ? rc : check_leases(leases, err);
}

int run_provision(struct runner *r, struct err *err)
{
    int rc;
    if (r->fleet.inventory
            ->is_local) { /* nothing to lease; what its jobs see is brought as to others */
        rc = sweep_orphans(r, err);
        return rc == 0 && has_work(r) ? run_stage(r, err) : rc;
    }
    if (!has_work(r)) {
        /* Whoever did it may have been killed before it left the nodes. */
        r->has_leases = r->n_units > 0;
        return sweep_orphans(r, err);
    }
    struct leases leases = leases_of(r);
    rc = take_leases(&leases, err);
    r->has_leases = true;
    if (rc == 0 && !r->stop_signal) {
        rc = stage_under_leases(r, &leases, err);
    }
    release_ops(&leases);
    return rc;
}

/* ---- leaving ---- */

/* A remote does one thing at a time, and a lease that is taken after it was dropped would stay. */
static enum step end_renewal(void *ctx, struct fleet_node *node UNUSED, size_t node_idx,
                             struct err *err)
{
    struct runner *r = ctx;
    return r->nodes[node_idx].is_renewing ? run_renew_lease(r, node_idx, err) : STEP_DONE;
}

static enum step forget_run(void *ctx, struct fleet_node *node, size_t node_idx UNUSED,
                            struct err *err)
{
    const struct runner *r = ctx;
    return node->remote->ops->forget(node->remote, r->dir.id.ptr, err);
}

/* A failure is reported, because nobody else gets such a node for a while. An earlier lease may be on a node that was not asked,
   too. */
static void drop_leases(struct runner *r)
{
    struct leases leases = leases_of(r);
    size_t *left = arena_array(r->arena, size_t, r->fleet.n_nodes + 1);
    size_t n_left = 0;
    struct err why = {0};
    leases.mode = LEASE_DROP;
    bool is_cut = fleet_each(&r->fleet, LEAVE_DEADLINE_NS, lease_node, &leases, &why) < 0;
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        const struct fleet_node *node = &r->fleet.nodes[idx];
        if (r->nodes[idx].is_spare) {
            continue;
        }
        if (is_cut || node->is_left_out || node->err.code != ERR_NONE) {
            why = is_cut || n_left ? why : node->err;
            left[n_left++] = idx;
        }
    }
    if (n_left) {
        log_line(LOG_WARN,
                 "the lease of run %.*s may be left on %.*s: %s; another run gets the node %d s "
                 "after it was last renewed, if no job of this one lives there, or after reperf "
                 "nodes clean",
                 STR_ARG(r->dir.id),
                 STR_ARG(inventory_fold(r->arena, r->fleet.inventory, left, n_left)), why.msg,
                 LEASE_TTL_S);
    }
    release_ops(&leases);
}

void run_leave_nodes(struct runner *r, bool is_over)
{
    struct err ignored = {0};
    if (r->fleet.inventory == NULL || r->fleet.inventory->is_local || !r->has_leases) {
        return;
    }
    r->fleet.stop_signal = NULL; /* also after ^C */
    if (fleet_each(&r->fleet, LEAVE_DEADLINE_NS, end_renewal, r, &ignored) < 0) {
        log_line(LOG_DEBUG, "%s", ignored.msg);
        ignored = (struct err){0};
    }
    bool is_left =
        is_over && fleet_each(&r->fleet, LEAVE_DEADLINE_NS, forget_run, r, &ignored) != 0;
    for (size_t idx = 0; is_over && idx < r->fleet.n_nodes; idx++) {
        is_left =
            is_left || (r->nodes[idx].is_bad && !r->nodes[idx].is_spare); /* nobody asked it */
    }
    if (is_left) {
        log_line(LOG_WARN,
                 "the jobs' folders of run %.*s could not be removed everywhere: reperf "
                 "nodes clean removes them",
                 STR_ARG(r->dir.id));
    }
    drop_leases(r);
    r->has_leases = false;
}
