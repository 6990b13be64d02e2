/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/publication.h"

#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/table.h"
#include "codec/json_override.h"
#include "codec/unpack_filter.h"
#include "evidence/code.h"
#include "evidence/rundir.h"
#include "evidence/verify_archive.h"
#include "judge/number.h"
#include "judge/stats.h"
#include "load/audit_logs.h"
#include "load/load.h"
#include "load/log_reader.h"
#include "load/measure.h"
#include "run/run_address.h"
#include "store/copy_file.h"
#include "store/dataset_store.h"
#include "view/audit_out.h"
#include "view/run_view.h"

#define TEXT_MAX      (64u << 20)
#define LOG_PLAIN_MAX (1u << 20) /* a longer log is compressed */
#define OWN_LOGS      "logs"
#define PACKED        ".log.zst"
#define MEASURED      "measured"
#define CODE_INSIDE   "/published/code"
#define NUMBER_DIGITS 6 /* of a number */
#define NAMED_MAX     10

struct publication {
    struct arena *arena;
    const struct publication_opts *opts;
    const char *folder;
    struct run_view views[PUBLICATION_RUNS_MAX];
    const char *archives[PUBLICATION_RUNS_MAX];
    size_t n;
    struct report report;                    /* the frozen one, as it is changed */
    const struct cell_result *of[CASES_MAX]; /* of each of its cases */
    struct environment where;                /* its nodes and GPUs: the most of a case */
};

static void publication_cleanup(struct publication *p)
{
    for (size_t idx = 0; idx < p->n; idx++) {
        run_view_close(&p->views[idx]);
    }
}

/* ---- files ---- */

static int put_text(struct publication *p, const char *name, struct str text, struct err *err)
{
    const char *path = fs_join(p->arena, p->folder, name);
    return fs_mkdir_above(path, err) < 0 ? -1 : fs_write_atomic(path, text, err);
}

/* Several runs of one report have the same overlays. */
static int put_file(struct publication *p, const char *from, const char *name, struct err *err)
{
    const char *to = fs_join(p->arena, p->folder, name);
    if (fs_exists(to)) {
        return 0;
    }
    return !str_ends(str_of(name), STR_LIT(PACKED)) ? copy_file(from, to, NULL, err)
           : fs_mkdir_above(to, err) < 0            ? -1
                                                    : pack_raw(from, to, err);
}

static bool is_git(struct str name)
{
    return str_starts(name, STR_LIT(".git/")) || str_find(name, STR_LIT("/.git/")) >= 0;
}

static int put_folder(struct publication *p, const char *from, const char *name, struct err *err)
{
    struct fs_names names = {0};
    if (fs_is_dir(from) && fs_walk(p->arena, from, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (!is_git(str_of(names.items[idx])) &&
            put_file(p, fs_join(p->arena, from, names.items[idx]),
                     fs_join(p->arena, name, names.items[idx]), err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A log may be longer than memory: of the mapped file, only the pages with a secret are copied. */
static int check_secrets(const char *path, const char *name, struct err *err)
{
    CLEANUP(fd) int fd = -1; /* of a packed log: of what it holds */
    struct stat st;
    size_t at = 0;
    if (log_open(path, &fd, err) < 0) {
        return -1;
    }
    size_t len = fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
    const char *text = mmap(NULL, len + 1, PROT_READ, MAP_PRIVATE, fd, 0);
    char *copy = mmap(NULL, len + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (text == MAP_FAILED || copy == MAP_FAILED) {
        return err_errno(err, "read", path);
    }
    secret_hide(copy, len);
    while (at < len && copy[at] == text[at]) {
        at++;
    }
    (void)munmap((void *)(uintptr_t)text, len + 1);
    (void)munmap(copy, len + 1);
    return at == len ? 0
                     : err_set(err, ERR_USAGE,
                               "%s: what looks like a secret at byte %zu: not published", name, at);
}

/* All that was written; the archives were filtered when they were sealed. */
static int check_files(const struct publication *p, uint64_t *ret_bytes, struct err *err)
{
    struct fs_names names;
    *ret_bytes = 0;
    if (fs_walk(p->arena, p->folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        const char *path = fs_join(p->arena, p->folder, names.items[idx]);
        struct stat st;
        if (!str_starts(str_of(names.items[idx]), STR_LIT("archives/")) &&
            check_secrets(path, names.items[idx], err) < 0) {
            return -1;
        }
        *ret_bytes += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    }
    return 0;
}

/* ---- numbers ---- */

/* The format that reads the case's logs, with the rule that made the number: one of its own, or one that says so. */
static int put_format(struct publication *p, const struct run_view *view,
                      const struct cell_result *cell, const char **ret_rule, struct err *err)
{
    struct arena *arena = p->arena;
    const struct format *format = cell->step->bound.format;
    const struct rule *rule = cell->step->bound.rule;
    const char *log = fs_join(arena, view->folder, str_z(arena, cell->repeats[0].log));
    struct measurement *m = arena_new(arena, struct measurement);
    const char *settings[2] = {0};
    struct json_override set;
    struct str why = STR_EMPTY;
    struct str text;
    if (!format && result_choose_format(arena, &view->frozen, log, &format, &why, err) < 0) {
        return -1;
    }
    if (!format) {
        return err_set(err, ERR_PARSE, "%s: %.*s", log, STR_ARG(why));
    }
    if (measure_file(arena, &(struct reading){.format = format, .path = log}, m, NULL, err) < 0) {
        return -1;
    }
    const char *id = str_z(arena, format->id);
    const char *frozen = arena_printf(arena, "%s/manifest/formats/%s.json", view->folder, id);
    if (fs_read(arena, frozen, JSON_TEXT_MAX, &text, err) < 0) {
        return -1;
    }
    if (!rule) {
        const struct rule_case of = result_rule_case(&view->frozen, cell->step);
        rule = number_rule(format, measurement_primary(m), &of);
    }
    *ret_rule = rule ? str_z(arena, rule->id) : arena_printf(arena, "%s/" MEASURED, id);
    if (!rule) {
        settings[0] = arena_printf(
            arena,
            "rules=[{\"name\": \"" MEASURED "\", \"series\": \"%.*s\", \"statistic\": \"engine\", "
            "\"repeats\": \"mean\", \"origin\": \"own\", \"source\": \"as reperf measure reads "
            "it\"}]",
            STR_ARG(measurement_primary(m)->name));
    }
    settings[1] = format->is_proposed ? "proposed=false" : NULL; /* whoever ran it named it */
    for (size_t idx = 0; idx < ARRAY_LEN(settings); idx++) {
        if (settings[idx] &&
            json_override(arena, text, str_of(settings[idx]), false, &set, err) < 0) {
            return -1;
        }
        text = settings[idx] ? set.text : text;
    }
    return put_text(p, arena_printf(arena, "manifests/formats/%s.json", id), text, err);
}

static int put_logs(struct publication *p, const struct run_view *view,
                    const struct cell_result *cell, struct report_case *c, struct err *err)
{
    c->logs = arena_array(p->arena, struct str, cell->n_repeats + 1);
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        const char *log = fs_join(p->arena, view->folder, str_z(p->arena, cell->repeats[idx].log));
        struct stat st;
        const char *name =
            arena_printf(p->arena, "%.*s/repeat-%lld%s", STR_ARG(cell->of_case->id),
                         (long long)cell->repeats[idx].repeat,
                         stat(log, &st) == 0 && st.st_size > LOG_PLAIN_MAX ? PACKED : ".log");
        if (put_file(p, log, fs_join(p->arena, OWN_LOGS, name), err) < 0) {
            return -1;
        }
        c->logs[c->n_logs++] = str_of(name);
    }
    return 0;
}

/* The description of a dataset that a case was given, if it is what it was then; list: what its list of files was, or NULL. */
static int put_dataset(struct publication *p, struct str id, struct str list, struct err *err)
{
    const char *name = arena_printf(p->arena, "%.*s", STR_ARG(id));
    struct dataset_here here;
    if (dataset_load(p->arena, &(struct dataset_which){p->opts->ctx->root, NULL, name, false},
                     &here, err) < 0) {
        return -1;
    }
    if (list.ptr && here.dataset.has_list_sha256 &&
        !str_eq(list, hex_dup(p->arena, here.dataset.list_sha256, SHA256_BYTES))) {
        return err_set(err, ERR_INTEGRITY,
                       "dataset %s: its description has changed since the run: the digest of its "
                       "list of files was %.*s",
                       name, STR_ARG(list));
    }
    return (here.from && put_dataset(p, here.from->dataset.id, STR_EMPTY, err) < 0)
               ? -1
               : put_folder(p, here.folder, fs_join(p->arena, "manifests/datasets", name), err);
}

static int put_datasets(struct publication *p, const struct run_view *view,
                        const struct plan_step *step, struct err *err)
{
    const struct plan_data *data = &view->frozen.plan.data;
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        struct str id = step->mounts[idx].name;
        bool is_synthetic = str_ends(id, STR_LIT(DATASET_SYNTHETIC_SUFFIX));
        id.len -= is_synthetic ? strlen(DATASET_SYNTHETIC_SUFFIX) : 0;
        if (step->mounts[idx].kind == MOUNT_DATASET &&
            put_dataset(p, id, is_synthetic ? STR_EMPTY : step->mounts[idx].version, err) < 0) {
            return -1;
        }
    }
    return data->folder.ptr ? put_dataset(p, data->dataset,
                                          data->is_synthetic ? STR_EMPTY : data->source_sha256, err)
                            : 0;
}

static int put_case(struct publication *p, const struct run_view *view,
                    const struct cell_result *cell, struct err *err)
{
    const struct report_case *was = cell->of_case;
    struct report_case *c = &p->report.cases[p->report.n_cases];
    struct cell *number = arena_new(p->arena, struct cell);
    const char *rule = NULL;
    p->of[p->report.n_cases++] = cell;
    int decimals = NUMBER_DIGITS - 1 - (int)floor(log10(fabs(cell->value)));
    if (put_format(p, view, cell, &rule, err) < 0) {
        return -1;
    }
    *number = (struct cell){
        .id = str_printf(p->arena, "%.*s#throughput", STR_ARG(was->id)),
        .metric_name = STR_LIT("throughput"),
        .printed = str_printf(p->arena, "%.*f", decimals > 0 ? decimals : 0, cell->value),
        .unit = cell->unit,
        .table = STR_LIT(MEASURED)};
    *c = (struct report_case){.id = was->id,
                              .stack_id = was->stack_id,
                              .environment_id = STR_LIT(MEASURED),
                              .group = was->stack_id,
                              .format = rule_id_format(str_of(rule)),
                              .rule = str_of(rule),
                              .conditions = was->conditions,
                              .cells = number,
                              .n_cells = 1};
    p->where.nodes = was->nodes > p->where.nodes ? was->nodes : p->where.nodes;
    p->where.gpus_per_node =
        was->gpus_per_node > p->where.gpus_per_node ? was->gpus_per_node : p->where.gpus_per_node;
    return put_datasets(p, view, cell->step, err) < 0 ? -1 : put_logs(p, view, cell, c, err);
}

/* The first of the runs that has a number for a case gives it. */
static int put_cases(struct publication *p, struct err *err)
{
    for (size_t idx = 0; idx < p->n; idx++) {
        const struct run_view *view = &p->views[idx];
        for (size_t at = 0; at < view->result.n_cells; at++) {
            const struct cell_result *cell = &view->result.cells[at];
            bool is_rate = unit_is(view->frozen.vocabulary, cell->unit, "rate");
            if (!isfinite(cell->value) ||
                STR_NAMED(p->report.cases, p->report.n_cases, id, cell->of_case->id)) {
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
    return p->report.n_cases
               ? 0
               : err_set(err, ERR_USAGE, "no case of these runs has a rate to publish");
}

/* ---- the report ---- */

static void say_names(const struct publication *p, enum log_level level, const char *what,
                      const struct str *names, size_t n)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    for (size_t idx = 0; idx < n && idx < NAMED_MAX; idx++) {
        strbuf_add_z(&text, idx ? ", " : "");
        strbuf_add_plain(&text, names[idx]);
    }
    if (n > NAMED_MAX) {
        strbuf_printf(&text, " and %zu more", n - NAMED_MAX);
    }
    if (n) {
        log_line(level, "%s: %s: %s", p->opts->files, what, text.ptr);
    }
}

/* The files that are published with a command are those that made its number: by the digests that its runs noted. */
static int check_code(const struct publication *p, struct err *err)
{
    const struct clock_src clock = p->opts->ctx->clock;
    struct str *untracked;
    size_t n;
    struct code code;
    if (!fs_is_dir(p->opts->files)) {
        return err_set(err, ERR_USAGE, "--files %s: expected a folder", p->opts->files);
    }
    for (size_t idx = 0; idx < p->n; idx++) {
        if (code_load(p->arena, p->views[idx].folder, &code, err) < 0 ||
            code_check(p->arena, clock, &code, p->opts->files, err) < 0) {
            return err_wrap(err, "--files %s", p->opts->files);
        }
    }
    if (code_untracked(p->arena, clock, p->opts->files, &untracked, &n, err) < 0) {
        return -1;
    }
    size_t n_published = 0;
    for (size_t idx = 0; idx < n; idx++) {
        if (!is_git(untracked[idx])) {
            untracked[n_published++] = untracked[idx];
        }
    }
    say_names(p, LOG_WARN, "git does not have these, and they are published", untracked,
              n_published);
    return 0;
}

/* A command of one's own started in a folder of its author's: here its files are an overlay. */
static int put_command(struct publication *p, struct err *err)
{
    struct stack *stack = &p->report.stacks[0];
    /* Where it was published before, it has them. */
    if (!str_eq_z(stack->id, COMMAND_STACK) || stack->full.items[0].n_mounts > 0) {
        return p->opts->files ? err_set(err, ERR_USAGE, "--files is for a run of a command") : 0;
    }
    struct str typed = stack->commands[0].printed;
    if (!p->opts->files) {
        return err_set(err, ERR_USAGE,
                       "the run is of a command (%.*s): --files FOLDER names the files that it "
                       "needs; without them nobody can repeat it",
                       STR_ARG(typed));
    }
    struct recipe_mount *code = arena_new(p->arena, struct recipe_mount);
    *code = (struct recipe_mount){
        .kind = MOUNT_OVERLAY, .name = STR_LIT("code"), .inside = STR_LIT(CODE_INSIDE)};
    stack->full.items[0].title = STR_LIT("the command, in the folder of its files");
    stack->full.items[0].mounts = code;
    stack->full.items[0].n_mounts = 1;
    stack->commands[0].works =
        str_printf(p->arena, "cd " CODE_INSIDE " && exec %.*s", STR_ARG(typed));
    struct fs_names files = {0};
    if (check_code(p, err) < 0 ||
        put_folder(p, p->opts->files, "manifests/overlays/code", err) < 0 ||
        fs_walk(p->arena, fs_join(p->arena, p->folder, "manifests/overlays/code"), &files, err) <
            0) {
        return -1;
    }
    struct str *names = arena_array(p->arena, struct str, files.n + 1);
    for (size_t idx = 0; idx < files.n; idx++) {
        names[idx] = str_of(files.items[idx]);
    }
    say_names(p, LOG_INFO, "published", names, files.n);
    return 0;
}

/* The frozen one, without its cases. */
static void begin_report(struct publication *p)
{
    const struct frozen *frozen = &p->views[0].frozen;
    p->report =
        (struct report){.id = frozen->report.id,
                        .title = p->opts->title ? str_of(p->opts->title) : frozen->report.title,
                        .stacks = frozen->report.stacks,
                        .n_stacks = frozen->report.n_stacks,
                        .cases = arena_array(p->arena, struct report_case, CASES_MAX),
                        .own_logs = STR_LIT(OWN_LOGS),
                        .environments = &p->where,
                        .n_environments = 1};
    p->where = (struct environment){.id = STR_LIT(MEASURED),
                                    .title = STR_LIT("where it was measured"),
                                    .conditions = {frozen->machine, frozen->n_machine}};
}

static int put_report(struct publication *p, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    json_encode_document(&text, REPORT_DOCUMENT.rows, REPORT_DOCUMENT.n_rows, &p->report);
    return put_text(p, arena_printf(p->arena, "manifests/reports/%.*s.json", STR_ARG(p->report.id)),
                    strbuf_str(&text), err);
}

/* ---- the rest ---- */

static int put_archives(struct publication *p, struct err *err)
{
    for (size_t idx = 0; idx < p->n; idx++) {
        const struct run_view *view = &p->views[idx];
        const char *name =
            arena_printf(p->arena, "archives/%.*s.tar.zst", STR_ARG(view->frozen.run_id));
        const char *lock = arena_printf(p->arena, "locks/%.*s.json", STR_ARG(view->frozen.run_id));
        if (put_file(p, p->archives[idx], name, err) < 0 ||
            put_file(p, fs_join(p->arena, view->folder, "lock/lock.json"), lock, err) < 0 ||
            put_folder(p, fs_join(p->arena, view->folder, "manifest/overlay"), "manifests/overlays",
                       err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The folder is read as anybody will read it. */
static int put_pages(struct publication *p, struct err *err)
{
    CLEANUP(format_set) struct format_set formats = {0};
    CLEANUP(strbuf) struct strbuf card = STRBUF(TEXT_MAX);
    CLEANUP(strbuf) struct strbuf page = STRBUF(TEXT_MAX);
    const struct cmd_ctx *ctx = p->opts->ctx;
    const struct audit_opts opts = {.root = ctx->root, .lint = p->opts->lint};
    struct address address;
    struct report report;
    struct report_audit audit;
    if (address_open(p->arena, ctx, true, fs_join(p->arena, p->folder, ""), &address, err) < 0 ||
        load_report(p->arena, ctx->root, address.report, &report, err) < 0 ||
        load_formats(p->arena, ctx->root, &formats, err) < 0 ||
        audit_report(p->arena, &report, &formats, &opts, &audit, err) < 0) {
        return err_wrap(err, "what was written to %s", p->folder);
    }
    report.path = str_sub(report.path, strlen(p->folder) + 1, report.path.len);
    audit_out_card(&audit, &card);
    audit_out_page(&(const struct audit_set){&audit, 1}, false, &page);
    return put_text(p, "picture.svg", strbuf_str(&card), err) < 0
               ? -1
               : put_text(p, "index.html", strbuf_str(&page), err);
}

static void add_table(const struct publication *p, struct strbuf *out)
{
    CLEANUP(table)
    struct table table = table_of("model|framework|precision|>GPUs|>batch per GPU|>value|>95 % "
                                  "interval|unit|>repeats");
    for (size_t idx = 0; idx < p->report.n_cases; idx++) {
        const struct report_case *c = p->of[idx]->of_case;
        const struct summary *of = &p->of[idx]->summary;
        TABLE_ADD(&table, c->model, c->stack->label, c->precision,
                  table_text_if(&table, c->gpus > 0, "%" PRId64, c->gpus),
                  table_text_if(&table, c->batch_per_gpu > 0, "%" PRId64, c->batch_per_gpu),
                  p->report.cases[idx].cells[0].printed,
                  of->n > 1 ? table_text(&table, "± %.2f %%",
                                         100 * stats_half95(of->std, of->n) / of->mean)
                            : STR_EMPTY,
                  p->of[idx]->unit, table_text(&table, "%zu", of->n));
    }
    table_render_markdown(&table, out);
}

static int put_readme(struct publication *p, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct strbuf *out = &text;
    strbuf_printf(out, "# %s\n\n![Printed numbers, and what their logs give](picture.svg)\n\n",
                  p->report.title.ptr);
    add_table(p, out);
    strbuf_add_z(out,
                 "\n## Reproduce it\n\n```sh\nreperf run URL@COMMIT --nodes INVENTORY   # this "
                 "repository's address and commit; --trust COMMIT\nreperf audit .   # the numbers "
                 "again, from the raw logs in logs/\n```\n\nA key that lies beside its archive "
                 "proves nothing about who "
                 "signed it: take the key's fingerprint from somewhere else.\n\n");
    for (size_t idx = 0; idx < p->n; idx++) {
        const struct verify_opts opts = {
            .path = p->archives[idx], .allows_unsigned = true, .is_bytes_only = true};
        struct verify_info info = {0};
        if (verify_archive(p->arena, &opts, &info, err) < 0) {
            return -1;
        }
        strbuf_printf(out, "- `reperf verify archives/%.*s.tar.zst %s`: %s%s\n",
                      STR_ARG(info.run_id), info.key_id[0] ? "--key PUBLIC_KEY" : "--unsigned",
                      info.key_id[0] ? "signed by the key of fingerprint\n  " : "not signed",
                      info.key_id);
    }
    strbuf_add_z(out,
                 "\nlogs/ (raw logs; a long one as .zst, which audit and measure read too),\n"
                 "archives/ (the sealed runs, with all conditions), locks/ (each file and image by "
                 "digest),\nmanifests/ (report, formats, files that run, datasets by their "
                 "digests), index.html.\n");
    return put_text(p, "README.md", strbuf_str(out), err);
}

static int put_citation(struct publication *p, struct err *err)
{
    const char *text = arena_printf(
        p->arena,
        "cff-version: 1.2.0\nmessage: Please cite this report.\ntitle: \"%.*s\"\nauthors:\n"
        "  - name: \"%s\"\n",
        STR_ARG(p->report.title), p->opts->author);
    return put_text(p, "CITATION.cff", str_of(text), err);
}

static int put_rest(struct publication *p, struct err *err)
{
    static const char CI[] =
        "# Put reperf in PATH first: it is built from its repository with `make deb`.\n"
        "name: audit\non: [push]\njobs:\n  audit:\n    runs-on: ubuntu-latest\n    steps:\n"
        "      - uses: actions/checkout@v4\n      - run: reperf audit . && reperf lint .\n";
    return put_text(p, ".github/workflows/audit.yml", STR_LIT(CI), err) < 0 ||
                   (p->opts->author && put_citation(p, err) < 0) || put_readme(p, err) < 0
               ? -1
               : 0;
}

static int open_runs(struct publication *p, struct err *err)
{
    const struct cmd_ctx *ctx = p->opts->ctx;
    const struct opt_list *names = p->opts->runs;
    for (size_t idx = 0; idx < names->n; idx++) {
        struct run_view *view = &p->views[p->n];
        const struct plan *plan = &view->frozen.plan;
        struct rundir dir;
        if (run_view_open(p->arena, ctx->clock, ctx->state, names->items[idx], view, err) < 0) {
            return -1;
        }
        rundir_paths(p->arena, ctx->state, view->frozen.run_id, &dir);
        p->archives[p->n++] = view->is_archive ? names->items[idx] : dir.archive;
        if (plan_claims_none(plan)) {
            return err_set(err, ERR_USAGE, "%s: a %s claims no number: there is nothing to publish",
                           names->items[idx], plan_kind_name(plan->profile, plan->is_rehearsal));
        }
        if (!str_eq(view->frozen.report_sha256, p->views[0].frozen.report_sha256)) {
            return err_set(err, ERR_USAGE, "%s and %s are of two reports", names->items[0],
                           names->items[idx]);
        }
    }
    return 0;
}

int publication_write(struct arena *arena, const struct publication_opts *opts,
                      size_t *ret_n_numbers, uint64_t *ret_bytes, struct err *err)
{
    CLEANUP(publication)
    struct publication p = {.arena = arena, .opts = opts, .folder = opts->output};
    struct fs_names names = {0};
    if (fs_is_dir(p.folder) && fs_list(arena, p.folder, &names, err) < 0) {
        return -1;
    }
    if (names.n) {
        return err_set(err, ERR_USAGE, "%s: not empty", p.folder);
    }
    if (open_runs(&p, err) < 0) {
        return -1;
    }
    begin_report(&p);
    /* The command's files first: what else is written is not among them, wherever it goes. */
    if (put_command(&p, err) < 0 || put_cases(&p, err) < 0 || put_report(&p, err) < 0 ||
        put_archives(&p, err) < 0 || put_pages(&p, err) < 0 || put_rest(&p, err) < 0 ||
        check_files(&p, ret_bytes, err) < 0) {
        fs_drop_tree(p.folder); /* what was written is of no use to anybody */
        return -1;
    }
    *ret_n_numbers = p.report.n_cases;
    return 0;
}
