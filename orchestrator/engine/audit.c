/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "engine/audit.h"

#include "domain/lint.h"
#include "engine/audit_parts.h"

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

static void release_audit(struct audit *audit)
{
    map_release(&audit->logs);
}

int audit_report(struct arena *arena, const struct report *report, const struct format_set *formats,
                 const struct audit_opts *opts, struct report_audit *ret_audit, struct err *err)
{
    struct report_audit out = {.report = report};
    struct audit audit = {arena, report, formats, opts, {0}, &out};
    if (audit_read_logs(&audit, err) < 0) {
        release_audit(&audit);
        return -1;
    }
    audit_cells(&audit);
    audit_explain(&audit);
    audit_like_for_like(&audit);
    audit_find_cells(&audit);
    audit_find_windows(&audit);
    audit_find_facts(&audit);
    out.n_from_logs = out.findings.n;
    lint_report(arena, report, &out.findings);
    release_audit(&audit);
    *ret_audit = out;
    return 0;
}
