/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons to doubt a repeat, from what outlived it, its own log and the nodes' monitors. */
#include "base/base.h"

#include "evidence/result.h"

#include "base/fs.h"
#include "base/vec.h"
#include "fleet/monitor.h"
#include "judge/identity.h"

static struct str machine_value(const struct frozen *frozen, struct str name)
{
    for (size_t idx = 0; idx < frozen->n_machine; idx++) {
        if (str_eq(frozen->machine[idx].name, name)) {
            return frozen->machine[idx].value;
        }
    }
    return STR_EMPTY;
}

int result_taints(struct arena *arena, const struct frozen *frozen, struct repeat_result *repeat,
                  struct err *err)
{
    const struct outcome_record *outcome = &repeat->outcome;
    const struct monitor_opts opts = {.ranks_per_gpu = 1};
    VEC(struct str) taints = {0};
    int rc = 0;
    if (outcome->left.ptr) {
        VEC_PUSH(&taints, str_of(arena_printf(arena, "outlived the job and were ended: %.*s",
                                              STR_ARG(outcome->left))));
    }
    for (size_t idx = 0; idx < repeat->n_facts; idx++) {
        const struct fact *fact = &repeat->facts[idx];
        struct str node = machine_value(frozen, fact->name);
        if (node.ptr && fact_contradicts(fact->name, node, fact->value)) {
            VEC_PUSH(&taints, str_of(arena_printf(
                                  arena, "its log states %.*s %.*s, the machine %.*s",
                                  STR_ARG(fact->name), STR_ARG(fact->value), STR_ARG(node))));
        }
    }
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        const struct outcome_node *node = &outcome->nodes[idx];
        struct monitor_report report;
        struct err bad = {0};
        struct str text;
        if (!node->monitor.ptr) {
            continue;
        }
        if (fs_read(arena, fs_join(arena, frozen->folder, str_z(arena, node->monitor)),
                    MONITOR_TEXT_MAX, &text, err) < 0) {
            rc = -1;
            break;
        }
        if (monitor_judge(arena, text, &opts, &report, &bad) < 0) {
            report = (struct monitor_report){0};
            VEC_PUSH(&taints, str_of(arena_printf(arena, "%.*s: not watched: %s",
                                                  STR_ARG(node->name), bad.msg)));
        }
        for (size_t at = 0; at < report.n_taints; at++) {
            VEC_PUSH(&taints, str_of(arena_printf(arena, "%.*s: %.*s", STR_ARG(node->name),
                                                  STR_ARG(report.taints[at].text))));
        }
    }
    if (rc == 0) {
        repeat->n_taints = taints.n;
        repeat->taints = arena_array(arena, struct str, taints.n + 1);
        for (size_t idx = 0; idx < taints.n; idx++) {
            repeat->taints[idx] = taints.items[idx];
        }
    }
    VEC_RELEASE(&taints);
    return rc;
}
