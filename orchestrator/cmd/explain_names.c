/* SPDX-License-Identifier: Apache-2.0 */
/* All names are rows of one table: a word that commands print, a format, a rule, a report, or a cell of one. They are looked up
   in this order; the words stand alone until one is asked for that is none of them, since they are short and need no manifest. */
#include "base/base.h"

#include "cmd/explain_names.h"

#include <fnmatch.h>

#include "base/embed.h"
#include "base/nearest.h"
#include "base/vec.h"
#include "cmd/guests.h"
#include "codec/document_text.h"
#include "codec/json_document.h"
#include "judge/finding.h"
#include "load/audit_logs.h"
#include "load/load.h"
#include "load/log_lines.h"
#include "run/events.h"
#include "store/logs_clone.h"
#include "sys/pool.h"
#include "view/audit_out.h"
#include "view/explain_out.h"

/* A word that commands print, and what it means. One word may have several, of different kinds. */
struct explained {
    const char *kind, *name, *level, *title, *text; /* level and title may be NULL */
};

#define ITEMS_SHOWN 100 /* cells of a rule; -v: all */

enum kind { KIND_WORD, KIND_FORMAT, KIND_RULE, KIND_REPORT, KIND_CASE, KIND_CELL };

struct name {
    enum kind kind;
    const char *id;
    const void *of;                    /* a word, format, rule or cell */
    size_t report;                     /* of the last three kinds: among those of the explainer */
    const struct report_case *of_case; /* of a case or cell */
};

struct explainer {
    struct arena *arena;
    const struct cmd_ctx *ctx;
    const struct explain_args *args;
    struct strbuf *text;  /* unless want_json */
    struct json_out json; /* the open list of what is explained */
    struct strbuf item;   /* unless want_json: the document of one */
    VEC(struct name) names;
    struct format_set formats;
    struct report_set reports;
    struct report_audit *audits; /* of the reports; those that were needed */
    bool *is_audited;
    struct logs_clone clone;
};

static void explainer_cleanup(struct explainer *e)
{
    VEC_RELEASE(&e->names);
    strbuf_release(&e->item);
    format_set_release(&e->formats);
    logs_clone_cleanup(&e->clone);
}

/* ---- the table ---- */

EMBED(explain_txt, "orchestrator/cmd/explain.txt"); /* lines of kind, name and text, between tabs */

static void add_word(struct explainer *e, struct explained word)
{
    struct explained *kept = arena_new(e->arena, struct explained);
    *kept = word;
    VEC_PUSH(&e->names, ((struct name){.kind = KIND_WORD, .id = word.name, .of = kept}));
}

/* Every word that a status, a verdict or a column of a document can be, then the findings, then the events.
   tests/integration/test_explain.sh holds the first against the schemas. */
static void add_words(struct explainer *e)
{
    struct str rest = EMBEDDED(explain_txt), line, kind, name;
    while (str_next(&rest, '\n', &line) && line.len) {
        ASSERT(str_next(&line, '\t', &kind) && str_next(&line, '\t', &name));
        add_word(e, (struct explained){str_z(e->arena, kind), str_z(e->arena, name), NULL, NULL,
                                       str_z(e->arena, line)});
    }
    for (size_t idx = 0; idx < N_AUDIT_WORDS; idx++) {
        const struct audit_word *of = &AUDIT_WORDS[idx];
        if (!Z_NAMED(e->names.items, e->names.n, id, str_of(of->word))) {
            add_word(e, (struct explained){"word of an audit", of->word, NULL, NULL, of->meaning});
        }
    }
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        const struct finding_rule *of = &FINDING_RULES[idx];
        add_word(e, (struct explained){"finding", of->id, FINDING_LEVEL_NAMES[of->level], of->title,
                                       str_z(e->arena, finding_help(of))});
    }
    for (size_t idx = 0; idx < EV_COUNT; idx++) {
        add_word(e, (struct explained){"event", EVENTS[idx].name, EVENTS[idx].level, NULL,
                                       EVENTS[idx].help});
    }
}

static void add_report(struct explainer *e, size_t idx)
{
    const struct report *r = &e->reports.items[idx];
    VEC_PUSH(&e->names, ((struct name){KIND_REPORT, r->id.ptr, r, idx, NULL}));
    for (size_t at = 0; at < r->n_cases; at++) {
        const struct report_case *c = &r->cases[at];
        if (c->n_cells > 0) {
            VEC_PUSH(&e->names, ((struct name){KIND_CASE, c->id.ptr, c, idx, c}));
        }
        for (size_t cell = 0; cell < c->n_cells; cell++) {
            const struct cell *of = &c->cells[cell];
            VEC_PUSH(&e->names, ((struct name){KIND_CELL, of->id.ptr, of, idx, c}));
        }
    }
}

static int add_manifests(struct explainer *e, struct err *err)
{
    if (e->audits) {
        return 0;
    }
    if (load_formats(e->arena, e->ctx->root, &e->formats, err) < 0 ||
        load_all_reports(e->arena, e->ctx->root, &e->reports, err) < 0) {
        return -1;
    }
    e->audits = arena_array(e->arena, struct report_audit, e->reports.n + 1);
    e->is_audited = arena_array(e->arena, bool, e->reports.n + 1);
    for (size_t idx = 0; idx < e->formats.n; idx++) {
        const struct format *format = e->formats.items[idx];
        const struct rule *rules = format->rules;
        VEC_PUSH(&e->names, ((struct name){KIND_FORMAT, format->id.ptr, format, 0, NULL}));
        for (size_t at = 0; at < format->n_rules; at++) {
            VEC_PUSH(&e->names, ((struct name){KIND_RULE, rules[at].id.ptr, &rules[at], 0, NULL}));
        }
    }
    for (size_t idx = 0; idx < e->reports.n; idx++) {
        add_report(e, idx);
    }
    return 0;
}

/* ---- words ---- */

static const struct json_field WORD_ROWS[] = {
    ROW("kind", struct explained, kind, 0),
    ROW("name", struct explained, name, 0),
    ROW("level", struct explained, level, JSON_OMIT),
    ROW("title", struct explained, title, JSON_OMIT),
    ROW("text", struct explained, text, 0),
};

static void explain_word(struct explainer *e, const struct explained *word)
{
    if (e->args->want_json) {
        json_encode_object(&e->json, NULL, WORD_ROWS, ARRAY_LEN(WORD_ROWS), word);
        return;
    }
    strbuf_printf(e->text, "%s (%s%s%s)\n", word->name, word->kind, word->level ? ", " : "",
                  word->level ? word->level : "");
    if (word->title) {
        strbuf_printf(e->text, "    %s\n", word->title);
    }
    strbuf_printf(e->text, "    %s\n", word->text);
}

/* 129 to 192 are 128+n. */
static bool is_signal_status(const char *code)
{
    int64_t status = 0;
    return str_to_i64(str_of(code), 129, 192, &status, ERR_IGNORED) == 0;
}

/* code NULL: all. */
static size_t explain_words(struct explainer *e, const char *code)
{
    size_t n = 0;
    for (size_t idx = 0; idx < e->names.n; idx++) {
        const struct name *name = &e->names.items[idx];
        if (name->kind == KIND_WORD &&
            (!code || strcmp(name->id, code) == 0 ||
             (strcmp(name->id, "128+n") == 0 && is_signal_status(code)))) {
            explain_word(e, name->of);
            n++;
        }
    }
    return n;
}

/* ---- rules ---- */

/* The cells that this rule judges. */
static struct explain_users users_of(struct explainer *e, const struct name *name)
{
    struct explain_users users = {arena_array(e->arena, struct explain_user, e->names.n + 1), 0};
    for (size_t idx = 0; idx < e->names.n; idx++) {
        const struct name *at = &e->names.items[idx];
        const struct cell *cell = at->kind == KIND_CELL ? at->of : NULL;
        struct str used = cell ? cell_rule(at->of_case, cell) : STR_EMPTY;
        if (used.ptr && str_eq_z(used, name->id)) {
            users.items[users.n++] = (struct explain_user){&e->reports.items[at->report], cell};
        }
    }
    return users;
}

/* Text is made from a document of the item alone. */
static void explain_rule(struct explainer *e, const struct name *name)
{
    const struct explain_users users = users_of(e, name);
    if (e->args->want_json) {
        explain_put_rule(name->of, &users, &e->json);
        return;
    }
    strbuf_clear(&e->item);
    jw_begin(&e->json, &e->item, true);
    explain_put_rule(name->of, &users, &e->json);
    document_to_text(&e->item, e->args->is_verbose ? SIZE_MAX : ITEMS_SHOWN);
    strbuf_add_str(e->text, strbuf_str(&e->item));
}

/* ---- cells ---- */

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
    e->is_audited[idx] = true;
    return audit_report(e->arena, one.items, &e->formats, &opts, &e->audits[idx], err);
}

/* The lines of the samples that count, where the log itself was read and is there still. */
static int read_texts(struct explainer *e, struct explain_cell *of, struct err *err)
{
    const struct cell_audit *a = of->cell;
    of->texts = arena_array(e->arena, struct str *, a->n_logs + 1);
    for (size_t log = 0; log < a->n_logs; log++) {
        const struct trace_log *how = &of->how.logs[log];
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

static const char *cells_of(struct arena *arena, const struct report_case *c)
{
    const char *text = "";
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        text = arena_printf(arena, "%s%s%.*s", text, idx ? ", " : "", STR_ARG(c->cells[idx].id));
    }
    return text;
}

/* A case stands for its only cell. */
static int explain_cell(struct explainer *e, const struct name *name, struct err *err)
{
    const struct explain_opts opts = {.is_verbose = e->args->is_verbose};
    const struct report_audit *audited = &e->audits[name->report];
    const void *cell = name->kind == KIND_CELL ? name->of : name->of_case->cells;
    struct explain_cell of = {.report = &e->reports.items[name->report]};
    if (name->kind == KIND_CASE && name->of_case->n_cells > 1) {
        return err_set(err, ERR_USAGE, "%.100s is a case of %zu cells: %s", name->id,
                       name->of_case->n_cells, cells_of(e->arena, name->of_case));
    }
    if (audit(e, name->report, err) < 0) {
        return -1;
    }
    for (size_t at = 0; at < audited->n_cells; at++) {
        of.cell = audited->cells[at].cell == cell ? &audited->cells[at] : of.cell;
    }
    ASSERT(of.cell);
    trace_of(e->arena, of.cell, &of.how);
    if (read_texts(e, &of, err) < 0) {
        return -1;
    }
    if (e->args->want_json) {
        explain_cell_json(e->arena, &of, &e->json);
    } else {
        explain_cell_text(e->arena, &of, &opts, e->text);
    }
    return 0;
}

/* ---- one name ---- */

/* "REPORT/" and, as findings say it, "manifests/reports/REPORT.json:" may stand before the name of a cell or case. */
static size_t n_before(const struct explainer *e, const struct name *name, const char *wanted)
{
    const struct report *r = &e->reports.items[name->report];
    if (name->kind < KIND_CASE) {
        return 0;
    }
    return str_starts(str_of(wanted), r->id) && wanted[r->id.len] == '/'       ? r->id.len + 1
           : str_starts(str_of(wanted), r->path) && wanted[r->path.len] == ':' ? r->path.len + 1
                                                                               : 0;
}

static const char *nearest_of(struct explainer *e, const char *wanted, char text[NEAREST_TEXT_MAX])
{
    struct nearest nearest = nearest_to(wanted);
    for (size_t idx = 0; idx < e->names.n; idx++) {
        const struct name *at = &e->names.items[idx];
        nearest_offer(&nearest, arena_printf(e->arena, "%.*s%s", (int)n_before(e, at, wanted),
                                             wanted, at->id));
    }
    return nearest_text(&nearest, text);
}

static bool is_meant(const struct explainer *e, const struct name *at, const char *wanted,
                     bool is_glob)
{
    return is_glob
               ? at->kind == KIND_CELL && fnmatch(wanted, at->id, 0) == 0
               : at->kind >= KIND_CASE && (strcmp(at->id, wanted) == 0 ||
                                           strcmp(at->id, wanted + n_before(e, at, wanted)) == 0);
}

/* The cell of that name, or each that the pattern matches. */
static int explain_cells(struct explainer *e, const char *wanted, struct err *err)
{
    char text[NEAREST_TEXT_MAX];
    const struct name *found = NULL, *several = NULL;
    const char *in_reports = "";
    bool is_glob = strpbrk(wanted, "*?[");
    size_t n = 0;
    for (size_t idx = 0; idx < e->names.n; idx++) {
        const struct name *at = &e->names.items[idx];
        if (!is_meant(e, at, wanted, is_glob)) {
            continue;
        }
        if (is_glob && explain_cell(e, at, err) < 0) {
            return -1;
        }
        if (at->kind == KIND_CASE && at->of_case->n_cells > 1) {
            several = several ? several : at;
        } else if (!found || found->report != at->report) {
            in_reports = arena_printf(e->arena, "%s%s%.*s", in_reports, n++ ? ", " : "",
                                      STR_ARG(e->reports.items[at->report].id));
            found = at;
        }
    }
    if (is_glob && found) {
        return 0;
    }
    found = found ? found : several;
    return n > 1
               ? err_set(err, ERR_USAGE, "%.100s is a cell of %zu reports (%s): put one before it",
                         wanted, n, in_reports)
           : found ? explain_cell(e, found, err)
                   : err_set(err, ERR_USAGE,
                             "%.100s: no exit status, verdict, finding, event, cell or rule of "
                             "that name%s; reperf explain alone lists the words, reperf list rules "
                             "and cases the rest",
                             wanted, nearest_of(e, wanted, text));
}

/* *ret_n says how many of the operands it took: a report stands before a cell of it. */
static int explain(struct explainer *e, const char *const *items, size_t n, size_t *ret_n,
                   struct err *err)
{
    *ret_n = 1;
    if (explain_words(e, items[0]) > 0) {
        return 0;
    }
    if (add_manifests(e, err) < 0) {
        return -1;
    }
    strbuf_add_z(e->text, !e->args->want_json && e->text->len > 0 ? "\n" : "");
    for (size_t idx = 0; idx < e->names.n; idx++) {
        const struct name *at = &e->names.items[idx];
        if (at->kind > KIND_REPORT || strcmp(at->id, items[0]) != 0) {
            continue;
        }
        if (at->kind == KIND_FORMAT) {
            return err_set(err, ERR_USAGE,
                           "%s is a format: its file formats/%s.json says what it reads, and "
                           "reperf list rules what its rules do",
                           at->id, at->id);
        }
        if (at->kind == KIND_REPORT && n < 2) {
            return err_set(
                err, ERR_USAGE,
                "%s is a report: name a cell of it as well; reperf audit %s -v shows them", at->id,
                at->id);
        }
        if (at->kind == KIND_REPORT) {
            *ret_n = 2;
            return explain_cells(e, arena_printf(e->arena, "%s/%s", at->id, items[1]), err);
        }
        explain_rule(e, at);
        return 0;
    }
    return explain_cells(e, items[0], err);
}

int explain_names(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(explainer)
    struct explainer e = {.arena = call->arena, .ctx = ctx, .args = call->args, .text = call->out};
    strbuf_init(&e.item, call->out->cap_bytes);
    size_t taken = 0;
    add_words(&e);
    if (e.args->want_json) {
        jw_document(&e.json, call->out);
        jw_array(&e.json, "items");
    }
    for (size_t idx = 0; idx < call->operands.n; idx += taken) {
        if (explain(&e, call->operands.items + idx, call->operands.n - idx, &taken, err) < 0) {
            return -1;
        }
    }
    if (call->operands.n == 0) {
        (void)explain_words(&e, NULL);
    }
    if (e.args->want_json) {
        jw_end_array(&e.json);
        jw_end_object(&e.json);
        strbuf_add_char(call->out, '\n');
    }
    return 0;
}
