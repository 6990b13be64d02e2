/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/audit.h"

#include "judge/audit_parts.h"

struct str arena_str(struct arena *arena, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    int len;
    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len < 0) {
        return STR_LIT("");
    }
    len = (size_t)len < sizeof(text) ? len : (int)sizeof(text) - 1;
    return (struct str){arena_strndup(arena, text, (size_t)len), (size_t)len};
}

struct str cell_where(const struct audit *audit, const struct cell_audit *cell)
{
    if (cell->n_logs) {
        return cell->logs[0].path;
    }
    return arena_str(audit->arena, "%.*s:%.*s", STR_ARG(audit->report->path),
                     STR_ARG(cell->cell->id));
}

void audit_judge(struct arena *arena, const struct binding *binding, struct report_audit *ret_audit)
{
    struct audit audit = {arena, binding->report, binding, ret_audit};
    *ret_audit = (struct report_audit){.report = binding->report};
    audit_cells(&audit);
    audit_explain(&audit);
    audit_like_for_like(&audit);
    audit_find_rows(&audit);
    audit_find_cells(&audit);
    audit_find_windows(&audit);
    audit_find_facts(&audit);
    ret_audit->n_from_logs = ret_audit->findings.n;
}
