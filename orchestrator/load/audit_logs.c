/* SPDX-License-Identifier: Apache-2.0 */
/* Where the audit's measurements come from: raw logs below a folder, or the series kept in logs/published. */
#include "base/base.h"

#include "load/audit_logs.h"

#include "base/fs.h"
#include "load/kept_series.h"
#include "load/measure_many.h"

#define SERIES_FOLDER "logs/published"

struct log_source {
    struct arena *arena;
    const struct report *report;
    const struct format_set *formats;
    const struct audit_opts *opts;
    struct binding *binding;
    struct kept_series *kept; /* empty where there are none */
    const char *kept_path;
};

/* The kept series: of the program's reports in logs/published, of the user's next to their manifests; where the user's place is
   the manifests/ of another copy of the program, in that copy's. */
static const char *kept_folder(const struct log_source *in)
{
    if (!in->report->place.ptr) {
        return fs_join(in->arena, in->opts->root, SERIES_FOLDER);
    }
    const char *place = str_z(in->arena, in->report->place);
    const char *series = fs_join(in->arena, place, "series");
    const char *copy = fs_join(in->arena, place, "../" SERIES_FOLDER);
    return !fs_is_dir(series) && fs_is_dir(copy) ? copy : series;
}

static const char *series_folder(const struct log_source *in, const char *folder)
{
    return fs_join(in->arena, folder, str_z(in->arena, in->report->id));
}

/* A log that is missing, unreadable or not of its format becomes a finding later; any other error stops the audit. */
static int note_missing(struct audit_log *log, struct arena *arena, const struct err *what,
                        struct err *err)
{
    if (what->code != ERR_NOT_FOUND && what->code != ERR_PARSE) {
        return err_pass(err, what);
    }
    log->is_unreadable = what->code == ERR_PARSE;
    log->why = str_dup(arena, str_of(what->msg));
    return 0;
}

/* Below the folder that the manifest names, or below --logs itself: a copy of the repository under another name. */
static const char *raw_path(const struct log_source *in, const struct audit_log *log)
{
    struct arena *arena = in->arena;
    const char *path = fs_join(arena, in->opts->logs_folder, str_z(arena, log->ref.path));
    const char *bare = fs_join(arena, in->opts->logs_folder, str_z(arena, log->path));
    return !fs_exists(path) && fs_exists(bare) ? bare : path;
}

/* The absolute path where it was looked for: a relative one may mean another place than it seems. */
static struct str tried_path(const struct log_source *in, const struct audit_log *log)
{
    char *whole = realpath(in->opts->logs_folder, NULL);
    const char *path =
        fs_join(in->arena, whole ? whole : in->opts->logs_folder, str_z(in->arena, log->ref.path));
    free(whole);
    return str_of(in->opts->clone
                      ? arena_printf(in->arena, "commit %.*s of %s",
                                     STR_ARG(in->report->logs_source.commit), in->opts->clone)
                      : path);
}

/* After every log of the report has been measured. */
static int take_raw(struct log_source *in, struct audit_log *log, const struct measure_job *job,
                    struct err *err)
{
    if (!job->measurement) {
        log->tried = tried_path(in, log);
        return note_missing(log, in->arena, &job->err, err);
    }
    log->measurement = job->measurement;
    log->ref.sha256 = job->sha256;
    log->ref.file = str_of(job->path);
    const struct kept_log *kept = kept_series_find(in->kept, log->path, log->format);
    log->kept_sha256 = kept ? kept->sha256 : STR_EMPTY; /* without one nothing is claimed */
    return 0;
}

static int check_kept(const struct log_source *in, struct str sha256, struct err *err)
{
    const struct report *report = in->report;
    if (!report->series_sha256.ptr) {
        return err_set(err, ERR_MANIFEST, "%.*s: $.logs.series_sha256: no digest of %s",
                       STR_ARG(report->path), in->kept_path);
    }
    if (!str_eq(sha256, report->series_sha256)) {
        return err_set(err, ERR_INTEGRITY, "%s: expected sha256 %.*s as %.*s holds it, found %.*s",
                       in->kept_path, STR_ARG(report->series_sha256), STR_ARG(report->path),
                       STR_ARG(sha256));
    }
    return str_eq(in->kept->source.commit, report->logs_source.commit)
               ? 0
               : err_set(err, ERR_MANIFEST, "%s: expected the logs of commit %.*s, found %.*s",
                         in->kept_path, STR_ARG(report->logs_source.commit),
                         STR_ARG(in->kept->source.commit));
}

/* A report with published logs has its series kept. Where raw logs are read, it records their digests. */
static int read_kept(void *ctx, struct err *err)
{
    struct log_source *in = ctx;
    struct err what = {0};
    struct str sha256;
    in->kept_path = fs_join(in->arena, series_folder(in, kept_folder(in)), KEPT_SERIES_NAME);
    if (!in->report->logs_source.path.ptr || audit_count_logs(in->report) == 0) {
        return 0;
    }
    if (kept_series_read(in->arena, in->kept_path, in->kept, &sha256, &what) < 0) {
        /* A series that is not there is a finding. */
        return what.code == ERR_NOT_FOUND ? 0 : err_set(err, what.code, "%s", what.msg);
    }
    return in->opts->logs_folder ? 0 : check_kept(in, sha256, err);
}

static int read_all_raw(struct log_source *in, struct err *err)
{
    const struct binding *b = in->binding;
    struct measure_job *jobs = arena_array(in->arena, struct measure_job, b->n_logs + 1);
    const struct measure_with with = {.formats = in->formats,
                                      .root = in->opts->root,
                                      .lanes = in->opts->lanes,
                                      .first = read_kept,
                                      .ctx = in};
    for (size_t idx = 0; idx < b->n_logs; idx++) {
        const struct audit_log *log = b->logs[idx];
        jobs[idx].path = raw_path(in, log);
        jobs[idx].format = log->format;
        jobs[idx].keeps_lines = in->opts->keeps_lines;
    }
    if (measure_many(in->arena, &with, jobs, b->n_logs, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < b->n_logs; idx++) {
        if (take_raw(in, b->logs[idx], &jobs[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static void take_kept(const struct log_source *in, struct audit_log *log)
{
    const struct kept_log *kept = kept_series_find(in->kept, log->path, log->format);
    if (!kept) {
        log->why = str_printf(in->arena, "%s: no series of it", in->kept_path);
        return;
    }
    log->ref.sha256 = kept->sha256;
    log->measurement = &kept->measurement;
}

static void read_log(const struct log_source *in, struct audit_log *log)
{
    if (log->is_read) {
        return;
    }
    log->is_read = true;
    struct str folder = in->report->logs_source.path;
    log->ref.path = str_printf(in->arena, "%.*s%s%.*s", STR_ARG(folder), folder.len ? "/" : "",
                               STR_ARG(log->path));
    if (!in->opts->logs_folder) { /* raw ones all at once, later */
        take_kept(in, log);
    }
}

static int write_kept(const struct log_source *in, struct str *ret_sha256, struct err *err)
{
    const struct binding *b = in->binding;
    const char *folder = series_folder(in, in->opts->series_folder);
    struct kept_series kept = {
        .report = in->report->id,
        .source = in->report->logs_source,
        .logs = arena_array(in->arena, struct kept_log, b->n_logs + 1),
    };
    for (size_t idx = 0; idx < b->n_logs; idx++) {
        const struct audit_log *log = b->logs[idx];
        if (log->measurement) {
            kept.logs[kept.n_logs++] =
                (struct kept_log){log->path, log->ref.sha256, *log->measurement};
        }
    }
    if (kept.n_logs == 0) {
        return 0; /* nothing was published */
    }
    return fs_mkdir_p(folder, err) < 0
               ? -1
               : kept_series_write(in->arena, fs_join(in->arena, folder, KEPT_SERIES_NAME), &kept,
                                   ret_sha256, err);
}

static int read_logs(struct log_source *in, struct err *err)
{
    if (!in->opts->logs_folder && read_kept(in, err) < 0) {
        return -1;
    }
    if (in->opts->logs_folder && !fs_is_dir(in->opts->logs_folder)) {
        return err_set(err, fs_exists(in->opts->logs_folder) ? ERR_IO : ERR_NOT_FOUND,
                       "%s: not a folder that can be read", in->opts->logs_folder);
    }
    for (size_t idx = 0; idx < in->binding->n_cells; idx++) {
        const struct bound_cell *cell = &in->binding->cells[idx];
        const struct report_case *c = cell->of_case;
        for (size_t log = 0; cell->logs && log < c->n_logs; log++) {
            read_log(in, cell->logs[log]);
        }
        if (in->opts->progress && cell->cell == &c->cells[c->n_cells - 1]) {
            progress_set(in->opts->progress, in->opts->progress->done + c->n_logs);
        }
    }
    return in->opts->logs_folder ? read_all_raw(in, err) : 0;
}

size_t audit_count_logs(const struct report *report)
{
    size_t n = 0;
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        n += report->cases[idx].n_cells ? report->cases[idx].n_logs : 0;
    }
    return n;
}

int audit_report(struct arena *arena, const struct report *report, const struct format_set *formats,
                 const struct audit_opts *opts, struct report_audit *ret_audit, struct err *err)
{
    struct binding *binding = arena_new(arena, struct binding);
    CLEANUP(kept_series) struct kept_series kept = {.n_logs = 0};
    struct audit_opts own = *opts;
    if (report->own_logs.ptr && report->place.ptr && !opts->logs_folder) {
        own.logs_folder =
            arena_printf(arena, "%.*s/../%.*s", STR_ARG(report->place), STR_ARG(report->own_logs));
        opts = &own;
    }
    struct log_source in = {arena, report, formats, opts, binding, &kept, NULL};
    struct str written = STR_EMPTY;
    bind_report(arena, report, formats, binding);
    int result = read_logs(&in, err);
    if (result == 0 && opts->series_folder) {
        result = write_kept(&in, &written, err);
    }
    if (result == 0) {
        audit_judge(arena, binding, ret_audit);
        ret_audit->written_sha256 = written;
        if (opts->lint) {
            opts->lint(arena, report, &ret_audit->findings);
        }
    }
    return result;
}
