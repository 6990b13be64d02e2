/* SPDX-License-Identifier: Apache-2.0 */
/* What the nodes' monitors give reason to doubt a repeat for. */
#include "base/base.h"

#include "evidence/result.h"

#include "base/fs.h"
#include "judge/monitor.h"

#define TAINTS_MAX 1024

int result_taints(struct arena *arena, const struct frozen *frozen,
                  const struct outcome_record *outcome, struct str **ret_taints, size_t *ret_n,
                  struct err *err)
{
    const struct monitor_opts opts = {.ranks_per_gpu = 1};
    struct str *taints = arena_array(arena, struct str, TAINTS_MAX);
    size_t n = 0;
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
            return -1;
        }
        if (monitor_judge(arena, text, &opts, &report, &bad) < 0) {
            report = (struct monitor_report){0};
            if (n < TAINTS_MAX) {
                taints[n++] = str_of(
                    arena_printf(arena, "%.*s: not watched: %s", STR_ARG(node->name), bad.msg));
            }
        }
        for (size_t at = 0; at < report.n_taints && n < TAINTS_MAX; at++) {
            taints[n++] = str_of(arena_printf(arena, "%.*s: %.*s", STR_ARG(node->name),
                                              STR_ARG(report.taints[at].text)));
        }
    }
    *ret_taints = taints;
    *ret_n = n;
    return 0;
}
