/* SPDX-License-Identifier: Apache-2.0 */
/* A node's clock against this machine's: it prints its time repeatedly, and the least delayed of those lines counts. Monotonic time
   here, so that adjustments of this machine's clock are not attributed to the node. */
#include "base/base.h"

#include "fleet/bench_impl.h"

#define LINES        "20"
#define N_LINES      20
#define GAP_MS       "10"
#define LIMIT_S      "20"
#define DEADLINE_NS  (30 * NS_PER_S)
#define LINE_MAX_LEN 24

struct tick { /* of one node */
    struct bench_job *job;
    struct bench_node *node;
    bool is_begun;
    int64_t begin_wall_ns;
    char line[LINE_MAX_LEN];
    size_t len;
    size_t n_lines;
    bool is_bad;
    struct bench_tick best;
};

static void take_line(struct tick *tick)
{
    const struct clock_src *clock = &tick->job->opts->clock;
    int64_t here_ns = clock->mono_ns(clock->ctx), wall_ns = clock->wall_ns(clock->ctx), there_ns;
    struct err ignored = {0};
    struct bench_node *node = tick->node;
    if (tick->n_lines == N_LINES || str_to_i64((struct str){tick->line, tick->len}, 1,
                                               INT64_MAX / 2, &there_ns, &ignored) < 0) {
        tick->is_bad = true;
        return;
    }
    if (tick->n_lines++ == 0 || there_ns - here_ns > tick->best.ahead_ns) {
        tick->best = (struct bench_tick){here_ns, there_ns - here_ns};
    }
    if (!node->has_offset || there_ns - wall_ns > node->offset_low_ns) {
        node->offset_low_ns = there_ns - wall_ns;
    }
    if (!node->has_offset || there_ns - tick->begin_wall_ns < node->offset_high_ns) {
        node->offset_high_ns = there_ns - tick->begin_wall_ns;
    }
    node->has_offset = true;
}

static void take_output(void *ctx, const char *ptr, size_t len)
{
    struct tick *tick = ctx;
    for (size_t idx = 0; idx < len && !tick->is_bad; idx++) {
        if (ptr[idx] == '\n') {
            take_line(tick);
            tick->len = 0;
        } else if (tick->len == sizeof(tick->line)) {
            tick->is_bad = true;
        } else {
            tick->line[tick->len++] = ptr[idx];
        }
    }
}

static enum step step_tick(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct tick *tick = (struct tick *)ctx + node_idx;
    const struct clock_src *clock = &tick->job->opts->clock;
    const char *const args[] = {tick->job->there[node_idx], LIMIT_S, LINES, GAP_MS, NULL};
    struct remote_exec exec = {.script = "exec \"$1\" bench \"$2\" clock \"$3\" \"$4\"",
                               .args = args,
                               .on_output = take_output,
                               .output_ctx = tick,
                               .deadline_ns = DEADLINE_NS};
    int exit_status = -1;
    enum step step;
    if (!args[0]) {
        return STEP_DONE; /* nothing ran there */
    }
    if (!tick->is_begun) {
        tick->is_begun = true;
        tick->begin_wall_ns = clock->wall_ns(clock->ctx);
    }
    step = node->remote->ops->exec(node->remote, &exec, &exit_status, err);
    if (step == STEP_AGAIN && tick->is_bad) { /* it may never end */
        node->remote->ops->abort(node->remote);
        step = STEP_DONE;
    }
    if (step == STEP_DONE && (tick->is_bad || exit_status != 0 || tick->n_lines != N_LINES)) {
        return step_fail(err_set(err, ERR_NODE, "reperf-node bench clock: no %d times (status %d)",
                                 N_LINES, exit_status));
    }
    return step;
}

int bench_tick_all(struct bench_job *job, struct err *err)
{
    size_t n = job->fleet->n_nodes;
    size_t fanout = job->fleet->fanout;
    struct tick *ticks = arena_array(job->arena, struct tick, n + 1);
    int rc;
    for (size_t idx = 0; idx < n; idx++) {
        ticks[idx] = (struct tick){.job = job, .node = &job->result->nodes[idx]};
    }
    job->n_ticks++;
    job->fleet->fanout = n; /* it takes nothing from what is measured */
    rc = fleet_each(job->fleet, 2 * DEADLINE_NS, step_tick, ticks, err);
    job->fleet->fanout = fanout;
    if (rc < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        struct fleet_node *node = &job->fleet->nodes[idx];
        struct bench_node *of = ticks[idx].node;
        if (!node->is_left_out && node->err.code != ERR_NONE) {
            bench_node_fails(job, idx, &node->err);
            node->is_left_out = true;
        } else if (!node->is_left_out && ticks[idx].n_lines && of->n_ticks < BENCH_TICKS_MAX) {
            of->ticks[of->n_ticks++] = ticks[idx].best;
        }
    }
    return 0;
}
