/* SPDX-License-Identifier: Apache-2.0 */
/* `nodes clean`: what dead runs have left on nodes, listed, then ended and removed. */
#include "base/base.h"

#include "base/table.h"
#include "cmd/nodes.h"
#include "codec/json.h"
#include "codec/json_document.h"
#include "evidence/rundir.h"
#include "run/runs.h"

#define OUTAGE_NS (5 * NS_PER_S)

struct args {
    const char *nodes;
    bool is_dry_run;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, is_dry_run, "dry-run", "only list it", .letter = 'n'),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT(struct args, nodes, "nodes", "only these nodes of the inventory", .letter = 'w',
        .value = "SET"),
    OPT_END,
};

struct clean_job {
    struct strbuf *out;
    const struct args *args;
    struct nodes_fleet *nodes;
    struct clean_list list;
};

struct clean_counts {
    size_t n_ended, n_removed, n_kept, n_left; /* n_left: was to go and is still there */
};

static struct clean_counts count(const struct clean_job *job)
{
    struct clean_counts counts = {0};
    for (size_t idx = 0; idx < job->list.n_nodes; idx++) {
        const struct clean_node *node = &job->list.nodes[idx];
        for (size_t at = 0; at < node->n; at++) {
            const struct clean_item *item = &node->items[at];
            counts.n_kept += item->action == CLEAN_KEEP;
            counts.n_ended += item->action == CLEAN_END && item->is_done;
            counts.n_removed += item->action == CLEAN_REMOVE && item->is_done;
            counts.n_left += item->action != CLEAN_KEEP && !item->is_done;
        }
    }
    return counts;
}

/* ---- for people ---- */

static int print_table(const struct clean_job *job, struct err *err)
{
    CLEANUP(table) struct table table = table_of("node|what|run|name|state|");
    CLEANUP(strbuf) struct strbuf text = STRBUF(SIZE_MAX);
    size_t n = 0;
    for (size_t idx = 0; idx < job->list.n_nodes; idx++) {
        const struct clean_node *node = &job->list.nodes[idx];
        for (size_t at = 0; at < node->n; at++, n++) {
            const struct clean_item *item = &node->items[at];
            TABLE_ADD(&table, job->nodes->inventory.nodes[idx].name,
                      str_of(CLEAN_KIND_NAMES[item->kind]), table_or_dash(item->run),
                      item->kind == CLEAN_LEASE ? STR_LIT("-") : item->name,
                      item->state[0] ? str_of(item->state) : STR_LIT("-"),
                      table_text(&table, "%s%s%s", CLEAN_ACTION_NAMES[item->action],
                                 item->why ? ": " : "", item->why ? item->why : ""));
        }
    }
    if (n == 0) {
        return 0;
    }
    table_render(&table, &text);
    return cmd_print(strbuf_str(&text), err); /* before anything is removed */
}

/* Nodes that could not be looked at. */
static size_t count_away(const struct clean_job *job)
{
    size_t n = 0;
    for (size_t idx = 0; idx < job->list.n_nodes; idx++) {
        n += job->nodes->fleet.nodes[idx].err.code != ERR_NONE;
    }
    return n;
}

static void print_end(const struct clean_job *job)
{
    struct clean_counts counts = count(job);
    size_t n_away = count_away(job);
    if (n_away) {
        strbuf_printf(job->out, "unreachable: %zu of %zu nodes; what is left there is not known\n",
                      n_away, job->list.n_nodes);
    }
    if (counts.n_ended + counts.n_removed + counts.n_kept + counts.n_left == 0) {
        if (n_away < job->list.n_nodes) {
            strbuf_add_z(
                job->out,
                "no job, container, lease or unfinished file of a dead run is there; what runs "
                "brought (programs, files, images) is kept\n");
        }
    } else if (job->args->is_dry_run) {
        strbuf_printf(job->out, "would end or remove %zu, keep %zu\n", counts.n_left,
                      counts.n_kept);
    } else {
        strbuf_printf(job->out, "ended %zu, removed %zu, kept %zu", counts.n_ended,
                      counts.n_removed, counts.n_kept);
        if (counts.n_left) {
            strbuf_printf(job->out, ", still there %zu", counts.n_left);
        }
        strbuf_add_char(job->out, '\n');
    }
}

/* ---- for programs ---- */

static void add_item_json(struct json_out *out, const struct clean_item *item)
{
    jw_object(out, NULL);
    jw_z(out, "kind", CLEAN_KIND_NAMES[item->kind]);
    jw_str(out, "run", item->run);
    jw_str(out, "name", item->name);
    jw_z(out, "state", item->state[0] ? item->state : NULL);
    jw_z(out, "action", CLEAN_ACTION_NAMES[item->action]);
    jw_z(out, "why", item->why);
    jw_bool(out, "done", item->is_done);
    jw_end_object(out);
}

static void add_node_json(struct json_out *out, const struct clean_job *job, size_t idx)
{
    const struct err *why = &job->nodes->fleet.nodes[idx].err;
    jw_object(out, NULL);
    jw_str(out, "node", job->nodes->inventory.nodes[idx].name);
    jw_err(out, "error", why);
    jw_array(out, "items");
    for (size_t at = 0; at < job->list.nodes[idx].n; at++) {
        add_item_json(out, &job->list.nodes[idx].items[at]);
    }
    jw_end_array(out);
    jw_end_object(out);
}

static void print_json(const struct clean_job *job, int status)
{
    struct json_out out;
    jw_document(&out, job->out);
    jw_str(&out, "inventory", job->nodes->inventory.id);
    jw_str(&out, "run", job->list.opts.run);
    jw_bool(&out, "dry_run", job->args->is_dry_run);
    jw_i64(&out, "exit_status", status);
    jw_array(&out, "nodes");
    for (size_t idx = 0; idx < job->list.n_nodes; idx++) {
        add_node_json(&out, job, idx);
    }
    jw_end_array(&out);
    jw_end_object(&out);
}

/* ---- all of it ---- */

static int clean(struct arena *arena, struct clean_job *job, const struct clean_opts *opts,
                 struct err *err)
{
    const struct args *args = job->args;
    if (clean_scan(arena, &job->nodes->fleet, opts, &job->list, err) < 0 ||
        (!args->want_json && print_table(job, err) < 0) ||
        (!args->is_dry_run && clean_apply(&job->nodes->fleet, &job->list, err) < 0)) {
        return -1;
    }
    int status = nodes_log_failed(job->nodes);
    if (args->want_json) {
        print_json(job, status);
    } else {
        print_end(job);
    }
    return status;
}

/* One that this machine has, by the beginning of its id or "last"; one that it never had by its whole id. */
static int find_run(struct arena *arena, const char *state, const char *name, struct str *ret_run,
                    struct err *err)
{
    struct rundir dir;
    if (run_id_is_valid(str_of(name))) {
        *ret_run = str_of(name);
        return 0;
    }
    if (rundir_find(arena, state, name, &dir, err) < 0) {
        return -1;
    }
    *ret_run = dir.id;
    return 0;
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(nodes_fleet) struct nodes_fleet nodes = {0};
    struct args *args = call->args;
    struct clean_job job = {.args = args, .nodes = &nodes, .out = call->out};
    struct clean_opts opts = {.state = ctx->state, .use_of_run = run_use};
    struct nodes_fleet_opts nodes_opts = {call->operands.items[0], args->nodes, 0, OUTAGE_NS};
    if ((call->operands.n == 2 &&
         find_run(call->arena, ctx->state, call->operands.items[1], &opts.run, err) < 0) ||
        nodes_open(call->arena, ctx, &nodes_opts, &nodes, err) < 0) {
        return -1;
    }
    opts.jobs_root = nodes.inventory.is_local ? fs_join(call->arena, ctx->state, "runs") : NULL;
    return clean(call->arena, &job, &opts, err);
}

const struct cmd NODES_CLEAN =
    CMD("clean", "INVENTORY [RUN]", "stop and remove what dead runs left on nodes", OPTS, run,
        CMD_ARGS(struct args),
        CMD_OPERANDS(1, 2, "nodes clean: expected an inventory, and one run or none"));
