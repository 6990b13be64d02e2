/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/explain_names.h"

#include <fnmatch.h>

#include "cmd/guests.h"
#include "load/audit_logs.h"
#include "load/load.h"
#include "load/log_lines.h"
#include "load/places.h"
#include "sys/pool_lanes.h"

static int load(struct explainer *e, struct err *err)
{
    if (e->is_loaded) {
        return 0;
    }
    if (load_formats(e->arena, e->ctx->root, &e->formats, err) < 0 ||
        load_all_reports(e->arena, e->ctx->root, &e->reports, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < e->reports.n; idx++) {
        const struct report *r = &e->reports.items[idx];
        for (size_t c = 0; c < r->n_cases; c++) {
            for (size_t at = 0; at < r->cases[c].n_cells; at++) {
                VEC_PUSH(&e->cells, ((struct cell_of){idx, &r->cases[c], &r->cases[c].cells[at]}));
            }
        }
    }
    arena_adopt(e->arena, e->cells.items);
    e->audits = arena_array(e->arena, struct report_audit, e->reports.n + 1);
    e->is_audited = arena_array(e->arena, bool, e->reports.n + 1);
    e->is_loaded = true;
    return 0;
}

static void begin(struct explainer *e)
{
    if (!e->args->want_json && e->text->len > 0) {
        strbuf_add_char(e->text, '\n');
    }
}

/* ---- formats and rules ---- */

/* The cells whose logs this format reads, or, where rule is one, that this rule judges. */
static void find_users(struct explainer *e, struct str format, struct str rule,
                       struct explain_users *users)
{
    struct str wanted = rule.ptr ? rule : format;
    users->items = arena_array(e->arena, struct explain_user, e->cells.n + 1);
    for (size_t idx = 0; idx < e->cells.n; idx++) {
        const struct cell_of *of = &e->cells.items[idx];
        struct str used =
            rule.ptr ? cell_rule(of->of_case, of->cell) : cell_format(of->of_case, of->cell);
        if (used.ptr && str_eq(used, wanted)) {
            users->items[users->n++] =
                (struct explain_user){&e->reports.items[of->report], of->cell};
        }
    }
}

static int explain_format(struct explainer *e, const struct format *format, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct explain_format of = {.format = format};
    struct placed_list files;
    struct json root;
    if (places_list(e->arena, e->ctx->root, "formats", FORMATS_MAX, &files, err) < 0) {
        return -1;
    }
    const struct placed *file = placed_find(&files, format_id(format));
    ASSERT(file);
    if (json_read_file(file->path, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    of.root = &root;
    of.path = file->path;
    find_users(e, format_id(format), STR_EMPTY, &of.users);
    return e->args->want_json ? explain_format_json(e->arena, &of, e->json, err)
                              : explain_format_text(e->arena, &of, e->text, err);
}

static void explain_rule(struct explainer *e, const struct rule *rule)
{
    struct explain_users users = {0};
    find_users(e, STR_EMPTY, rule->id, &users);
    if (e->args->want_json) {
        explain_put_rule(rule, &users, e->json);
    } else {
        explain_rule_text(rule, &users, e->text);
    }
}

static const struct rule *find_rule(const struct explainer *e, struct str id)
{
    for (size_t idx = 0; idx < e->formats.n; idx++) {
        const struct rule *rules;
        size_t n = format_rules(e->formats.items[idx], &rules);
        for (size_t at = 0; at < n; at++) {
            if (str_eq(rules[at].id, id)) {
                return &rules[at];
            }
        }
    }
    return NULL;
}

/* ---- cells ---- */

struct names_found {
    size_t report; /* among e->reports */
    const struct cell *cell;
    size_t n;               /* how many there are */
    const char *in_reports; /* their names */
};

/* A case stands for its only cell. */
static const struct cell *cell_of_report(const struct report *r, struct str name)
{
    const struct report_case *c = report_case_find(r, name);
    const struct cell *cell = report_cell_find(r, name, NULL);
    return cell ? cell : c && c->n_cells == 1 ? &c->cells[0] : NULL;
}

/* "CELL", "REPORT/CELL" and, as findings say it, "manifests/reports/REPORT.json:CELL". */
static struct names_found find_cell(const struct explainer *e, const char *name)
{
    struct names_found found = {.in_reports = ""};
    for (size_t idx = 0; idx < e->reports.n; idx++) {
        const struct report *r = &e->reports.items[idx];
        struct str slash = str_of(arena_printf(e->arena, "%.*s/", STR_ARG(r->id)));
        struct str colon = str_of(arena_printf(e->arena, "%.*s:", STR_ARG(r->path)));
        struct str rest = str_of(name);
        rest = str_starts(rest, slash)   ? str_sub(rest, slash.len, SIZE_MAX)
               : str_starts(rest, colon) ? str_sub(rest, colon.len, SIZE_MAX)
                                         : rest;
        const struct cell *cell = cell_of_report(r, rest);
        if (cell) {
            found.in_reports = arena_printf(e->arena, "%s%s%.*s", found.in_reports,
                                            found.n ? ", " : "", STR_ARG(r->id));
            found.report = idx;
            found.cell = cell;
            found.n++;
        }
    }
    return found;
}

static int audit(struct explainer *e, size_t idx, struct err *err)
{
    const struct lanes lanes = pool_lanes();
    const struct report_set one = {&e->reports.items[idx], 1};
    struct audit_opts opts = {.logs_folder = e->args->logs_folder,
                              .root = e->ctx->root,
                              .lanes = &lanes,
                              .lint = GUESTS.lint,
                              .keeps_lines = true};
    if (e->is_audited[idx]) {
        return 0;
    }
    if (opts.logs_folder) {
        logs_clone_cleanup(&e->clone); /* of the report before this one; its texts have been read */
        if (logs_clone_read(e->arena, e->ctx, opts.logs_folder, &one, &e->clone, err) < 0) {
            return -1;
        }
        opts.clone = e->clone.folder ? opts.logs_folder : NULL;
        opts.logs_folder = e->clone.folder ? e->clone.folder : opts.logs_folder;
    }
    if (audit_report(e->arena, &e->reports.items[idx], &e->formats, &opts, &e->audits[idx], err) <
        0) {
        return -1;
    }
    e->is_audited[idx] = true;
    return 0;
}

/* The lines of the samples that count, where the log itself was read and is there still. */
static int read_texts(struct explainer *e, struct explain_cell *of, struct err *err)
{
    const struct cell_audit *a = of->cell;
    of->texts = arena_array(e->arena, struct str *, a->n_logs + 1);
    for (size_t log = 0; log < a->n_logs; log++) {
        const struct how_log *how = &of->how.logs[log];
        const char *path = a->logs[log].file.ptr ? str_z(e->arena, a->logs[log].file) : NULL;
        if (!path || !how->uses || !how->series->lines) {
            continue;
        }
        of->texts[log] = arena_array(e->arena, struct str, how->series->n);
        if (log_lines_read(e->arena, path, how->series->lines, how->series->n, of->texts[log],
                           err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int explain_cell(struct explainer *e, size_t idx, const struct cell *cell, struct err *err)
{
    const struct explain_opts opts = {e->args->is_verbose};
    struct explain_cell of = {.report = &e->reports.items[idx]};
    if (audit(e, idx, err) < 0) {
        return -1;
    }
    for (size_t at = 0; at < e->audits[idx].n_cells; at++) {
        of.cell = e->audits[idx].cells[at].cell == cell ? &e->audits[idx].cells[at] : of.cell;
    }
    ASSERT(of.cell);
    how_of(e->arena, of.cell, &of.how);
    if (read_texts(e, &of, err) < 0) {
        return -1;
    }
    if (e->args->want_json) {
        explain_cell_json(e->arena, &of, e->json);
    } else {
        explain_cell_text(e->arena, &of, &opts, e->text);
    }
    return 0;
}

static const char *cells_of(struct arena *arena, const struct report_case *c)
{
    const char *text = "";
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        text = arena_printf(arena, "%s%s%.*s", text, idx ? ", " : "", STR_ARG(c->cells[idx].id));
    }
    return text;
}

/* A report, and a cell of it. */
static int explain_of_report(struct explainer *e, size_t idx, const char *name, struct err *err)
{
    const struct report *r = &e->reports.items[idx];
    char text[NEAREST_TEXT_MAX];
    if (!name) {
        return err_set(err, ERR_USAGE,
                       "%s is a report: name a cell of it as well; reperf audit %s -v shows them",
                       r->id.ptr, r->id.ptr);
    }
    const struct cell *cell = cell_of_report(r, str_of(name));
    const struct report_case *c = report_case_find(r, str_of(name));
    if (cell) {
        return explain_cell(e, idx, cell, err);
    }
    if (c) {
        return err_set(err, ERR_USAGE, "%.100s is a case of %zu cells: %s", name, c->n_cells,
                       cells_of(e->arena, c));
    }
    struct nearest nearest = nearest_to(name);
    for (size_t at = 0; at < r->n_cases; at++) {
        for (size_t cell_idx = 0; cell_idx < r->cases[at].n_cells; cell_idx++) {
            nearest_offer(&nearest, r->cases[at].cells[cell_idx].id.ptr);
        }
    }
    return err_set(err, ERR_NOT_FOUND, "%s has no cell %.100s%s", r->id.ptr, name,
                   nearest_text(&nearest, text));
}

static void offer_all(const struct explainer *e, struct nearest *nearest)
{
    for (size_t idx = 0; idx < e->formats.n; idx++) {
        const struct rule *rules;
        size_t n = format_rules(e->formats.items[idx], &rules);
        nearest_offer(nearest, format_id(e->formats.items[idx]).ptr);
        for (size_t at = 0; at < n; at++) {
            nearest_offer(nearest, rules[at].id.ptr);
        }
    }
    for (size_t idx = 0; idx < e->reports.n; idx++) {
        const struct report *r = &e->reports.items[idx];
        const char *own = arena_printf(e->arena, "%.*s/", STR_ARG(r->id));
        bool is_below = str_starts(str_of(nearest->wanted), str_of(own));
        nearest_offer(nearest, r->id.ptr);
        for (size_t c = 0; c < r->n_cases; c++) {
            if (r->cases[c].n_cells > 0) {
                nearest_offer(nearest, r->cases[c].id.ptr);
            }
            for (size_t at = 0; at < r->cases[c].n_cells; at++) {
                const char *id = r->cases[c].cells[at].id.ptr;
                nearest_offer(nearest, is_below ? arena_printf(e->arena, "%s%s", own, id) : id);
            }
        }
    }
}

static int explain_found(struct explainer *e, const struct names_found *found, const char *name,
                         struct err *err)
{
    if (found->n > 1) {
        return err_set(err, ERR_USAGE, "%.100s is a cell of %zu reports (%s): put one before it",
                       name, found->n, found->in_reports);
    }
    return explain_cell(e, found->report, found->cell, err);
}

/* Each cell whose id the pattern matches; *ret_n: how many. */
static int explain_matching(struct explainer *e, const char *glob, size_t *ret_n, struct err *err)
{
    *ret_n = 0;
    for (size_t idx = 0; idx < e->cells.n; idx++) {
        const struct cell_of *of = &e->cells.items[idx];
        if (fnmatch(glob, of->cell->id.ptr, 0) == 0) {
            ++*ret_n;
            if (explain_cell(e, of->report, of->cell, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

int explain_names(struct explainer *e, const char *const *items, size_t n, struct nearest *nearest,
                  size_t *ret_n, struct err *err)
{
    struct str name = str_of(items[0]);
    *ret_n = 1;
    if (load(e, err) < 0) {
        return -1;
    }
    begin(e);
    const struct format *format = format_find(&e->formats, name);
    if (format) {
        return explain_format(e, format, err);
    }
    const struct rule *rule = find_rule(e, name);
    if (rule) {
        explain_rule(e, rule);
        return 0;
    }
    for (size_t idx = 0; idx < e->reports.n; idx++) {
        if (str_eq(e->reports.items[idx].id, name)) {
            *ret_n = n > 1 ? 2 : 1;
            return explain_of_report(e, idx, n > 1 ? items[1] : NULL, err);
        }
    }
    size_t n_matching = 0;
    if (strpbrk(items[0], "*?[") && explain_matching(e, items[0], &n_matching, err) < 0) {
        return -1;
    }
    if (n_matching) {
        return 0;
    }
    struct names_found found = find_cell(e, items[0]);
    if (found.n) {
        return explain_found(e, &found, items[0], err);
    }
    for (size_t idx = 0; idx < e->reports.n; idx++) {
        const struct report_case *c = report_case_find(&e->reports.items[idx], name);
        if (c && c->n_cells > 0) {
            return explain_of_report(e, idx, items[0], err); /* which says its cells */
        }
    }
    offer_all(e, nearest);
    *ret_n = 0;
    return 0;
}
