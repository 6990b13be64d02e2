/* SPDX-License-Identifier: Apache-2.0 */
/* Where the audit's measurements come from: raw logs below a folder, or the series kept in logs/published. */
#include "base/base.h"

#include "load/audit_logs.h"

#include "base/fs.h"
#include "load/measure_many.h"
#include "load/series_bundle.h"
#include "load/series_file.h"
#include "load/series_list.h"

#define SERIES_FOLDER "logs/published"

struct reading {
    struct arena *arena;
    const struct report *report;
    const struct format_set *formats;
    const struct audit_opts *opts;
    struct binding *binding;
    struct series_list *list;     /* digests of the kept series; empty where raw logs are read */
    struct series_bundle *bundle; /* of a report whose kept series are one file */
};

/* The kept series: of the program's reports in logs/published, of the user's next to their manifests; where the user's place is the
   manifests/ of another copy of the program, in that copy's. */
static const char *kept_folder(const struct reading *in)
{
    if (!in->report->place.ptr) {
        return fs_join(in->arena, in->opts->root, SERIES_FOLDER);
    }
    const char *place = str_z(in->arena, in->report->place);
    const char *series = fs_join(in->arena, place, "series");
    const char *copy = fs_join(in->arena, place, "../" SERIES_FOLDER);
    return !fs_is_dir(series) && fs_is_dir(copy) ? copy : series;
}

static const char *series_path(const struct reading *in, const char *folder,
                               const struct audit_log *log)
{
    const char *below = fs_join(in->arena, folder, str_z(in->arena, in->report->id));
    return fs_join(in->arena, below, series_file_name(in->arena, log->path, log->format));
}

static struct series_file series_of_log(const struct reading *in, const struct audit_log *log)
{
    return (struct series_file){.report = in->report->id,
                                .log = log->path,
                                .sha256 = log->ref.sha256,
                                .source = in->report->logs_source,
                                .measurement = *log->measurement};
}

static int write_series(const struct reading *in, const struct audit_log *log, struct err *err)
{
    const char *path = series_path(in, in->opts->series_folder, log);
    const char *folder =
        fs_join(in->arena, in->opts->series_folder, str_z(in->arena, in->report->id));
    const struct series_file file = series_of_log(in, log);
    if (fs_mkdir_p(folder, err) < 0) {
        return -1;
    }
    return series_file_write(path, &file, err);
}

/* A log that is missing, unreadable or not of its format becomes a finding later; any other error stops the audit. */
static int note_missing(struct audit_log *log, struct arena *arena, const struct err *what,
                        struct err *err)
{
    if (what->code != ERR_NOT_FOUND && what->code != ERR_PARSE) {
        *err = *what;
        return -1;
    }
    log->is_unreadable = what->code == ERR_PARSE;
    log->why = str_dup(arena, str_of(what->msg));
    return 0;
}

/* The digest that logs/published records for this raw log; without one nothing is claimed. */
static int read_record(struct reading *in, struct audit_log *log, struct err *err)
{
    const struct series_file *kept = map_get(&in->bundle->logs, log->path);
    if (in->report->is_bundled) {
        log->kept_sha256 = kept ? kept->sha256 : STR_EMPTY;
        return 0;
    }
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct series_file file;
    const char *folder = kept_folder(in);
    struct err what = {0};
    if (series_file_read(&arena, series_path(in, folder, log), &file, &what) < 0) {
        return what.code == ERR_NOT_FOUND ? 0 : err_set(err, what.code, "%s", what.msg);
    }
    log->kept_sha256 = str_dup(in->arena, file.sha256);
    return 0;
}

/* Below the folder that the manifest names, or below --logs itself: a copy of the repository under another name. */
static const char *raw_path(const struct reading *in, const struct audit_log *log)
{
    struct arena *arena = in->arena;
    const char *path = fs_join(arena, in->opts->logs_folder, str_z(arena, log->ref.path));
    const char *bare = fs_join(arena, in->opts->logs_folder, str_z(arena, log->path));
    return !fs_exists(path) && fs_exists(bare) ? bare : path;
}

/* The absolute path where it was looked for: a relative one may mean another place than it seems. */
static struct str tried_path(const struct reading *in, const struct audit_log *log)
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
static int take_raw(struct reading *in, struct audit_log *log, const struct measure_job *job,
                    struct err *err)
{
    if (!job->measurement) {
        log->tried = tried_path(in, log);
        return note_missing(log, in->arena, &job->err, err);
    }
    log->measurement = job->measurement;
    log->ref.sha256 = job->sha256;
    log->ref.file = str_of(job->path);
    if (read_record(in, log, err) < 0) {
        return -1;
    }
    return in->opts->series_folder && !in->report->is_bundled ? write_series(in, log, err) : 0;
}

static const char *bundle_path(const struct reading *in, const char *folder)
{
    const char *below = fs_join(in->arena, folder, str_z(in->arena, in->report->id));
    return fs_join(in->arena, below, SERIES_BUNDLE_NAME);
}

/* Of raw logs it records the digests. */
static int read_bundle(struct reading *in, struct err *err)
{
    const char *path = bundle_path(in, kept_folder(in));
    struct err what = {0};
    const struct series_file *any;
    if (!in->report->is_bundled) {
        return 0;
    }
    if (series_bundle_read(in->arena, path, in->bundle, &what) < 0) {
        return what.code == ERR_NOT_FOUND ? 0 : err_set(err, what.code, "%s", what.msg);
    }
    any = in->bundle->logs.n ? in->bundle->logs.entries[0].value : NULL;
    return !any || in->opts->logs_folder ? 0
                                         : series_list_check(in->list, path, any->own_sha256, err);
}

static int read_bundle_first(void *ctx, struct err *err)
{
    return read_bundle(ctx, err);
}

static int read_all_raw(struct reading *in, struct err *err)
{
    const struct binding *b = in->binding;
    struct measure_job *jobs = arena_array(in->arena, struct measure_job, b->n_logs + 1);
    const struct measure_with with = {.formats = in->formats,
                                      .root = in->opts->root,
                                      .lanes = in->opts->lanes,
                                      .first = read_bundle_first,
                                      .ctx = in};
    for (size_t idx = 0; idx < b->n_logs; idx++) {
        const struct audit_log *log = b->logs[idx];
        jobs[idx].path = raw_path(in, log);
        jobs[idx].format = log->format;
        jobs[idx].keeps_lines = in->opts->keeps_lines;
        if (!format_find(in->formats, log->format)) {
            return err_set(err, ERR_MANIFEST, "%.*s: no format \"%.*s\" in manifests/formats",
                           STR_ARG(in->report->path), STR_ARG(log->format));
        }
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

static int check_kept(const struct reading *in, const struct audit_log *log,
                      const struct series_file *file, const char *path, struct err *err)
{
    if (str_eq(file->log, log->path) && str_eq(file->measurement.format, log->format) &&
        str_eq(file->source.commit, in->report->logs_source.commit)) {
        return 0;
    }
    return err_set(err, ERR_MANIFEST, "%s: expected log \"%.*s\" of commit %.*s, found \"%.*s\"",
                   path, STR_ARG(log->path), STR_ARG(in->report->logs_source.commit),
                   STR_ARG(file->log));
}

static int take_bundled(struct reading *in, struct audit_log *log, struct err *err)
{
    const struct series_file *file = map_get(&in->bundle->logs, log->path);
    const char *path = bundle_path(in, kept_folder(in));
    if (!file) {
        log->why = str_of(arena_printf(in->arena, "%s: no series of it", path));
        return 0;
    }
    log->ref.sha256 = file->sha256;
    log->measurement = &file->measurement;
    return check_kept(in, log, file, path, err);
}

static int read_kept(struct reading *in, struct audit_log *log, struct err *err)
{
    struct arena *arena = in->arena;
    struct series_file *file = arena_new(arena, struct series_file);
    const char *folder = kept_folder(in);
    const char *path = series_path(in, folder, log);
    struct err what = {0};
    if (series_file_read(arena, path, file, &what) < 0) {
        return note_missing(log, arena, &what, err);
    }
    if (check_kept(in, log, file, path, err) < 0) {
        return -1;
    }
    if (series_list_check(in->list, path, file->own_sha256, err) < 0) {
        return -1;
    }
    log->ref.sha256 = file->sha256;
    log->measurement = &file->measurement;
    return 0;
}

static int read_log(struct reading *in, struct audit_log *log, struct err *err)
{
    if (log->is_read) {
        return 0;
    }
    log->is_read = true;
    log->ref.path = str_of(arena_printf(in->arena, "%.*s/%.*s",
                                        STR_ARG(in->report->logs_source.path), STR_ARG(log->path)));
    if (in->opts->logs_folder) {
        return 0; /* raw ones all at once, later */
    }
    return in->report->is_bundled ? take_bundled(in, log, err) : read_kept(in, log, err);
}

static int read_cell(struct reading *in, const struct bound_cell *cell, struct err *err)
{
    for (size_t log = 0; cell->logs && log < cell->of_case->n_logs; log++) {
        if (read_log(in, cell->logs[log], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int write_bundle(const struct reading *in, struct err *err)
{
    const struct binding *b = in->binding;
    const char *folder =
        fs_join(in->arena, in->opts->series_folder, str_z(in->arena, in->report->id));
    const struct series_file **files =
        arena_array(in->arena, const struct series_file *, b->n_logs + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < b->n_logs; idx++) {
        const struct audit_log *log = b->logs[idx];
        struct series_file *file = arena_new(in->arena, struct series_file);
        if (log->measurement) {
            *file = series_of_log(in, log);
            files[n++] = file;
        }
    }
    if (n == 0) {
        return 0;
    }
    return fs_mkdir_p(folder, err) < 0
               ? -1
               : series_bundle_write(bundle_path(in, in->opts->series_folder), files, n, err);
}

/* A report with published logs has its series kept, each with its digest. */
static int read_list(struct reading *in, struct err *err)
{
    const char *folder = kept_folder(in);
    const char *below = fs_join(in->arena, folder, str_z(in->arena, in->report->id));
    if (in->opts->logs_folder || !in->report->logs_source.path.ptr ||
        audit_count_logs(in->report) == 0 || !fs_is_dir(below)) {
        return 0; /* a series that is not there is a finding */
    }
    return series_list_read(in->arena, in->report, below, in->list, err);
}

static int write_list(const struct reading *in, struct str *ret_sha256, struct err *err)
{
    const char *folder =
        fs_join(in->arena, in->opts->series_folder, str_z(in->arena, in->report->id));
    if (!fs_is_dir(folder)) {
        return 0; /* nothing was published */
    }
    return series_list_write(in->arena, folder, ret_sha256, err);
}

static int read_logs(struct reading *in, struct err *err)
{
    if (!in->opts->logs_folder && read_bundle(in, err) < 0) {
        return -1;
    }
    if (in->opts->logs_folder && !fs_is_dir(in->opts->logs_folder)) {
        return err_set(err, fs_exists(in->opts->logs_folder) ? ERR_IO : ERR_NOT_FOUND,
                       "%s: not a folder that can be read", in->opts->logs_folder);
    }
    for (size_t idx = 0; idx < in->binding->n_cells; idx++) {
        const struct bound_cell *cell = &in->binding->cells[idx];
        const struct report_case *c = cell->of_case;
        if (read_cell(in, cell, err) < 0) {
            return -1;
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
    CLEANUP(series_list) struct series_list list = {0};
    CLEANUP(series_bundle) struct series_bundle bundle = {0};
    struct reading in = {arena, report, formats, opts, binding, &list, &bundle};
    struct str written = STR_EMPTY;
    bind_report(arena, report, formats, binding);
    int result = read_list(&in, err);
    result = result < 0 ? -1 : read_logs(&in, err);
    if (result == 0 && opts->series_folder && report->is_bundled) {
        result = write_bundle(&in, err);
    }
    if (result == 0 && opts->series_folder) {
        result = write_list(&in, &written, err);
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
