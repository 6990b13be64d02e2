/* SPDX-License-Identifier: Apache-2.0 */
/* An outcome record is trusted only as far as it agrees with its place, with itself, and with the files that it names. */
#include "base/base.h"

#include "evidence/result.h"

#include "base/fs.h"
#include "codec/digest.h"
#include "evidence/rundir.h"

struct checked {
    struct arena *arena;
    const struct frozen *frozen;
    const struct outcome_record *record;
    const char *path; /* of the record, below the evidence folder */
};

static int wrong(const struct checked *c, struct err *err, const char *what, struct str found)
{
    return err_set(err, ERR_INTEGRITY, "%s/%s: %s, found \"%.*s\"", c->frozen->folder, c->path,
                   what, STR_ARG(str_sub(found, 0, 200)));
}

static bool is_in_inventory(const struct checked *c, struct str name)
{
    return STR_NAMED(c->frozen->inventory.nodes, c->frozen->inventory.n_nodes, name, name) != NULL;
}

/* Its log is below its own name, or below the plain one that metrics are read from. */
static int check_log(const struct checked *c, const struct outcome_node *node, bool is_metric,
                     struct err *err)
{
    const struct outcome_record *record = c->record;
    const char *own =
        rundir_name(c->arena, RUNDIR_NODE_LOG,
                    (struct rundir_of){
                        .case_id = record->case_id, .repeat = record->repeat, .name = node->name});
    struct str hex;
    if (!is_metric && !str_eq_z(node->log, own)) {
        return wrong(c, err, "log of a node: expected its own", node->log);
    }
    if (is_metric) { /* is read, and so checked, by the caller */
        return str_eq(node->log_sha256, record->log_sha256) && node->log_bytes == record->log_bytes
                   ? 0
                   : wrong(c, err, "its log's digest is stated twice, with two values",
                           node->log_sha256);
    }
    if (digest_file_hex(c->arena, fs_join(c->arena, c->frozen->folder, own), &hex, err) < 0) {
        return -1;
    }
    return str_eq(node->log_sha256, hex)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: not the log that was collected: SHA-256 was %.*s, is %.*s", own,
                         STR_ARG(node->log_sha256), STR_ARG(hex));
}

static int check_node(const struct checked *c, size_t node_idx, size_t *n_metric, struct err *err)
{
    const struct outcome_record *record = c->record;
    const struct outcome_node *node = &record->nodes[node_idx];
    const char *monitor =
        rundir_name(c->arena, RUNDIR_MONITOR,
                    (struct rundir_of){
                        .case_id = record->case_id, .repeat = record->repeat, .name = node->name});
    bool is_metric = str_eq_z(
        node->log, rundir_of_repeat(c->arena, RUNDIR_LOG, record->case_id, record->repeat));
    if (!is_in_inventory(c, node->name)) {
        return wrong(c, err, "expected a node of the inventory", node->name);
    }
    for (size_t idx = 0; idx < node_idx; idx++) {
        if (str_eq(record->nodes[idx].name, node->name)) {
            return wrong(c, err, "a node occurs twice", node->name);
        }
    }
    if (node->monitor.ptr && !str_eq_z(node->monitor, monitor)) {
        return wrong(c, err, "monitor of a node: expected its own", node->monitor);
    }
    *n_metric += is_metric;
    return check_log(c, node, is_metric, err);
}

/* The attempt's status is that of the node that failed first; it is 0 only where it is 0 everywhere. */
static int check_statuses(const struct checked *c, struct err *err)
{
    const struct outcome_record *record = c->record;
    bool has_failed = !record->failed_node.ptr;
    for (size_t idx = 0; idx < record->n_nodes; idx++) {
        const struct outcome_node *node = &record->nodes[idx];
        bool is_named = record->failed_node.ptr && str_eq(node->name, record->failed_node);
        has_failed = has_failed || (is_named && node->exit_status != 0);
        if (record->outcome == OUTCOME_EXITED &&
            ((node->exit_status != 0 && record->exit_status == 0) ||
             (is_named && node->exit_status != record->exit_status))) {
            return wrong(c, err, "exit status of a node does not agree with the attempt's",
                         node->name);
        }
    }
    if (!has_failed || (record->outcome == OUTCOME_EXITED && record->n_nodes &&
                        (record->exit_status != 0) != (record->failed_node.ptr != NULL))) {
        return wrong(c, err, "expected the node that failed to be named, and no other",
                     record->failed_node);
    }
    return 0;
}

int result_check_outcome(struct arena *arena, const struct frozen *frozen,
                         const struct plan_step *step, int64_t repeat,
                         const struct outcome_record *record, struct err *err)
{
    const struct checked c = {arena, frozen, record,
                              rundir_of_repeat(arena, RUNDIR_OUTCOME, step->case_id, repeat)};
    size_t n_wanted = frozen->inventory.is_local              ? 0
                      : frozen->plan.launcher == LAUNCHER_SSH ? (size_t)plan_step_nodes(step)
                                                              : 1;
    size_t n_metric = 0;
    if (!str_eq(record->case_id, step->case_id) || record->repeat != repeat) {
        return wrong(&c, err, "is of another repeat",
                     str_of(arena_printf(arena, "%.*s repeat %lld", STR_ARG(record->case_id),
                                         (long long)record->repeat)));
    }
    if (!str_eq_z(record->log, rundir_of_repeat(arena, RUNDIR_LOG, step->case_id, repeat))) {
        return wrong(&c, err, "expected the repeat's own log", record->log);
    }
    if (record->n_nodes != n_wanted) {
        return wrong(&c, err, "has not as many nodes as the case has jobs",
                     str_of(arena_printf(arena, "%zu, expected %zu", record->n_nodes, n_wanted)));
    }
    for (size_t idx = 0; idx < record->n_nodes; idx++) {
        if (check_node(&c, idx, &n_metric, err) < 0) {
            return -1;
        }
    }
    if (record->n_nodes && n_metric != 1) {
        return wrong(&c, err, "expected one node whose log the metrics are from",
                     str_of(arena_printf(arena, "%zu", n_metric)));
    }
    return check_statuses(&c, err);
}
