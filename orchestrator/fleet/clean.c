/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/clean.h"

#include "base/vec.h"
#include "fleet/lease.h"
#include "fleet/runtime.h"
#include "report/run_id.h"

#define SCAN_OUTPUT_MAX    (32u << 20)
#define SCAN_DEADLINE_NS   (120 * NS_PER_S)
#define REMOVE_DEADLINE_NS (600 * NS_PER_S)
#define REMOVE_OUTPUT_MAX  (1u << 20)
#define REMOVE_PAIRS_MAX   16 /* in one request: a job's cleanup alone may take half a minute */

/* ---- names ---- */

const char *const CLEAN_KIND_NAMES[] = {"job", "container", "lease", "partial", "batch"};

const char *const CLEAN_ACTION_NAMES[] = {"keep", "remove", "end"};

/* ---- what becomes of it ---- */

struct scan_node {
    struct strbuf output; /* what Slurm said of it, then what it said itself */
    bool has_batch;
    int64_t lease_age_s; /* -1: no lease */
    struct str lease_run;
};

struct node_scan {
    struct arena *arena;
    const struct fleet *fleet;
    struct clean_list *list;
    struct scan_node *nodes;
    size_t n_items;
    struct remote *own; /* this machine's, for Slurm; NULL: not needed yet */
};

static bool is_fresh(const struct scan_node *node, struct str run)
{
    return node->lease_age_s >= 0 && node->lease_age_s < LEASE_TTL_S &&
           str_eq(node->lease_run, run);
}

static void decide(struct node_scan *scan, const struct scan_node *node, struct clean_item *item)
{
    bool is_named = scan->list->opts.run.ptr != NULL;
    const struct clean_opts *opts = &scan->list->opts;
    enum clean_run use = opts->use_of_run(scan->arena, opts->state, item->run, &item->why);
    item->action = CLEAN_KEEP;
    if (use == CLEAN_RUN_HELD) {
        return;
    }
    if (use == CLEAN_RUN_UNKNOWN && is_fresh(node, item->run)) {
        item->why = arena_printf(scan->arena, "another machine renewed its lease %lld s ago",
                                 (long long)node->lease_age_s);
        return;
    }
    if (item->kind == CLEAN_BATCH && use == CLEAN_RUN_UNKNOWN && !is_named) {
        item->why = "this machine does not know the run; name it to end it";
    } else if (item->kind == CLEAN_BATCH || strcmp(item->state, "running") == 0 ||
               strcmp(item->state, "orphaned") == 0) {
        item->action = CLEAN_END;
    } else if (item->kind == CLEAN_JOB && use == CLEAN_RUN_RESUMABLE && !is_named) {
        item->why = "reperf resume collects it; name the run to remove it";
    } else {
        item->action = CLEAN_REMOVE;
    }
}

static void decide_partial(struct node_scan *scan, const struct scan_node *node,
                           struct clean_item *item)
{
    const struct clean_opts *opts = &scan->list->opts;
    const char *why = NULL;
    bool is_used =
        node->lease_age_s >= 0 &&
        (node->lease_age_s < LEASE_TTL_S ||
         opts->use_of_run(scan->arena, opts->state, node->lease_run, &why) == CLEAN_RUN_HELD);
    item->action = is_used ? CLEAN_KEEP : CLEAN_REMOVE;
    item->why = is_used ? "a run works on the node" : NULL;
}

/* ---- what the node said ---- */

static bool find_kind(struct str word, enum clean_kind *ret_kind)
{
    for (int kind = CLEAN_JOB; kind <= CLEAN_BATCH; kind++) {
        if (str_eq_z(word, CLEAN_KIND_NAMES[(enum clean_kind)kind])) {
            *ret_kind = (enum clean_kind)kind;
            return true;
        }
    }
    return false;
}

int clean_read_line(struct arena *arena, struct str line, struct clean_item *ret_item,
                    struct err *err)
{
    struct clean_item item = {.state = ""};
    struct str kind, state = STR_EMPTY, rest = line;
    (void)str_next(&rest, '\t', &kind);
    bool is_known = find_kind(kind, &item.kind);
    if (is_known && item.kind != CLEAN_PARTIAL) {
        (void)str_next(&rest, '\t', &state);
        item.state = item.kind == CLEAN_LEASE ? arena_printf(arena, "%.*s s old", STR_ARG(state))
                                              : str_z(arena, state);
    }
    item.id = item.name = rest;
    if (item.kind == CLEAN_JOB) {
        (void)str_next(&rest, '/', &item.run);
        item.name = rest.len ? rest : item.id;
    } else if (item.kind == CLEAN_CONTAINER) {
        (void)str_next(&rest, '\t', &item.id);
        (void)str_next(&rest, '\t', &item.run);
        item.name = rest;
    } else if (item.kind == CLEAN_BATCH) {
        (void)str_next(&rest, '\t', &item.id);
        item.name = rest;
        item.run = str_sub(rest, strlen("reperf-"), RUN_ID_SIZE - 1);
    } else if (item.kind == CLEAN_LEASE) {
        item.run = rest;
    }
    if (!is_known || !item.id.len || !item.name.len) {
        return err_set(err, ERR_NODE, "its answer was not understood: \"%.*s\"",
                       STR_ARG(str_sub(line, 0, 100)));
    }
    *ret_item = item;
    return 0;
}

static void decide_item(struct node_scan *scan, const struct scan_node *node,
                        struct clean_item *item)
{
    if (item->kind == CLEAN_PARTIAL) {
        decide_partial(scan, node, item);
    } else if (run_id_is_valid(item->run)) {
        decide(scan, node, item);
    } else {
        item->action = CLEAN_KEEP;
        item->why = "not the name of a run";
    }
}

static void find_lease(struct scan_node *node)
{
    struct str rest = strbuf_str(&node->output);
    struct str line;
    node->lease_age_s = -1;
    while (str_next(&rest, '\n', &line)) {
        struct str kind;
        struct str age;
        if (str_next(&line, '\t', &kind) && str_eq_z(kind, "lease") &&
            str_next(&line, '\t', &age) &&
            str_to_i64(age, INT64_MIN, INT64_MAX, &node->lease_age_s, ERR_IGNORED) == 0) {
            node->lease_run = line;
        }
    }
}

/* A folder comes before those inside it. */
static int compare_items(const void *a, const void *b)
{
    const struct clean_item *item_a = a;
    const struct clean_item *item_b = b;
    return item_a->kind != item_b->kind
               ? (item_a->kind > item_b->kind) - (item_a->kind < item_b->kind)
               : str_cmp(item_a->id, item_b->id);
}

/* Its lines as items. */
static int read_answer(struct node_scan *scan, size_t node_idx, struct err *err)
{
    struct scan_node *node = &scan->nodes[node_idx];
    struct clean_node *of = &scan->list->nodes[node_idx];
    struct str only = scan->list->opts.run;
    struct str rest = str_dup(scan->arena, strbuf_str(&node->output));
    struct str line;
    find_lease(node);
    while (str_next(&rest, '\n', &line)) {
        struct clean_item item;
        if (str_eq_z(line, "end")) {
            if (of->n) {
                qsort(of->items, of->n, sizeof(*of->items), compare_items);
            }
            return 0;
        }
        if (line.len == 0) {
            continue;
        }
        if (clean_read_line(scan->arena, line, &item, err) < 0) {
            return -1;
        }
        decide_item(scan, node, &item);
        if (++scan->n_items > CLEAN_ITEMS_MAX) {
            return err_set(err, ERR_NODE, "more than %d things are left there", CLEAN_ITEMS_MAX);
        }
        if (!only.ptr || str_eq(item.run, only)) {
            VEC_RESERVE_IN(scan->arena, of);
            of->items[of->n++] = item;
        }
    }
    return err_set(err, ERR_NODE, "its answer is truncated");
}

/* ---- asking ---- */

/* Where Slurm is called: the login node's own remote, else *own, which is made when it is needed. */
static struct remote *batch_remote(const struct fleet *fleet, const struct clean_list *list,
                                   struct remote **own)
{
    if (fleet->inventory->login.ptr) {
        return fleet->nodes[list->batch_idx].remote;
    }
    *own = *own ? *own : remote_local_new(fleet->loop, list->opts.state);
    return *own;
}

static enum step step_scan(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct node_scan *scan = ctx;
    struct scan_node *of = &scan->nodes[node_idx];
    enum runtime_kind runtime = scan->fleet->inventory->runtime;
    bool has_engine = runtime == RUNTIME_DOCKER || runtime == RUNTIME_PODMAN;
    const char *local_root = scan->list->opts.jobs_root;
    char minutes[16];
    snprintf(minutes, sizeof(minutes), "%d", CLEAN_PARTIAL_MIN);
    const struct str fields[] = {str_of(local_root ? local_root : ""), str_of(minutes),
                                 str_of(has_engine ? RUNTIME_KIND_NAMES[runtime] : ""),
                                 STR_LIT(RUNTIME_LABEL_RUN)};
    const struct remote_ask of_batch = {.what = "the jobs of Slurm",
                                        .op = NODE_BATCHES,
                                        .output = &of->output,
                                        .deadline_ns = SCAN_DEADLINE_NS};
    const struct remote_ask of_node = {.what = "looking for what is left there",
                                       .op = NODE_SCAN,
                                       .fields = fields,
                                       .n_fields = ARRAY_LEN(fields),
                                       .output = &of->output,
                                       .deadline_ns = SCAN_DEADLINE_NS};
    enum step step = STEP_DONE;
    if (node_idx == scan->list->batch_idx && !of->has_batch) {
        struct remote *remote = batch_remote(scan->fleet, scan->list, &scan->own);
        step = remote->ops->ask(remote, &of_batch, err);
        of->has_batch = step == STEP_DONE;
    }
    if (step == STEP_DONE) {
        step = node->remote->ops->ask(node->remote, &of_node, err);
    }
    return step == STEP_DONE && read_answer(scan, node_idx, err) < 0 ? STEP_FAIL : step;
}

static size_t find_batch(const struct inventory *inventory)
{
    if (inventory->launcher != LAUNCHER_SLURM) {
        return SIZE_MAX;
    }
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        if (inventory->login.ptr && str_eq(inventory->nodes[idx].name, inventory->login)) {
            return idx;
        }
    }
    return 0;
}

int clean_scan(struct arena *arena, struct fleet *fleet, const struct clean_opts *opts,
               struct clean_list *ret_list, struct err *err)
{
    struct clean_list list = {
        .opts = *opts, .n_nodes = fleet->n_nodes, .batch_idx = find_batch(fleet->inventory)};
    struct node_scan scan = {.arena = arena, .fleet = fleet, .list = &list};
    list.nodes = arena_array(arena, struct clean_node, fleet->n_nodes + 1);
    scan.nodes = arena_array(arena, struct scan_node, fleet->n_nodes + 1);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        strbuf_init(&scan.nodes[idx].output, SCAN_OUTPUT_MAX);
    }
    int n_failed = fleet_each(fleet, 0, step_scan, &scan, err);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        strbuf_release(&scan.nodes[idx].output);
        list.nodes[idx].err = fleet->nodes[idx].err;
    }
    remote_free(scan.own);
    *ret_list = list;
    return n_failed;
}

/* ---- carrying it out ---- */

struct apply_node {
    /* What one reperf-node is to remove: jobs of Slurm, by its login node; then all else. */
    struct removal {
        struct clean_item **items;
        size_t n, at; /* in all, done */
    } batch, rest;
    struct strbuf output;
};

struct apply {
    struct arena arena;
    struct fleet *fleet;
    struct clean_list *list;
    struct apply_node *nodes;
    struct remote *own; /* this machine's, for Slurm; NULL: not needed yet */
};

/* Jobs come first, from the last on: a job's folder may hold another job's, its monitor's, and a job's own cleanup removes its
   container. */
static void begin_removal(struct apply *apply, struct clean_node *list, bool is_batch,
                          struct removal *removal)
{
    removal->items = arena_array(&apply->arena, struct clean_item *, list->n + 1);
    for (size_t idx = list->n; idx-- > 0;) {
        if (!is_batch && list->items[idx].kind == CLEAN_JOB &&
            list->items[idx].action != CLEAN_KEEP) {
            removal->items[removal->n++] = &list->items[idx];
        }
    }
    for (size_t idx = 0; idx < list->n; idx++) {
        struct clean_item *item = &list->items[idx];
        if (item->action != CLEAN_KEEP && item->kind != CLEAN_JOB &&
            (item->kind == CLEAN_BATCH) == is_batch) {
            removal->items[removal->n++] = item;
        }
    }
}

/* The jobs of Slurm, or all else. */
static enum step step_removal(struct apply *apply, struct remote *remote, size_t node_idx,
                              bool is_batch, struct err *err)
{
    struct apply_node *of = &apply->nodes[node_idx];
    struct removal *removal = is_batch ? &of->batch : &of->rest;
    const char *root = apply->list->opts.jobs_root;
    if (!removal->items) {
        begin_removal(apply, &apply->list->nodes[node_idx], is_batch, removal);
    }
    while (removal->at < removal->n) {
        struct str fields[2 + 2 * REMOVE_PAIRS_MAX] = {
            str_of(root ? root : ""), str_of(RUNTIME_KIND_NAMES[apply->fleet->inventory->runtime])};
        struct remote_ask ask = {.what = is_batch ? "ending jobs of Slurm"
                                                  : "removing what is left there",
                                 .op = NODE_REMOVE,
                                 .fields = fields,
                                 .n_fields = 2,
                                 .output = &of->output,
                                 .deadline_ns = REMOVE_DEADLINE_NS};
        size_t end = removal->n - removal->at < REMOVE_PAIRS_MAX ? removal->n
                                                                 : removal->at + REMOVE_PAIRS_MAX;
        for (size_t idx = removal->at; idx < end; idx++) {
            fields[ask.n_fields++] = str_of(CLEAN_KIND_NAMES[removal->items[idx]->kind]);
            fields[ask.n_fields++] = removal->items[idx]->id;
        }
        remote = remote ? remote : batch_remote(apply->fleet, apply->list, &apply->own);
        enum step step = remote->ops->ask(remote, &ask, err);
        if (step != STEP_DONE) {
            return step;
        }
        for (; removal->at < end; removal->at++) {
            removal->items[removal->at]->is_done = true;
        }
    }
    return STEP_DONE;
}

static enum step step_apply(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct apply *apply = ctx;
    const struct clean_node *list = &apply->list->nodes[node_idx];
    if (list->err.code != ERR_NONE) {
        return step_fail(err_pass(err, &list->err));
    }
    if (node_idx == apply->list->batch_idx) { /* found when it is needed: most need none */
        enum step step = step_removal(apply, NULL, node_idx, true, err);
        if (step != STEP_DONE) {
            return step;
        }
    }
    return step_removal(apply, node->remote, node_idx, false, err);
}

int clean_apply(struct fleet *fleet, struct clean_list *list, struct err *err)
{
    struct apply apply = {.fleet = fleet, .list = list};
    apply.nodes = arena_array(&apply.arena, struct apply_node, fleet->n_nodes + 1);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        strbuf_init(&apply.nodes[idx].output, REMOVE_OUTPUT_MAX);
    }
    int n_failed = fleet_each(fleet, 0, step_apply, &apply, err);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        strbuf_release(&apply.nodes[idx].output);
    }
    remote_free(apply.own);
    arena_release(&apply.arena);
    return n_failed;
}
