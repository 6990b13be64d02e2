/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/select.h"

#include "base/nearest.h"
#include "base/progress.h"
#include "cmd/guests.h"
#include "load/audit_logs.h"
#include "run/run_address.h"
#include "sys/pool.h"

int shown_level(const struct shown_args *args, enum text_level *ret_level, struct err *err)
{
    if (args->is_quiet && args->is_verbose) {
        return err_set(err, ERR_USAGE, "either --quiet or --verbose");
    }
    *ret_level = args->is_quiet ? TEXT_QUIET : args->is_verbose ? TEXT_VERBOSE : TEXT_PLAIN;
    return 0;
}

/* Leaves the cases of those reports that are selected. */
static int select_cases(struct arena *arena, const struct shown_args *args,
                        struct report_audit *audits, size_t n, struct err *err)
{
    const size_t n_globs = args->cases.n;
    struct str *globs = arena_array(arena, struct str, n_globs + 1);
    char text[NEAREST_TEXT_MAX];
    size_t n_cells = 0;
    for (size_t idx = 0; idx < n_globs; idx++) {
        globs[idx] = str_of(args->cases.items[idx]);
    }
    for (size_t idx = 0; idx < n; idx++) {
        audit_select(arena, &audits[idx], globs, n_globs);
        n_cells += audits[idx].n_cells;
    }
    struct str *ids = arena_array(arena, struct str, n_cells + 1);
    for (size_t idx = 0, at = 0; idx < n; idx++) {
        for (size_t c = 0; c < audits[idx].n_cells; c++) {
            ids[at++] = audits[idx].cells[c].of_case->id;
        }
    }
    struct str idle = plan_idle_glob(globs, n_globs, ids, n_cells);
    if (!idle.ptr) {
        return 0;
    }
    struct nearest nearest = nearest_to(idle.ptr);
    for (size_t idx = 0; idx < n; idx++) {
        for (size_t c = 0; c < audits[idx].report->n_cases; c++) {
            nearest_offer(&nearest, audits[idx].report->cases[c].id.ptr);
        }
    }
    return err_set(err, ERR_USAGE, "no published cell is selected by --case %.200s%s", idle.ptr,
                   nearest_text(&nearest, text));
}

void audited_cleanup(struct audited *audited)
{
    logs_clone_cleanup(&audited->clone);
    format_set_cleanup(&audited->formats);
}

int audited_make(struct arena *arena, const struct cmd_ctx *ctx, const struct audit_ask *ask,
                 struct audited *ret, struct err *err)
{
    const struct lanes lanes = pool_lanes();
    struct progress progress = {0};
    struct audit_opts opts = {.logs_folder = ask->logs_folder,
                              .root = ctx->root,
                              .series_folder = ask->series_folder,
                              .progress = &progress,
                              .lanes = &lanes,
                              .lint = GUESTS.lint};
    struct report_set *reports = &ret->reports;
    ret->arena = arena;
    ret->root = ctx->root;
    uint64_t total = 0;
    int rc = 0;
    if (address_open_all(arena, ctx, ask->names, err) < 0 ||
        load_reports_of(arena, ctx->root, ask->names, ask->is_all, reports, err) < 0 ||
        load_formats(arena, ctx->root, &ret->formats, err) < 0 ||
        (ask->logs_folder &&
         logs_clone_read(arena, ctx, ask->logs_folder, reports, &ret->clone, err) < 0)) {
        return -1;
    }
    if (ret->clone.folder) {
        opts.clone = ask->logs_folder;
        opts.logs_folder = ret->clone.folder;
    }
    ret->audits = arena_array(arena, struct report_audit, reports->n + 1);
    for (size_t idx = 0; idx < reports->n; idx++) {
        total += audit_count_logs(&reports->items[idx]);
    }
    progress_start(&progress, ctx->clock, ask->command, "logs", total);
    for (size_t idx = 0; rc == 0 && idx < reports->n; idx++) {
        rc =
            audit_report(arena, &reports->items[idx], &ret->formats, &opts, &ret->audits[idx], err);
    }
    progress_end(&progress);
    return rc < 0 ? -1 : select_cases(arena, ask->shown, ret->audits, reports->n, err);
}

struct audit_written {
    const struct audited *audited;
    struct audit_set set;
    const struct audit_text_opts *text;
};

static void write_sarif(const struct audit_written *w, struct strbuf *out)
{
    struct arena *arena = w->audited->arena;
    struct sarif_report *each = arena_array(arena, struct sarif_report, w->set.n + 1);
    for (size_t idx = 0; idx < w->set.n; idx++) {
        each[idx] = (struct sarif_report){w->set.items[idx].report, w->set.items[idx].findings};
    }
    sarif_write(arena, w->audited->root, each, w->set.n, out);
}

static int write_audit(const void *of, enum output_form form, struct strbuf *out,
                       struct err *err UNUSED)
{
    const struct audit_written *w = of;
    if (form == OUTPUT_HTML || form == OUTPUT_MARKDOWN) {
        audit_out_page(&w->set, form == OUTPUT_MARKDOWN, out);
    } else if (form == OUTPUT_SVG) {
        audit_out_card(&w->set.items[0], out);
    } else if (form == OUTPUT_CSV) {
        audit_out_csv(&w->set, out);
    } else if (form == OUTPUT_JSON) {
        audit_out_json(&w->set, out);
    } else if (form == OUTPUT_SARIF) {
        write_sarif(w, out);
    } else if (form == OUTPUT_JUNIT) {
        audit_out_junit(&w->set, out);
    } else {
        audit_out_text(&w->set, w->text, out);
    }
    return 0;
}

int audited_put(const struct audited *audited, const struct audit_text_opts *text,
                const struct outputs *outputs, struct err *err)
{
    const struct audit_written of = {audited, {audited->audits, audited->reports.n}, text};
    return outputs->svg && of.set.n != 1
               ? err_set(err, ERR_USAGE, "--svg is for one report, found %zu", of.set.n)
               : outputs_put(outputs, write_audit, &of, true, err);
}
