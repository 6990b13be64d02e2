/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons to doubt a repeat, from the nodes' monitors. */
#include "base/base.h"

#include "evidence/result.h"

#include "base/fs.h"
#include "base/vec.h"
#include "fleet/monitor.h"

int result_taints(struct arena *arena, const struct frozen *frozen,
                  const struct outcome_record *outcome, struct str **ret_taints, size_t *ret_n,
                  struct err *err)
{
    const struct monitor_opts opts = {.ranks_per_gpu = 1};
    VEC(struct str) taints = {0};
    int rc = 0;
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
        *ret_n = taints.n;
        *ret_taints = arena_array(arena, struct str, taints.n + 1);
        for (size_t idx = 0; idx < taints.n; idx++) {
            (*ret_taints)[idx] = taints.items[idx];
        }
    }
    VEC_RELEASE(&taints);
    return rc;
}
