/* SPDX-License-Identifier: Apache-2.0 */
/* Where the audit's measurements come from: raw logs below a folder, or the series kept in logs/published. */
#include "base/base.h"

#include "base/fs.h"
#include "engine/audit_parts.h"
#include "engine/measure.h"
#include "engine/series_file.h"

#define SERIES_FOLDER "logs/published"

static struct str log_key(struct arena *arena, struct str path, struct str format)
{
    char *key = arena_printf(arena, "%.*s\n%.*s", STR_ARG(format), STR_ARG(path));
    return str_of(key);
}

const struct audit_log *audit_log_of(const struct audit *audit, struct str path, struct str format)
{
    return map_get(&audit->logs, log_key(audit->arena, path, format));
}

static const char *series_path(const struct audit *audit, const char *folder,
                               const struct audit_log *log)
{
    const char *below = fs_join(audit->arena, folder, str_z(audit->arena, audit->report->id));
    return fs_join(audit->arena, below, series_file_name(audit->arena, log->path, log->format));
}

static int write_series(const struct audit *audit, const struct audit_log *log, struct err *err)
{
    const char *path = series_path(audit, audit->opts->series_folder, log);
    const char *folder =
        fs_join(audit->arena, audit->opts->series_folder, str_z(audit->arena, audit->report->id));
    struct series_file file = {audit->report->id, log->path, log->ref.sha256,
                               audit->report->logs_source, *log->measurement};
    if (fs_mkdir_p(folder, err) < 0) {
        return -1;
    }
    return series_file_write(path, &file, err);
}

/* A log that is not there, cannot be read or is no log of its format is a finding later; anything else stops the audit. */
static int note_missing(struct audit_log *log, struct arena *arena, const struct err *what,
                        struct err *err)
{
    if (what->code != ERR_NOT_FOUND && what->code != ERR_PARSE) {
        *err = *what;
        return -1;
    }
    log->why = str_dup(arena, str_of(what->msg));
    return 0;
}

/* What logs/published records of this raw log; no record is no claim. */
static int read_record(struct audit *audit, struct audit_log *log, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct series_file file;
    const char *folder = fs_join(audit->arena, audit->opts->root, SERIES_FOLDER);
    struct err what = {0};
    if (series_file_read(&arena, series_path(audit, folder, log), &file, &what) < 0) {
        return what.code == ERR_NOT_FOUND ? 0 : err_set(err, what.code, "%s", what.msg);
    }
    log->kept_sha256 = str_dup(audit->arena, file.sha256);
    return 0;
}

static int read_raw(struct audit *audit, struct audit_log *log, struct err *err)
{
    struct arena *arena = audit->arena;
    const struct format *format = format_find(audit->formats, log->format);
    struct measurement *m = arena_new(arena, struct measurement);
    const char *path = fs_join(arena, audit->opts->logs_folder, str_z(arena, log->ref.path));
    struct err what = {0};
    if (!format) {
        return err_set(err, ERR_MANIFEST, "%.*s: no format \"%.*s\" in manifests/formats",
                       STR_ARG(audit->report->path), STR_ARG(log->format));
    }
    if (measure_file(arena, format, path, m, &log->ref.sha256, &what) < 0) {
        return note_missing(log, arena, &what, err);
    }
    log->measurement = m;
    if (read_record(audit, log, err) < 0) {
        return -1;
    }
    return audit->opts->series_folder ? write_series(audit, log, err) : 0;
}

static int read_kept(struct audit *audit, struct audit_log *log, struct err *err)
{
    struct arena *arena = audit->arena;
    struct series_file *file = arena_new(arena, struct series_file);
    const char *folder = fs_join(arena, audit->opts->root, SERIES_FOLDER);
    const char *path = series_path(audit, folder, log);
    struct err what = {0};
    if (series_file_read(arena, path, file, &what) < 0) {
        return note_missing(log, arena, &what, err);
    }
    if (!str_eq(file->log, log->path) || !str_eq(file->measurement.format, log->format) ||
        !str_eq(file->source.commit, audit->report->logs_source.commit)) {
        return err_set(
            err, ERR_MANIFEST, "%s: expected log \"%.*s\" of commit %.*s, found \"%.*s\"", path,
            STR_ARG(log->path), STR_ARG(audit->report->logs_source.commit), STR_ARG(file->log));
    }
    log->ref.sha256 = file->sha256;
    log->measurement = &file->measurement;
    return 0;
}

static int read_log(struct audit *audit, struct str path, struct str format, struct err *err)
{
    struct str key = log_key(audit->arena, path, format);
    struct audit_log *log;
    if (map_get(&audit->logs, key)) {
        return 0;
    }
    log = arena_new(audit->arena, struct audit_log);
    log->path = path;
    log->format = format;
    log->ref.path = arena_str(audit->arena, "%.*s/%.*s", STR_ARG(audit->report->logs_source.path),
                              STR_ARG(path));
    map_add(&audit->logs, key, log);
    return audit->opts->logs_folder ? read_raw(audit, log, err) : read_kept(audit, log, err);
}

/* Each distinct format that the case's cells name. */
static int read_case(struct audit *audit, const struct report_case *c, struct err *err)
{
    for (size_t cell = 0; cell < c->n_cells; cell++) {
        struct str format = cell_format(c, &c->cells[cell]);
        for (size_t log = 0; format.ptr && log < c->n_logs; log++) {
            if (read_log(audit, c->logs[log], format, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

int audit_read_logs(struct audit *audit, struct err *err)
{
    const struct report *report = audit->report;
    if (audit->opts->logs_folder && !fs_is_dir(audit->opts->logs_folder)) {
        return err_set(err, ERR_IO, "%s: not a folder that can be read", audit->opts->logs_folder);
    }
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        if (read_case(audit, c, err) < 0) {
            return -1;
        }
        if (audit->opts->progress && c->n_cells) {
            progress_set(audit->opts->progress, audit->opts->progress->done + c->n_logs);
        }
    }
    return 0;
}

size_t audit_count_logs(const struct report *report)
{
    size_t n = 0;
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        n += report->cases[idx].n_cells ? report->cases[idx].n_logs : 0;
    }
    return n;
}
