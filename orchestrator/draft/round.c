/* SPDX-License-Identifier: Apache-2.0 */
/* The submissions of a round: their folders, logs, descriptions of systems, factors and scores. */
#include "base/base.h"

#include "draft/round.h"

#include <math.h>

#include "base/fs.h"
#include "codec/json_table.h"
#include "load/load.h"
#include "load/measure_many.h"
#include "load/series_list.h"

#define SYSTEM_BYTES_MAX (1u << 20)
#define COUNT_MAX        1000000

enum { SUBMITTER, RESULTS, SYSTEM, BENCHMARK, FILE_NAME, PARTS };

/* SUBMITTER/results/SYSTEM/BENCHMARK/NAME */
static bool split_path(struct str path, struct str *parts)
{
    struct str rest = path;
    struct str part;
    size_t n = 0;
    while (str_next(&rest, '/', &part)) {
        if (n == PARTS) {
            return false;
        }
        parts[n++] = part;
    }
    return n == PARTS && str_eq_z(parts[RESULTS], "results");
}

static bool is_log(struct str name)
{
    return str_starts(name, STR_LIT("result_")) && str_ends(name, STR_LIT(".txt"));
}

/* ---- a system ---- */

/* Descriptions are free-form: a text or a number, or nothing. */
static struct str text_of(const struct json *at, const char *key, struct arena *arena)
{
    struct err ignored = {0};
    struct json member;
    struct str text = STR_EMPTY;
    double number;
    if (!json_find(at, key, &member)) {
        return STR_LIT("");
    }
    if (json_is_str(&member)) {
        return json_str(&member, arena, &text, &ignored) < 0 ? STR_LIT("") : str_trim(text);
    }
    return json_f64(&member, &number, &ignored) < 0 ? STR_LIT("")
                                                    : str_of(arena_printf(arena, "%.15g", number));
}

/* The number that the text begins with; -1 where it begins with none. */
static int64_t count_of(struct str text)
{
    struct err ignored = {0};
    size_t len = 0;
    int64_t value = -1;
    while (len < text.len && text.ptr[len] >= '0' && text.ptr[len] <= '9') {
        len++;
    }
    return str_to_i64(str_sub(text, 0, len), 0, COUNT_MAX, &value, &ignored) < 0 ? -1 : value;
}

static void fill_system(const struct json *root, struct arena *arena, struct machine *s)
{
    struct json stack;
    struct str per_node = text_of(root, "accelerators_per_node", arena);
    s->name = text_of(root, "system_name", arena);
    s->submitter = text_of(root, "submitter", arena);
    s->division = text_of(root, "division", arena);
    s->status = text_of(root, "status", arena);
    s->framework = text_of(root, "framework", arena);
    s->accelerator = text_of(root, "accelerator_model_name", arena);
    s->cpu = text_of(root, "host_processor_model_name", arena);
    s->os = text_of(root, "operating_system", arena);
    s->interconnect = text_of(root, "accelerator_interconnect", arena);
    s->nodes = count_of(text_of(root, "number_of_nodes", arena));
    s->per_node = count_of(per_node);
    if (json_find(root, "other_software_stack", &stack) && json_is_object(&stack)) {
        s->cuda = text_of(&stack, "cuda_version", arena);
        s->driver = text_of(&stack, "cuda_driver_version", arena);
        s->nccl = text_of(&stack, "nccl_version", arena);
        s->cudnn = text_of(&stack, "cudnn_version", arena);
    }
}

static const struct machine *read_system(struct arena *arena, const char *folder,
                                         const struct str *parts)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct machine *s = arena_new(arena, struct machine);
    struct err ignored = {0};
    struct str text;
    struct json root;
    char *path = arena_printf(arena, "%.*s/systems/%.*s.json", STR_ARG(parts[SUBMITTER]),
                              STR_ARG(parts[SYSTEM]));
    *s = (struct machine){.nodes = -1, .per_node = -1};
    if (fs_read(arena, fs_join(arena, folder, path), SYSTEM_BYTES_MAX, &text, &ignored) < 0 ||
        json_parse(text, path, &doc, &ignored) < 0) {
        return s; /* matched by its folder's name and content; no environment says what it is */
    }
    s->path = str_of(path);
    root = json_root(&doc);
    fill_system(&root, arena, s);
    return s;
}

/* ---- a factor ---- */

/* Published since 2.1 where a run converged in fewer samples than the reference. */
static int read_factor(struct arena *arena, const char *folder, struct submission *s,
                       struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("scaling_factor", struct factor, value, JSON_REQUIRED),
    };
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct str text;
    struct json root;
    struct err what = {0};
    const char *path = arena_printf(arena, "%.*s/scaling.json", STR_ARG(s->folder));
    if (fs_read(arena, fs_join(arena, folder, path), SYSTEM_BYTES_MAX, &text, &what) < 0) {
        return what.code == ERR_NOT_FOUND ? 0 : err_set(err, what.code, "%s", what.msg);
    }
    if (json_parse(text, path, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    s->factor.path = str_of(path);
    if (json_decode(&root, arena, FIELDS, ARRAY_LEN(FIELDS), &s->factor, err) < 0) {
        return -1;
    }
    if (!(s->factor.value >= 1)) { /* it makes a time longer */
        return json_fail(&root, err, "scaling_factor %g: expected 1 or more", s->factor.value);
    }
    return sha256_text(arena, text, &s->factor.sha256, err);
}

/* ---- a submission ---- */

static size_t count_submissions(const struct round_source *from)
{
    struct str before = STR_EMPTY;
    size_t n = 0;
    for (size_t idx = 0; idx < from->n_files; idx++) {
        struct str parts[PARTS];
        struct str folder;
        if (!split_path(from->files[idx], parts) || !is_log(parts[FILE_NAME])) {
            continue;
        }
        folder = str_sub(from->files[idx], 0, from->files[idx].len - parts[FILE_NAME].len - 1);
        n += !str_eq(folder, before);
        before = folder;
    }
    return n;
}

static void add_log(struct arena *arena, const struct round_source *from, struct submission *s,
                    struct str path)
{
    struct round_log *log = &s->logs[s->n_logs++];
    log->path = path;
    log->is_absent = !fs_exists(fs_join(arena, from->folder, path.ptr));
    if (log->is_absent) {
        log->why = STR_LIT("absent from the stored copy");
        s->n_absent++;
    }
}

/* Files are sorted, so those of a folder stand together. */
static int read_folders(struct arena *arena, const struct round_source *from, struct round *round,
                        struct err *err)
{
    struct submission *s = NULL;
    for (size_t idx = 0; idx < from->n_files; idx++) {
        struct str path = from->files[idx];
        struct str parts[PARTS];
        struct str folder;
        if (!split_path(path, parts) || !is_log(parts[FILE_NAME])) {
            continue;
        }
        folder = str_sub(path, 0, path.len - parts[FILE_NAME].len - 1);
        if (!s || !str_eq(s->folder, folder)) {
            s = &round->items[round->n++];
            *s = (struct submission){.folder = folder,
                                     .submitter = parts[SUBMITTER],
                                     .system_folder = parts[SYSTEM],
                                     .benchmark = parts[BENCHMARK],
                                     .machine = read_system(arena, from->folder, parts),
                                     .logs = arena_array(arena, struct round_log, LOGS_MAX)};
            if (read_factor(arena, from->folder, s, err) < 0) {
                return -1;
            }
        }
        if (s->n_logs == LOGS_MAX) {
            return err_set(err, ERR_PARSE, "%.*s: more than %d logs", STR_ARG(folder), LOGS_MAX);
        }
        add_log(arena, from, s, path);
    }
    return 0;
}

static int read_logs(struct arena *arena, const struct round_source *from, struct round *round,
                     struct err *err)
{
    struct measure_job *jobs = arena_array(arena, struct measure_job, from->n_files + 1);
    struct round_log **logs = arena_array(arena, struct round_log *, from->n_files + 1);
    const struct measure_with with = {.root = from->root, .lanes = from->lanes};
    size_t n = 0;
    for (size_t idx = 0; idx < round->n; idx++) {
        const struct submission *s = &round->items[idx];
        for (size_t log = 0; log < s->n_logs; log++) {
            if (!s->logs[log].is_absent) {
                logs[n] = &s->logs[log];
                jobs[n++] = (struct measure_job){
                    .path = fs_join(arena, from->folder, s->logs[log].path.ptr),
                    .format = STR_LIT(ROUND_FORMAT)};
            }
        }
    }
    if (measure_many(arena, &with, jobs, n, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        logs[idx]->measurement = jobs[idx].measurement;
        logs[idx]->sha256 = jobs[idx].sha256;
        logs[idx]->why =
            jobs[idx].measurement ? STR_EMPTY : str_dup(arena, str_of(jobs[idx].err.msg));
    }
    return 0;
}

/* By the rule that judges the rows too. */
static void score(struct arena *arena, const struct rule *rule, struct submission *s)
{
    struct rule_case of = {0};
    double values[LOGS_MAX];
    struct err err = {0};
    s->minutes = (double)NAN;
    for (size_t idx = 0; idx < s->n_logs; idx++) {
        struct rule_repeat repeat = {0};
        if (!s->logs[idx].measurement) {
            s->why = s->logs[idx].why;
            return;
        }
        if (rule_repeat(rule, s->logs[idx].measurement, &of, arena, &repeat, &err) < 0) {
            s->why = str_dup(arena, str_of(err.msg));
            return;
        }
        values[idx] = repeat.value;
    }
    if (rule_combine(rule->repeats, values, s->n_logs, &s->minutes, &err) < 0) {
        s->why = str_dup(arena, str_of(err.msg));
        return;
    }
    s->minutes *= s->factor.value > 0 ? s->factor.value : 1;
}

static int score_all(struct arena *arena, const char *root, struct round *round, struct err *err)
{
    CLEANUP(format_set) struct format_set formats = {0};
    const struct rule *rule;
    if (load_rule(arena, root, STR_LIT(ROUND_RULE), &formats, &rule, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < round->n; idx++) {
        score(arena, rule, &round->items[idx]);
    }
    return 0;
}

int round_read(struct arena *arena, const struct round_source *from, struct round *ret_round,
               struct err *err)
{
    struct round round = {.items =
                              arena_array(arena, struct submission, count_submissions(from) + 1)};
    if (read_folders(arena, from, &round, err) < 0 || read_logs(arena, from, &round, err) < 0 ||
        score_all(arena, from->root, &round, err) < 0) {
        return -1;
    }
    *ret_round = round;
    return 0;
}

int submission_read(struct arena *arena, const char *root, const char *folder,
                    const struct lanes *lanes, struct submission *ret_submission, struct err *err)
{
    struct round_source from = {.folder = folder, .root = root, .lanes = lanes};
    struct submission s = {.folder = STR_LIT("."),
                           .logs = arena_array(arena, struct round_log, LOGS_MAX)};
    struct round round = {&s, 1};
    struct fs_names names;
    if (fs_list(arena, folder, &names, err) < 0 || read_factor(arena, folder, &s, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (!is_log(str_of(names.items[idx]))) {
            continue;
        }
        if (s.n_logs == LOGS_MAX) {
            return err_set(err, ERR_PARSE, "%s: more than %d logs", folder, LOGS_MAX);
        }
        add_log(arena, &from, &s, str_of(names.items[idx]));
    }
    from.n_files = s.n_logs;
    if (s.n_logs == 0) {
        return err_set(err, ERR_NOT_FOUND,
                       "%s: a folder is taken for a result of MLPerf, and no result_*.txt is in "
                       "it; a log is named by "
                       "its file",
                       folder);
    }
    if (read_logs(arena, &from, &round, err) < 0 || score_all(arena, root, &round, err) < 0) {
        return -1;
    }
    *ret_submission = s;
    return 0;
}
