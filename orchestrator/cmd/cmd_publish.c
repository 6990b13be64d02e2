/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf publish`: sealed runs of one report as a folder that others audit, and reproduce by its address. Its report's numbers are those of
   the runs, its logs the raw ones, its recipes what ran; nothing is written that was not frozen or collected with the runs. */
#include "base/base.h"

#include <math.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/secret.h"
#include "cmd/cmd.h"
#include "codec/json_override.h"
#include "evidence/rundir.h"
#include "judge/number.h"
#include "view/page.h"
#include "view/run_view.h"

#define TEXT_MAX         (64u << 20)
#define LOG_MAX          (1u << 30)
#define PUBLISH_RUNS_MAX 64
#define OWN_LOGS         "logs"
#define CODE_INSIDE      "/published/code"
#define DIGITS           6 /* of a number */

struct publish_args {
    const char *output, *title, *files, *author;
};

static const struct opt OPTS[] = {
    OPT(struct publish_args, output, "output", "where it is written; not there yet, or empty",
        .letter = 'o', .value = "FOLDER"),
    OPT(struct publish_args, title, "title", "of the report (default: the run's)", .value = "TEXT"),
    OPT(struct publish_args, files, "files",
        "of a command's run: the files that it needs, which are published too", .value = "FOLDER"),
    OPT(struct publish_args, author, "author", "writes CITATION.cff", .value = "NAME"),
    OPT_END,
};

struct publish {
    struct arena *arena;
    const struct publish_args *args;
    const char *folder;
    struct run_view views[PUBLISH_RUNS_MAX];
    const char *archives[PUBLISH_RUNS_MAX];
    size_t n;
    struct strbuf cases; /* JSON */
    struct str report;   /* the frozen text, as it is changed */
    size_t n_cells;
    int64_t nodes, gpus; /* most of a case; GPUs of a node */
    uint64_t bytes;
};

static void publish_cleanup(struct publish *p)
{
    for (size_t idx = 0; idx < p->n; idx++) {
        run_view_close(&p->views[idx]);
    }
    strbuf_release(&p->cases);
}

/* The archives were filtered when they were sealed. */
static int check_secrets(const char *name, struct str text, struct err *err)
{
    CLEANUP(free) char *copy = xmalloc(text.len + 1);
    size_t at = 0;
    if (text.len == 0 || str_starts(str_of(name), STR_LIT("archives/"))) {
        return 0;
    }
    memcpy(copy, text.ptr, text.len);
    secret_hide(copy, text.len);
    while (at < text.len && copy[at] == text.ptr[at]) {
        at++;
    }
    return at == text.len
               ? 0
               : err_set(err, ERR_USAGE, "%s: what looks like a secret at byte %zu: not published",
                         name, at);
}

static int put_text(struct publish *p, const char *name, struct str text, struct err *err)
{
    const char *path = fs_join(p->arena, p->folder, name);
    char *slash = strrchr(path, '/');
    p->bytes += text.len;
    return check_secrets(name, text, err) < 0 ||
                   fs_mkdir_p(arena_strndup(p->arena, path, (size_t)(slash - path)), err) < 0
               ? -1
               : fs_write_atomic(path, text, err);
}

static int copy_file(struct publish *p, const char *from, const char *name, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str text;
    return fs_read(&arena, from, LOG_MAX, &text, err) < 0 ? -1 : put_text(p, name, text, err);
}

static int copy_folder(struct publish *p, const char *from, const char *name, struct err *err)
{
    struct fs_names names = {0};
    if (fs_is_dir(from) && fs_walk(p->arena, from, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        bool is_git = str_starts(str_of(names.items[idx]), STR_LIT(".git/"));
        if (!is_git && copy_file(p, fs_join(p->arena, from, names.items[idx]),
                                 fs_join(p->arena, name, names.items[idx]), err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- numbers ---- */

/* The format that reads the case's logs, with the rule that made the number: a rule of its own, or one for the engine that is added. */
static int put_format(struct publish *p, const struct run_view *view,
                      const struct cell_result *cell, const char **ret_rule, struct err *err)
{
    struct arena *arena = p->arena;
    const struct format *format = cell->step->bound.format;
    const struct rule *rule = cell->step->bound.rule;
    const char *log = fs_join(arena, view->folder, str_z(arena, cell->repeats[0].log));
    struct measurement *m = arena_new(arena, struct measurement);
    struct json_override set;
    struct str why = STR_EMPTY;
    struct str text;
    if ((!format && result_choose_format(arena, &view->frozen, log, &format, &why, err) < 0) ||
        run_view_log(arena, view, cell, 0, m, err) < 0) {
        return -1;
    }
    const char *id = str_z(arena, format_id(format));
    const char *name = arena_printf(arena, "manifests/formats/%s.json", id);
    const char *kept = fs_join(arena, p->folder, name);
    if (fs_read(arena,
                fs_exists(kept)
                    ? kept
                    : arena_printf(arena, "%s/manifest/formats/%s.json", view->folder, id),
                JSON_TEXT_MAX, &text, err) < 0) {
        return -1;
    }
    if (!rule) {
        const struct rule_case of = result_rule_case(&view->frozen, cell->step);
        rule = number_rule(format, measurement_primary(m), &of);
    }
    *ret_rule = rule ? str_z(arena, rule->id) : arena_printf(arena, "%s/measured", id);
    if (!rule && str_find(text, STR_LIT("\"measured\"")) < 0) {
        struct json_override old;
        if (json_override(arena, text, STR_LIT("rules=[]"), false, &old, err) < 0) {
            return -1;
        }
        struct str inside = str_trim(str_sub(old.was, 1, old.was.len - 2));
        const char *rules = arena_printf(arena,
                                         "rules=[%.*s%s{\"name\": \"measured\", \"series\": "
                                         "\"%.*s\", \"statistic\": \"engine\", "
                                         "\"repeats\": \"mean\", \"origin\": \"own\", \"source\": "
                                         "\"as reperf measure reads it\"}]",
                                         STR_ARG(inside), inside.len ? ", " : "",
                                         STR_ARG(measurement_primary(m)->name));
        if (json_override(arena, text, str_of(rules), false, &set, err) < 0) {
            return -1;
        }
        text = set.text;
    }
    if (format_is_proposed(format)) { /* whoever ran it named it */
        if (json_override(arena, text, STR_LIT("proposed=false"), false, &set, err) < 0) {
            return -1;
        }
        text = set.text;
    }
    return put_text(p, name, text, err);
}

static void put_conditions(struct json_out *out, const struct condition *items, size_t n)
{
    jw_object(out, "conditions");
    for (size_t idx = 0; idx < n; idx++) {
        jw_str(out, items[idx].name.ptr, items[idx].value);
    }
    jw_end_object(out);
}

static int put_logs(struct publish *p, const struct run_view *view, const struct cell_result *cell,
                    struct json_out *out, struct err *err)
{
    jw_array(out, "logs");
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        const char *log = str_z(p->arena, cell->repeats[idx].log);
        const char *name =
            arena_printf(p->arena, "%.*s/repeat-%lld.log", STR_ARG(cell->of_case->id),
                         (long long)cell->repeats[idx].repeat);
        if (copy_file(p, fs_join(p->arena, view->folder, log), fs_join(p->arena, OWN_LOGS, name),
                      err) < 0) {
            return -1;
        }
        jw_z(out, NULL, name);
    }
    jw_end_array(out);
    return 0;
}

static int put_case(struct publish *p, const struct run_view *view, const struct cell_result *cell,
                    struct err *err)
{
    const struct report_case *c = cell->of_case;
    struct json_out out;
    const char *rule = NULL;
    int decimals = DIGITS - 1 - (int)floor(log10(fabs(cell->value)));
    if (put_format(p, view, cell, &rule, err) < 0) {
        return -1;
    }
    struct str format = rule_id_format(str_of(rule));
    strbuf_add_z(&p->cases, p->n_cells++ ? "," : "");
    jw_begin(&out, &p->cases, true);
    jw_object(&out, NULL);
    jw_str(&out, "id", c->id);
    jw_str(&out, "stack", c->stack_id);
    jw_z(&out, "environment", "measured");
    jw_str(&out, "group", c->stack_id);
    jw_str(&out, "format", format);
    jw_z(&out, "rule", rule);
    jw_null(&out, "baseline");
    if (put_logs(p, view, cell, &out, err) < 0) {
        return -1;
    }
    put_conditions(&out, c->conditions.items, c->conditions.n);
    jw_array(&out, "cells");
    jw_object(&out, NULL);
    jw_z(&out, "cell", arena_printf(p->arena, "%.*s#throughput", STR_ARG(c->id)));
    jw_z(&out, "metric", "throughput");
    jw_z(&out, "printed", arena_printf(p->arena, "%.*f", decimals > 0 ? decimals : 0, cell->value));
    jw_str(&out, "unit", cell->unit);
    jw_z(&out, "table", "measured");
    jw_null(&out, "derive");
    jw_null(&out, "rule");
    jw_null(&out, "format");
    jw_array(&out, "also_printed");
    jw_end_array(&out);
    jw_end_object(&out);
    jw_end_array(&out);
    jw_end_object(&out);
    p->nodes = c->nodes > p->nodes ? c->nodes : p->nodes;
    p->gpus = c->gpus_per_node > p->gpus ? c->gpus_per_node : p->gpus;
    return 0;
}

/* Of several runs the first that has a number for a case gives it. */
static bool is_taken(const struct publish *p, size_t view, const struct cell_result *cell)
{
    for (size_t idx = 0; idx < view; idx++) {
        const struct run_result *result = &p->views[idx].result;
        for (size_t at = 0; at < result->n_cells; at++) {
            if (str_eq(result->cells[at].of_case->id, cell->of_case->id) &&
                isfinite(result->cells[at].value)) {
                return true;
            }
        }
    }
    return false;
}

static int put_cases(struct publish *p, struct err *err)
{
    for (size_t idx = 0; idx < p->n; idx++) {
        const struct run_view *view = &p->views[idx];
        for (size_t at = 0; at < view->result.n_cells; at++) {
            const struct cell_result *cell = &view->result.cells[at];
            bool is_rate = unit_is(view->frozen.vocabulary, cell->unit, "rate");
            if (!isfinite(cell->value) || is_taken(p, idx, cell)) {
                continue;
            }
            if (!is_rate) {
                log_line(LOG_WARN, "%.*s: %.*s is no rate, and is not published",
                         STR_ARG(cell->of_case->id), STR_ARG(cell->unit));
            } else if (put_case(p, view, cell, err) < 0) {
                return -1;
            }
        }
    }
    return p->n_cells ? 0 : err_set(err, ERR_USAGE, "no case of these runs has a rate to publish");
}

/* ---- the report ---- */

/* As JSON writes it. */
static const char *json_text(struct arena *arena, const char *value)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    struct json_out out;
    strbuf_init(&text, TEXT_MAX);
    jw_begin(&out, &text, true);
    jw_array(&out, NULL);
    jw_z(&out, NULL, value);
    jw_end_array(&out);
    struct str whole = str_trim(strbuf_str(&text));
    return str_z(arena, str_sub(whole, 1, whole.len - 2));
}

static int set(struct publish *p, const char *setting, struct err *err)
{
    struct json_override change;
    if (json_override(p->arena, p->report, str_of(setting), false, &change, err) < 0) {
        return -1;
    }
    p->report = change.text;
    return 0;
}

static int set_environment(struct publish *p, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    const struct frozen *frozen = &p->views[0].frozen;
    struct json_out out;
    strbuf_init(&text, TEXT_MAX);
    strbuf_add_z(&text, "environments=[");
    jw_begin(&out, &text, true);
    jw_object(&out, NULL);
    jw_z(&out, "id", "measured");
    jw_z(&out, "title", "where it was measured");
    jw_i64(&out, "nodes", p->nodes);
    jw_i64(&out, "gpus_per_node", p->gpus);
    put_conditions(&out, frozen->machine, frozen->n_machine);
    jw_null(&out, "source");
    jw_end_object(&out);
    strbuf_add_z(&text, "]");
    return set(p, str_z(p->arena, strbuf_str(&text)), err);
}

/* A command of one's own started in a folder of its author's: here its files are an overlay. */
static int set_command(struct publish *p, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    const struct frozen *frozen = &p->views[0].frozen;
    const struct stack *stack = &frozen->report.stacks[0];
    struct json_out out;
    if (!str_eq_z(stack->id, "command")) {
        return p->args->files ? err_set(err, ERR_USAGE, "--files is for a run of a command") : 0;
    }
    if (!p->args->files) {
        return err_set(err, ERR_USAGE,
                       "the run is of a command (%.*s): --files FOLDER names the files that it "
                       "needs; without them nobody can repeat it",
                       STR_ARG(stack->commands[0].printed));
    }
    strbuf_init(&text, TEXT_MAX);
    strbuf_add_z(&text, "stacks[command].full=[");
    jw_begin(&out, &text, true);
    jw_object(&out, NULL);
    jw_z(&out, "title", "the command, in the folder of its files");
    if (stack->image.ptr) {
        jw_str(&out, "image", stack->image);
    }
    jw_array(&out, "mounts");
    jw_object(&out, NULL);
    jw_z(&out, "kind", "overlay");
    jw_z(&out, "name", "code");
    jw_z(&out, "inside", CODE_INSIDE);
    jw_end_object(&out);
    jw_end_array(&out);
    put_conditions(&out, stack->full.items[0].conditions.items, stack->full.items[0].conditions.n);
    jw_end_object(&out);
    strbuf_add_z(&text, "]");
    const char *works =
        arena_printf(p->arena, "stacks[command].commands[0].works=%s",
                     json_text(p->arena, arena_printf(p->arena, "cd " CODE_INSIDE " && exec %.*s",
                                                      STR_ARG(stack->commands[0].printed))));
    if (set(p, str_z(p->arena, strbuf_str(&text)), err) < 0) {
        return -1;
    }
    return set(p, works, err) < 0 ? -1
                                  : copy_folder(p, p->args->files, "manifests/overlays/code", err);
}

static int put_report(struct publish *p, struct err *err)
{
    const struct run_view *view = &p->views[0];
    const char *id = str_z(p->arena, view->frozen.report.id);
    const char *title = p->args->title ? p->args->title : view->frozen.report.title.ptr;
    if (fs_read(p->arena, fs_join(p->arena, view->folder, "manifest/report.json"), JSON_TEXT_MAX,
                &p->report, err) < 0) {
        return -1;
    }
    return set(p, arena_printf(p->arena, "title=%s", json_text(p->arena, title)), err) < 0 ||
                   set(p, "unpublished=false", err) < 0 || set(p, "source=null", err) < 0 ||
                   set(p, "logs=null", err) < 0 || set(p, "own_logs=\"" OWN_LOGS "\"", err) < 0 ||
                   set_environment(p, err) < 0 || set_command(p, err) < 0 ||
                   set(p, arena_printf(p->arena, "cases=[%.*s]", (int)p->cases.len, p->cases.ptr),
                       err) < 0
               ? -1
               : put_text(p, arena_printf(p->arena, "manifests/reports/%s.json", id), p->report,
                          err);
}

/* ---- the rest ---- */

static int put_archives(struct publish *p, struct err *err)
{
    for (size_t idx = 0; idx < p->n; idx++) {
        const struct run_view *view = &p->views[idx];
        const char *name =
            arena_printf(p->arena, "archives/%.*s.tar.zst", STR_ARG(view->frozen.run_id));
        if (copy_file(p, p->archives[idx], name, err) < 0 ||
            copy_folder(p, fs_join(p->arena, view->folder, "manifest/overlay"),
                        "manifests/overlays", err) < 0) {
            return -1;
        }
    }
    return 0;
}

static void add_readme(struct publish *p, struct strbuf *out)
{
    const struct run_view *first = &p->views[0];
    strbuf_printf(out, "# %s\n\n",
                  p->args->title ? p->args->title : first->frozen.report.title.ptr);
    for (size_t idx = 0; idx < p->n; idx++) {
        run_out_markdown(&p->views[idx], out);
        strbuf_add_char(out, '\n');
    }
    strbuf_add_z(out,
                 "## Reproduce it\n\n```sh\nreperf run URL@COMMIT --nodes INVENTORY   # this "
                 "repository's address and commit; --trust COMMIT\nreperf audit .   # the numbers "
                 "again, from the raw logs in logs/\nreperf verify archives/RUN.tar.zst --key "
                 "PUBLIC_KEY\n```\n\nA key that lies beside its archive proves nothing about who "
                 "signed it: take the key's fingerprint from somewhere else.\n\n");
    strbuf_printf(out,
                  "%" PRIu64 " bytes: logs/ (raw logs), archives/ (the sealed runs, with all "
                  "conditions), manifests/ (report, formats, files that run), index.html\n",
                  p->bytes);
}

static int put_rest(struct publish *p, struct err *err)
{
    static const char CI[] =
        "# Put reperf in PATH first: it is built from its repository with `make deb`.\n"
        "name: audit\non: [push]\njobs:\n  audit:\n    runs-on: ubuntu-latest\n    steps:\n"
        "      - uses: actions/checkout@v4\n      - run: reperf audit . && reperf lint .\n";
    CLEANUP(strbuf) struct strbuf text = {0};
    CLEANUP(strbuf) struct strbuf page = {0};
    strbuf_init(&text, TEXT_MAX);
    strbuf_init(&page, TEXT_MAX);
    if (page_run(&page, &p->views[0], err) < 0 ||
        put_text(p, "index.html", strbuf_str(&page), err) < 0 ||
        put_text(p, ".github/workflows/audit.yml", STR_LIT(CI), err) < 0) {
        return -1;
    }
    if (p->args->author) {
        strbuf_printf(&text,
                      "cff-version: 1.2.0\nmessage: Please cite this report.\ntitle: \"%.*s\"\n"
                      "authors:\n  - name: \"%s\"\n",
                      STR_ARG(p->views[0].frozen.report.id), p->args->author);
        if (put_text(p, "CITATION.cff", strbuf_str(&text), err) < 0) {
            return -1;
        }
        strbuf_clear(&text);
    }
    add_readme(p, &text);
    return put_text(p, "README.md", strbuf_str(&text), err);
}

static int open_runs(const struct cmd_ctx *ctx, const struct opt_list *names, struct publish *p,
                     struct err *err)
{
    for (size_t idx = 0; idx < names->n; idx++) {
        struct run_view *view = &p->views[p->n];
        struct rundir dir;
        if (run_view_open(p->arena, ctx->clock, ctx->state, names->items[idx], view, err) < 0) {
            return -1;
        }
        p->n++;
        if (view->frozen.plan.profile != PROFILE_FULL || view->frozen.plan.is_rehearsal) {
            return err_set(
                err, ERR_USAGE, "%s: a %s claims no number: there is nothing to publish",
                names->items[idx],
                plan_kind_name(view->frozen.plan.profile, view->frozen.plan.is_rehearsal));
        }
        if (!str_eq(view->frozen.report_sha256, p->views[0].frozen.report_sha256)) {
            return err_set(err, ERR_USAGE, "%s and %s are of two reports", names->items[0],
                           names->items[idx]);
        }
        if (view->is_archive) {
            p->archives[idx] = names->items[idx];
        } else {
            rundir_paths(p->arena, ctx->state, view->frozen.run_id, &dir);
            p->archives[idx] = dir.archive;
        }
    }
    return 0;
}

static int check_output(struct arena *arena, const char *folder, struct err *err)
{
    struct fs_names names = {0};
    if (!folder) {
        return err_set(err, ERR_USAGE, "publish: -o FOLDER says where");
    }
    if (fs_is_dir(folder) && fs_list(arena, folder, &names, err) < 0) {
        return -1;
    }
    return names.n == 0 ? 0 : err_set(err, ERR_USAGE, "%s: not empty", folder);
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list names = {0};
    CLEANUP(publish) struct publish p = {.arena = &arena};
    struct publish_args args = {0};
    if (opt_parse(OPTS, argc, argv, &args, &names, err) < 0 ||
        check_output(&arena, args.output, err) < 0) {
        return -1;
    }
    if (names.n == 0 || names.n > PUBLISH_RUNS_MAX) {
        return err_set(err, ERR_USAGE, "publish: expected 1 to %d runs, found %zu",
                       PUBLISH_RUNS_MAX, names.n);
    }
    p.args = &args;
    p.folder = args.output;
    strbuf_init(&p.cases, TEXT_MAX);
    if (open_runs(ctx, &names, &p, err) < 0 || put_cases(&p, err) < 0 || put_report(&p, err) < 0 ||
        put_archives(&p, err) < 0 || put_rest(&p, err) < 0) {
        return -1;
    }
    log_line(LOG_INFO,
             "%s: %zu numbers, %" PRIu64 " bytes; git init, commit and push it, then "
             "anybody runs URL@COMMIT",
             args.output, p.n_cells, p.bytes);
    return 0;
}

const struct cmd CMD_PUBLISH = {
    "publish", "RUN...", "a folder that others audit, and reproduce by its address", OPTS, run};
