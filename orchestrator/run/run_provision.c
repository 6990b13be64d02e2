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
#define LEASE_LAST_NS     (LEASE_TTL_S * NS_PER_S - LEASE_RENEW_NS) /* then another may soon take it */

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

/* Over a connection of its own, which is opened once the first renewal is due: a remote does one thing at a time, and an image
   or a log on its way may take longer than a lease lasts. */
static enum step renew(struct runner *r, size_t idx, struct err *err)
{
    struct run_node *node = &r->nodes[idx];
    if (!node->keeper) {
        node->keeper = r->open(&r->loop, r->fleet.inventory, r->fleet.nodes[idx].spec, err);
    }
    enum step step = node->keeper ? lease_step(&node->lease, node->keeper, r->dir.id.ptr,
                                               LEASE_TAKE, &node->holder, err)
                                  : STEP_FAIL;
    if (step == STEP_DONE && node->holder.len) {
        step = step_fail(err_set(err, ERR_NODE, "its lease was taken over by run %.*s",
                                 STR_ARG(str_sub(node->holder, 0, 160))));
    }
    if (step != STEP_AGAIN) {
        node->is_due = false;
        node->taken_ns = step == STEP_DONE ? loop_now_ns(&r->loop) : node->taken_ns;
        lease_op_release(&node->lease);
    }
    return step;
}

void run_keep_leases(void *ctx)
{
    struct runner *r = ctx;
    int64_t now_ns = loop_now_ns(&r->loop);
    bool is_time = now_ns >= r->lease_due_ns;
    r->lease_due_ns = is_time ? now_ns + LEASE_RENEW_NS : r->lease_due_ns;
    for (size_t idx = 0; r->has_leases && idx < r->fleet.n_nodes; idx++) {
        struct run_node *node = &r->nodes[idx];
        struct err why = {0};
        node->is_due = (node->is_due || is_time) && !node->is_bad;
        if (!node->is_due || renew(r, idx, &why) != STEP_FAIL) {
            continue;
        }
        /* Until it is as good as over, a lease that could not be renewed is still ours. */
        if (node->holder.len || now_ns - node->taken_ns >= LEASE_LAST_NS) {
            run_leave_out(r, idx, &why);
        } else {
            log_line(LOG_DEBUG, "%.*s: its lease: %s", STR_ARG(r->fleet.nodes[idx].spec->name),
                     why.msg);
        }
    }
}

struct leases { /* all of them taken or dropped over the nodes' own connections */
    struct runner *r;
    enum lease_mode mode;
};

static enum step lease_node(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    const struct leases *leases = ctx;
    struct run_node *of = &leases->r->nodes[node_idx];
    of->taken_ns = loop_now_ns(&leases->r->loop);
    return lease_step(&of->lease, node->remote, leases->r->dir.id.ptr, leases->mode, &of->holder,
                      err);
}

static int lease_round(struct runner *r, enum lease_mode mode, struct err *err)
{
    struct leases leases = {r, mode};
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        lease_op_release(&r->nodes[idx].lease);
        r->nodes[idx].holder = STR_EMPTY;
    }
    int n_failed = fleet_each(&r->fleet, LEASE_DEADLINE_NS, lease_node, &leases, err);
    return run_judge_nodes(r, n_failed, err);
}

/* How many nodes can have work at one time: all repeats that are to be done run beside each other, unless they take turns. */
static int64_t nodes_in_use(const struct runner *r)
{
    int64_t sum = 0;
    int64_t most = 0;
    for (size_t idx = 0; idx < r->n_units; idx++) {
        int64_t n = unit_is_open(&r->units[idx]) ? plan_step_nodes(r->units[idx].step) : 0;
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
        int64_t n_lacking = unit_is_open(unit) ? plan_step_nodes(unit->step) : 0;
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

/* As few of the nodes whose leases are ours as have work, in the inventory's order. False: they are
   not enough. */
static bool choose_nodes(const struct runner *r, bool *is_chosen)
{
    int64_t n_wanted = nodes_in_use(r);
    for (size_t idx = 0; idx < r->fleet.n_nodes && (n_wanted > 0 || !is_enough(r, is_chosen));
         idx++) {
        is_chosen[idx] = !r->nodes[idx].holder.len && !r->nodes[idx].is_bad;
        n_wanted -= is_chosen[idx];
    }
    return is_enough(r, is_chosen);
}

/* The others are given back at once, and nothing more is asked of them. */
static int leave_spare(struct runner *r, const bool *is_chosen, struct err *err)
{
    size_t *spare = arena_array(r->arena, size_t, r->fleet.n_nodes + 1);
    size_t n_spare = 0;
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        r->fleet.nodes[idx].is_left_out = r->nodes[idx].is_bad || is_chosen[idx];
    }
    int result = lease_round(r, LEASE_DROP, err);
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
static int take_leases(struct runner *r, struct err *err)
{
    int64_t until_ns = loop_now_ns(&r->loop) + r->frozen.plan.deadline_s * NS_PER_S;
    for (bool is_said = false;; is_said = true) {
        bool *is_chosen = arena_array(r->arena, bool, r->fleet.n_nodes + 1);
        size_t held = 0;
        if (lease_round(r, LEASE_TAKE, err) < 0) {
            return -1;
        }
        bool is_enough_ours = choose_nodes(r, is_chosen);
        while (held < r->fleet.n_nodes && !r->nodes[held].holder.len) {
            held++;
        }
        if (r->stop_signal || (!is_enough_ours && held == r->fleet.n_nodes)) {
            return 0; /* those that are missing were not reached */
        }
        if (is_enough_ours) {
            return leave_spare(r, is_chosen, err);
        }
        const char *holder = str_z(r->arena, r->nodes[held].holder);
        struct str node = r->fleet.nodes[held].spec->name;
        if (lease_round(r, LEASE_DROP, err) < 0) {
            return -1;
        }
        if (loop_now_ns(&r->loop) >= until_ns) {
            return err_set(err, ERR_NODE,
                           "%.*s is held by run %s, and was not given back within %lld s",
                           STR_ARG(node), holder, (long long)r->frozen.plan.deadline_s);
        }
        if (!is_said) {
            log_line(LOG_WARN, "%.*s is held by run %s: waiting", STR_ARG(node), holder);
        }
        if (wait_a_while(r, err) < 0) {
            return -1;
        }
    }
}

/* ---- what an earlier orchestrator lost sight of ---- */

static int sweep_orphans(struct runner *r, struct err *err)
{
    for (size_t idx = 0; idx < r->orphans.n; idx++) {
        struct err why = {0};
        if (run_kill_job(r, &r->orphans.items[idx], &why) < 0 &&
            (!run_is_node_error(&why) || r->frozen.plan.launcher == LAUNCHER_SLURM)) {
            return err_pass(err, &why);
        }
    }
    return 0;
}

/* ---- environment ---- */

/* As they were when the run first came to them: a resumed run keeps what its journal has. */
static int freeze_environments(struct runner *r, struct err *err)
{
    struct node_environment *items =
        arena_array(r->arena, struct node_environment, r->fleet.n_nodes + 1);
    struct journal_record record = {.state = J_FILES};
    const struct environment_opts opts = {.clock = r->opts->ctx->clock};
    size_t n = 0;
    if (r->fleet.inventory->is_local) {
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

static int stage_under_leases(struct runner *r, struct err *err)
{
    return sweep_orphans(r, err) < 0 || freeze_environments(r, err) < 0 ? -1
           : r->stop_signal                                             ? 0
                                                                        : run_stage(r, err);
}

int run_provision(struct runner *r, struct err *err)
{
    int rc;
    /* This machine is not leased; what its jobs see is brought as to others. */
    if (r->fleet.inventory->is_local) {
        rc = sweep_orphans(r, err);
        return rc == 0 && run_has_work(r) ? run_stage(r, err) : rc;
    }
    if (!run_has_work(r)) {
        /* Whoever did it may have been killed before it left the nodes. */
        r->has_leases = r->n_units > 0;
        return sweep_orphans(r, err);
    }
    rc = take_leases(r, err);
    r->has_leases = true;
    r->lease_due_ns = loop_now_ns(&r->loop) + LEASE_RENEW_NS;
    r->fleet.on_turn = run_keep_leases;
    r->fleet.turn_ctx = r;
    return rc < 0 || r->stop_signal ? rc : stage_under_leases(r, err);
}

/* ---- leaving ---- */

/* A lease that is taken after it was dropped would stay. */
static enum step end_renewal(void *ctx, struct fleet_node *node UNUSED, size_t node_idx,
                             struct err *err)
{
    struct runner *r = ctx;
    return r->nodes[node_idx].is_due ? renew(r, node_idx, err) : STEP_DONE;
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
    struct leases leases = {r, LEASE_DROP};
    size_t *left = arena_array(r->arena, size_t, r->fleet.n_nodes + 1);
    size_t n_left = 0;
    struct err why = {0};
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
}

void run_leave_nodes(struct runner *r, bool is_over)
{
    struct err ignored = {0};
    if (r->fleet.inventory == NULL || r->fleet.inventory->is_local || !r->has_leases) {
        return;
    }
    r->fleet.stop_signal = NULL; /* also after ^C */
    r->fleet.on_turn = NULL;
    if (fleet_each(&r->fleet, LEAVE_DEADLINE_NS, end_renewal, r, &ignored) < 0) {
        log_line(LOG_DEBUG, "%s", ignored.msg);
        ignored = (struct err){0};
    }
    bool is_left =
        is_over && fleet_each(&r->fleet, LEAVE_DEADLINE_NS, forget_run, r, &ignored) != 0;
    for (size_t idx = 0; is_over && idx < r->fleet.n_nodes; idx++) {
        /* Nobody asked a bad one. */
        is_left = is_left || (r->nodes[idx].is_bad && !r->nodes[idx].is_spare);
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
