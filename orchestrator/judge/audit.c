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

/* ---- logs ---- */

static struct str log_key(struct arena *arena, struct str path, struct str format)
{
    return str_of(arena_printf(arena, "%.*s\n%.*s", STR_ARG(format), STR_ARG(path)));
}

struct audit_log *audit_logs_find(const struct audit_logs *logs, struct str path, struct str format)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    return map_get(&logs->items, log_key(&arena, path, format));
}

struct audit_log *audit_logs_add(struct audit_logs *logs, struct arena *arena, struct str path,
                                 struct str format)
{
    struct audit_log *log = arena_new(arena, struct audit_log);
    bool is_new = map_add(&logs->items, log_key(arena, path, format), log);
    ASSERT(is_new);
    log->path = path;
    log->format = format;
    return log;
}

void audit_logs_release(struct audit_logs *logs)
{
    map_release(&logs->items);
}

/* ---- the whole ---- */

void audit_judge(struct arena *arena, const struct report *report, const struct format_set *formats,
                 const struct audit_logs *logs, struct report_audit *ret_audit)
{
    struct audit audit = {arena, report, formats, logs, ret_audit};
    *ret_audit = (struct report_audit){.report = report};
    audit_cells(&audit);
    audit_explain(&audit);
    audit_like_for_like(&audit);
    audit_find_rows(&audit);
    audit_find_cells(&audit);
    audit_find_windows(&audit);
    audit_find_facts(&audit);
    ret_audit->n_from_logs = ret_audit->findings.n;
}
