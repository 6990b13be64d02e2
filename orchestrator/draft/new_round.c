/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "draft/new_round.h"

#include "base/fs.h"
#include "draft/round_report.h"
#include "load/load.h"
#include "load/series_bundle.h"
#include "load/series_list.h"
#include "store/git.h"
#include "sys/pool_lanes.h"
#include "sys/stop.h"

#define TABLE_BYTES_MAX  (64u << 20)
#define REPORT_BYTES_MAX (64u << 20)
#define NAME_PREFIX      "training_results_v"
#define REPORTS_FOLDER   "manifests/reports"
#define SERIES_FOLDER    "logs/published"

struct round_making {
    struct arena *arena;
    const struct cmd_ctx *ctx;
    const struct new_round_args *args;
    struct git git;
    struct round_report report;
    struct round_source from;
    struct lanes lanes;
};

/* ---- what git says of the folder ---- */

static int ask(const struct round_making *m, const char *const *args, struct str *ret_text,
               struct err *err)
{
    CLEANUP(strbuf) struct strbuf out;
    const struct git_call call = {.git_dir = fs_join(m->arena, m->args->folder, ".git"),
                                  .args = args};
    strbuf_init(&out, GIT_OUTPUT_MAX);
    if (git_must(&m->git, &call, &out, ERR_MANIFEST, err) < 0) {
        return err_wrap(err, "%s", m->args->folder);
    }
    *ret_text = str_dup(m->arena, strbuf_str(&out));
    return 0;
}

static void split_files(struct round_making *m, struct str names)
{
    struct str rest = names;
    struct str name;
    size_t n = 1;
    for (size_t idx = 0; idx < names.len; idx++) {
        n += names.ptr[idx] == '\0';
    }
    m->from.files = arena_array(m->arena, struct str, n);
    while (rest.len > 0 && str_next(&rest, '\0', &name)) {
        m->from.files[m->from.n_files++] = name;
    }
}

/* A page at the top that every such repository has. */
static struct str find_page(const struct round_making *m)
{
    for (size_t idx = 0; idx < m->from.n_files; idx++) {
        if (str_eq_z(m->from.files[idx], "LICENSE.md")) {
            return m->from.files[idx];
        }
    }
    return m->from.n_files ? m->from.files[0] : STR_LIT("none");
}

/* "https://.../training_results_v2.0.git": the folder below --logs, and the round. */
static int name_round(struct round_making *m, struct str url, struct err *err)
{
    struct str rest = url;
    struct str name = STR_EMPTY;
    struct round_report *report = &m->report;
    while (str_next(&rest, '/', &name)) {
    }
    name = str_ends(name, STR_LIT(".git")) ? str_sub(name, 0, name.len - 4) : name;
    if (!str_starts(name, STR_LIT(NAME_PREFIX)) || name.len == sizeof(NAME_PREFIX) - 1) {
        return err_set(err, ERR_MANIFEST,
                       "%s: expected a clone of " NAME_PREFIX "N, found \"%.*s\"", m->args->folder,
                       STR_ARG(url));
    }
    report->round = str_sub(name, sizeof(NAME_PREFIX) - 1, SIZE_MAX);
    report->id = str_of(arena_printf(m->arena, "mlperf-training-%.*s", STR_ARG(report->round)));
    report->source.path = str_dup(m->arena, name);
    return 0;
}

static int look_at_clone(struct round_making *m, struct err *err)
{
    struct str commit;
    struct str date;
    struct str url;
    struct str names;
    if (ask(m, GIT_ARGS("rev-parse", "HEAD"), &commit, err) < 0 ||
        ask(m, GIT_ARGS("show", "-s", "--format=%cs", "HEAD"), &date, err) < 0 ||
        ask(m, GIT_ARGS("config", "--get", "remote.origin.url"), &url, err) < 0 ||
        ask(m, GIT_ARGS("ls-tree", "-r", "-z", "--name-only", "HEAD"), &names, err) < 0) {
        return -1;
    }
    m->report.source = (struct source_ref){
        .repository = str_trim(url), .commit = str_trim(commit), .date = str_trim(date)};
    split_files(m, names);
    m->report.page = find_page(m);
    return name_round(m, m->report.source.repository, err);
}

/* ---- the table ---- */

static int read_rows(struct round_making *m, struct err *err)
{
    struct round_rows all = {0};
    struct round_row *rows;
    struct str text;
    size_t n = 0;
    if (fs_read(m->arena, m->args->results, TABLE_BYTES_MAX, &text, err) < 0 ||
        sha256_text(m->arena, text, &m->report.table_sha256, err) < 0 ||
        round_rows_read(m->arena, text, m->args->results, &all, err) < 0) {
        return -1;
    }
    rows = arena_array(m->arena, struct round_row, all.n + 1);
    for (size_t idx = 0; idx < all.n; idx++) {
        if (str_eq(all.items[idx].round, m->report.round)) {
            rows[n++] = all.items[idx];
        }
    }
    m->report.rows = rows;
    m->report.n = n;
    return n ? 0
             : err_set(err, ERR_MANIFEST, "%s: no result of round %.*s", m->args->results,
                       STR_ARG(m->report.round));
}

/* ---- what is written ---- */

static int write_series(struct round_making *m, struct err *err)
{
    const struct round_report *report = &m->report;
    const struct series_file **files =
        arena_array(m->arena, const struct series_file *, m->from.n_files + 1);
    const char *below = fs_join(m->arena, m->ctx->root, SERIES_FOLDER);
    const char *folder = fs_join(m->arena, below, report->id.ptr);
    size_t n = 0;
    for (size_t idx = 0; idx < report->n; idx++) {
        const struct submission *s = report->matches[idx].submission;
        for (size_t log = 0; s && s->n_absent == 0 && log < s->n_logs; log++) {
            struct series_file *file = arena_new(m->arena, struct series_file);
            if (!s->logs[log].measurement) {
                return err_set(err, ERR_PARSE, "%.*s", STR_ARG(s->logs[log].why));
            }
            *file = (struct series_file){.report = report->id,
                                         .log = s->logs[log].path,
                                         .sha256 = s->logs[log].sha256,
                                         .source = report->source,
                                         .measurement = *s->logs[log].measurement};
            files[n++] = file;
        }
    }
    if (n == 0) {
        return 0;
    }
    if (fs_mkdir_p(folder, err) < 0 ||
        series_bundle_write(fs_join(m->arena, folder, SERIES_BUNDLE_NAME), files, n, err) < 0) {
        return -1;
    }
    return series_list_write(m->arena, folder, &m->report.series_sha256, err);
}

static int write_report(const struct round_making *m, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    const char *folder = fs_join(m->arena, m->ctx->root, REPORTS_FOLDER);
    const char *path =
        fs_join(m->arena, folder, arena_printf(m->arena, "%s.json", m->report.id.ptr));
    strbuf_init(&text, REPORT_BYTES_MAX);
    round_report_write(m->arena, &m->report, &text);
    if (text.is_full) {
        return err_set(err, ERR_DISK, "%s: more than %u bytes", path, REPORT_BYTES_MAX);
    }
    return fs_mkdir_p(folder, err) < 0 ? -1 : fs_write_atomic(path, strbuf_str(&text), err);
}

static int print_summary(const struct round_making *m, struct err *err)
{
    const struct round_report *report = &m->report;
    size_t n_matched = 0;
    size_t n_absent = 0;
    size_t n_logs = 0;
    for (size_t idx = 0; idx < report->n; idx++) {
        const struct submission *s = report->matches[idx].submission;
        n_matched += s && s->n_absent == 0;
        n_absent += s && s->n_absent > 0;
        n_logs += s && s->n_absent == 0 ? s->n_logs : 0;
    }
    return cmd_print(str_of(arena_printf(m->arena,
                                         REPORTS_FOLDER "/%s.json: %zu results, %zu with their %zu "
                                                        "logs, %zu whose logs are absent\n",
                                         report->id.ptr, report->n, n_matched, n_logs, n_absent)),
                     err);
}

static int make(struct round_making *m, struct err *err)
{
    struct round round = {0};
    struct round_match *matches;
    struct report check;
    if (look_at_clone(m, err) < 0 || read_rows(m, err) < 0 ||
        round_read(m->arena, &m->from, &round, err) < 0) {
        return -1;
    }
    matches = arena_array(m->arena, struct round_match, m->report.n);
    round_match(m->arena, &round, m->report.rows, m->report.n, matches);
    m->report.matches = matches;
    if (write_series(m, err) < 0 || write_report(m, err) < 0 ||
        load_report(m->arena, m->ctx->root, m->report.id.ptr, &check, err) < 0) {
        return -1;
    }
    return print_summary(m, err);
}

int new_round(const struct cmd_ctx *ctx, const struct new_round_args *args, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *tmp = fs_join(&arena, ctx->store, "tmp");
    struct round_making m = {.arena = &arena,
                             .ctx = ctx,
                             .args = args,
                             .git = {.arena = &arena,
                                     .clock = ctx->clock,
                                     .tmp_folder = tmp,
                                     .should_stop = stop_is_asked},
                             .from = {.folder = args->folder, .root = ctx->root},
                             .lanes = pool_lanes()};
    m.from.lanes = &m.lanes;
    if (!args->results) {
        return err_set(err, ERR_USAGE, "new: --mlperf needs --results CSV");
    }
    if (!fs_is_dir(args->folder) || !fs_exists(args->results)) {
        return err_set(err, ERR_NOT_FOUND, "%s: not there",
                       fs_is_dir(args->folder) ? args->results : args->folder);
    }
    return fs_mkdir_p(tmp, err) < 0 ? -1 : make(&m, err);
}
