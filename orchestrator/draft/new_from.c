/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "draft/new_from.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/progress.h"
#include "base/table.h"
#include "base/temp.h"
#include "draft/doc_table.h"
#include "draft/draft.h"
#include "draft/propose.h"
#include "judge/identity.h"
#include "lint/lint.h"
#include "load/audit_logs.h"
#include "load/load.h"
#include "load/measure.h"
#include "log/format.h"
#include "report/shell_script.h"
#include "store/git.h"
#include "store/logs_clone.h"

#include <unistd.h>

#define NEW_GIT_LIMIT_NS  (60 * NS_PER_S)
#define NEW_DOC_BYTES_MAX (2u << 20)
#define NEW_LOG_FILES_MAX 600
#define NEW_DOC_FILES_MAX 1500
#define LOG_BYTES_MAX     (64u << 20)
#define CLONE_LIMIT_NS    (600 * NS_PER_S)
#define TEXT_MAX          (64u << 20)
#define SHOWN_MAX         40

enum new_rank {              /* which files are read first, where there are too many */
                RANK_LINKED, /* a table names it */
                RANK_NAMED,  /* it is named as a log */
                RANK_TEXT,
                RANK_NONE,
};
struct new_file {
    const char *path, *hash; /* of the blob */
    int64_t size;
    enum new_rank rank;
};
struct new_files {
    struct new_file *items;
    size_t n, n_left_out;
};

struct new_maker {
    const struct cmd_ctx *ctx;
    const struct new_from *from;
    struct arena *arena;
    struct git git;
    const char *git_dir, *tmp;
    struct str commit, date, repository;
    struct new_files all, docs, log_files;
    struct format_set formats; /* the program's and the user's */
    struct guesser *guesser;   /* of these; owned */
    struct format_set made;    /* from unknown logs; owned */
    struct str made_text[8];
    struct draft_logs logs;
    struct draft draft;
    size_t n_unread; /* logs that nothing reads */
    size_t n_others; /* documents of kinds that are not read */
};

static int git_line(struct new_maker *m, const char *const *args, struct str *ret, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(GIT_OUTPUT_MAX);
    const struct git_call call = {
        .git_dir = m->git_dir, .args = args, .deadline_ns = NEW_GIT_LIMIT_NS};
    struct git_result result;
    if (git_run(&m->git, &call, &out, &result, err) < 0) {
        return -1;
    }
    *ret = result.exit_status == 0 ? str_dup(m->arena, str_trim(strbuf_str(&out))) : STR_EMPTY;
    return 0;
}

/* ---- what there is ---- */

static bool doc_kind(struct str path, enum doc_kind *ret_kind)
{
    static const struct {
        const char *ends;
        enum doc_kind kind;
    } ROWS[] = {
        {".md .MD .markdown", DOC_MARKDOWN}, {".html .htm", DOC_HTML}, {".csv .tsv", DOC_CSV}};
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        if (ends_with_any(path, ROWS[idx].ends)) {
            *ret_kind = ROWS[idx].kind;
            return true;
        }
    }
    return false;
}

static bool is_doc(struct str path)
{
    enum doc_kind kind;
    return doc_kind(path, &kind);
}

static enum new_rank rank_of(struct str path)
{
    if (guess_is_log_name(path) && !is_doc(path)) {
        return RANK_NAMED;
    }
    return str_ends(path, STR_LIT(".txt")) &&
                   !ends_with_any(path, "requirements.txt CMakeLists.txt LICENSE.txt")
               ? RANK_TEXT
               : RANK_NONE;
}

/* A path that stays in a folder and does not clash with our own files. */
static bool is_plain(struct arena *arena, struct str path)
{
    struct str whole = path_resolve(arena, STR_LIT(""), path);
    return path.len && path.ptr[0] != '"' && !str_starts(path, STR_LIT(".reperf-")) &&
           str_eq(str_sub(whole, 1, SIZE_MAX), path);
}

/* "MODE blob HASH SIZE<tab>PATH"; links and submodules are left out. */
static void take_entry(struct new_maker *m, struct str line)
{
    struct str left;
    struct str mode;
    struct str type;
    struct str hash;
    int64_t size = 0;
    if (!str_next(&line, '\t', &left) || !is_plain(m->arena, line) ||
        !str_next(&left, ' ', &mode) || !str_next(&left, ' ', &type) ||
        !str_next(&left, ' ', &hash) || !str_starts(mode, STR_LIT("100")) ||
        !str_eq_z(type, "blob") ||
        str_to_i64(str_trim(left), 1, INT64_MAX, &size, ERR_IGNORED) < 0 ||
        (m->from->below && !str_starts(line, str_of(m->from->below)))) {
        return;
    }
    m->all.items[m->all.n++] =
        (struct new_file){str_z(m->arena, line), str_z(m->arena, hash), size, RANK_NONE};
}

static size_t count_of(struct str text, char c)
{
    size_t n = 0;
    for (size_t idx = 0; idx < text.len; idx++) {
        n += text.ptr[idx] == c;
    }
    return n;
}

/* Documents for people before generated ones, and higher folders first. */
static int compare_docs(const void *left, const void *right)
{
    struct str a = str_of(((const struct new_file *)left)->path);
    struct str b = str_of(((const struct new_file *)right)->path);
    int order = str_ends(a, STR_LIT(".csv")) - str_ends(b, STR_LIT(".csv"));
    order = order ? order : (int)count_of(a, '/') - (int)count_of(b, '/');
    return order ? order : str_cmp(a, b);
}

static int compare_logs(const void *left, const void *right)
{
    const struct new_file *a = left;
    const struct new_file *b = right;
    return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) : strcmp(a->path, b->path);
}

static void cut(struct new_files *files, size_t max)
{
    files->n_left_out += files->n > max ? files->n - max : 0;
    files->n = files->n > max ? max : files->n;
}

static int list_files(struct new_maker *m, struct err *err)
{
    CLEANUP(map) struct map seen = {0};
    struct str list;
    struct str rest;
    struct str line;
    if (git_line(m, GIT_ARGS("ls-tree", "-r", "-l", "HEAD"), &list, err) < 0) {
        return -1;
    }
    size_t n = count_of(list, '\n') + 1;
    m->all.items = arena_array(m->arena, struct new_file, n);
    m->docs.items = arena_array(m->arena, struct new_file, n);
    m->log_files.items = arena_array(m->arena, struct new_file, n);
    for (rest = list; rest.len && str_next(&rest, '\n', &line);) {
        take_entry(m, line);
    }
    for (size_t idx = 0; idx < m->all.n; idx++) {
        m->n_others +=
            ends_with_any(str_of(m->all.items[idx].path), ".xlsx .xls .ods .rst .ipynb") > 0;
        if (!is_doc(str_of(m->all.items[idx].path)) ||
            !map_add(&seen, str_of(m->all.items[idx].hash), m)) {
            continue; /* the same bytes under another name are one document */
        }
        m->docs.n_left_out += m->all.items[idx].size > NEW_DOC_BYTES_MAX;
        if (m->all.items[idx].size <= NEW_DOC_BYTES_MAX) {
            m->docs.items[m->docs.n++] = m->all.items[idx];
        }
    }
    qsort(m->docs.items, m->docs.n, sizeof(m->docs.items[0]), compare_docs);
    cut(&m->docs, NEW_DOC_FILES_MAX);
    return 0;
}

static void choose_logs(struct new_maker *m)
{
    CLEANUP(map) struct map linked = {0};
    struct new_files *logs = &m->log_files;
    for (size_t idx = 0; idx < m->draft.n; idx++) {
        if (m->draft.items[idx].link_path.len) {
            (void)map_add(&linked, m->draft.items[idx].link_path, m);
        }
    }
    for (size_t idx = 0; idx < m->all.n; idx++) {
        struct new_file file = m->all.items[idx];
        struct str path = str_of(file.path);
        enum new_rank rank = rank_of(path);
        file.rank = map_get(&linked, path) && !is_doc(path) ? RANK_LINKED : rank;
        for (size_t len = path.len; len > 0 && rank != RANK_NONE; len--) {
            if (path.ptr[len - 1] == '/' && map_get(&linked, str_sub(path, 0, len - 1))) {
                file.rank = RANK_LINKED;
            }
        }
        logs->n_left_out += file.rank != RANK_NONE && file.size > LOG_BYTES_MAX;
        if (file.rank != RANK_NONE && file.size <= LOG_BYTES_MAX) {
            logs->items[logs->n++] = file;
        }
    }
    qsort(logs->items, logs->n, sizeof(logs->items[0]), compare_logs);
    cut(logs, NEW_LOG_FILES_MAX);
}

static int bring(struct new_maker *m, const struct new_files *files, struct err *err)
{
    for (size_t idx = 0; idx < files->n; idx++) {
        const char *target = fs_join(m->arena, m->tmp, files->items[idx].path);
        const struct git_call call = {.git_dir = m->git_dir,
                                      .args = GIT_ARGS("cat-file", "blob", files->items[idx].hash),
                                      .output_path = target,
                                      .deadline_ns = NEW_GIT_LIMIT_NS};
        if (fs_scratch_above(target, err) < 0 ||
            git_must(&m->git, &call, NULL, ERR_INTEGRITY, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The folder's name, or the last part of the address. */
static struct str name_of(struct new_maker *m)
{
    struct str path = str_of(strstr(m->from->clone, "://") ? m->from->clone : m->git_dir);
    path.len -= str_ends(path, STR_LIT("/.git")) ? 5 : str_ends(path, STR_LIT("/.")) ? 2 : 0;
    const char *slash = memrchr(path.ptr, '/', path.len);
    return slash ? str_sub(path, (size_t)(slash - path.ptr) + 1, path.len) : path;
}

static int find_source(struct new_maker *m, struct err *err)
{
    struct str remote;
    const char *clone = m->from->clone;
    if (git_line(m, GIT_ARGS("rev-parse", "HEAD"), &m->commit, err) < 0 ||
        git_line(m, GIT_ARGS("log", "-1", "--format=%cs"), &m->date, err) < 0 ||
        git_line(m, GIT_ARGS("config", "--get", "remote.origin.url"), &remote, err) < 0) {
        return -1;
    }
    if (m->commit.len != 40) {
        return err_set(err, ERR_USAGE, "%s: a repository without a commit", clone);
    }
    m->repository = str_of(m->from->repository);
    if (!m->repository.len && str_starts(remote, STR_LIT("https://"))) {
        m->repository = remote;
    }
    if (!m->repository.len) {
        m->repository =
            str_printf(m->arena, "https://repository.invalid/%.*s", STR_ARG(name_of(m)));
        log_line(LOG_WARN,
                 "%s names no https remote: the draft says %.*s; --repository URL says it", clone,
                 STR_ARG(m->repository));
    }
    return 0;
}

/* ---- documents and logs ---- */

static int read_docs(struct new_maker *m, struct draft_reader *reader, struct err *err)
{
    if (bring(m, &m->docs, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < m->docs.n; idx++) {
        struct str path = str_of(m->docs.items[idx].path);
        struct doc_tables tables;
        struct str text;
        enum doc_kind kind = DOC_MARKDOWN;
        (void)doc_kind(path, &kind);
        if (fs_read(m->arena, fs_join(m->arena, m->tmp, path.ptr), NEW_DOC_BYTES_MAX, &text, err) <
            0) {
            return -1;
        }
        doc_tables_read(m->arena, text, kind, &tables);
        draft_add_tables(reader, path, &tables, &m->draft);
        m->draft.n_left_out += tables.n_left_out;
    }
    return 0;
}

/* The first format that reads something of the log; NULL: none. */
static const struct format *first_that_reads(struct new_maker *m,
                                             const struct format *const *formats, size_t n,
                                             const char *file, struct measurement *ret)
{
    for (size_t idx = 0; idx < n; idx++) {
        const struct reading how = {formats[idx], file, .is_of_rates = true};
        if (measure_file(m->arena, &how, ret, NULL, ERR_IGNORED) == 0 &&
            measurement_primary(ret)->n > 0) {
            return formats[idx];
        }
    }
    return NULL;
}

static const struct format *made_that_reads(struct new_maker *m, const struct format_set *made,
                                            const char *file, struct measurement *ret)
{
    return first_that_reads(m, (const struct format *const *)made->items, made->n, file, ret);
}

/* A format from the log's own lines, if they are self-explanatory: the one that measure proposes. */
static const struct format *make_format(struct new_maker *m, const char *path, const char *file,
                                        struct measurement *ret)
{
    const struct proposal_want want = {
        .root = m->ctx->root,
        .id = str_printf(m->arena, "%s-%zu", m->from->id, m->made.n + 1),
        .log = path,
        .path = file,
        .makes = true};
    CLEANUP(format_set) struct format_set one = {0};
    struct proposal proposal = {0};
    bool is_made = m->made.n < ARRAY_LEN(m->made_text) &&
                   propose_format(m->arena, &want, &proposal, &one, ERR_IGNORED) == 0 &&
                   made_that_reads(m, &one, file, ret);
    proposal_release(&proposal);
    if (!is_made) {
        return NULL;
    }
    m->made_text[m->made.n] = proposal.text;
    m->made.items[m->made.n++] = one.items[0];
    one = (struct format_set){0};
    return m->made.items[m->made.n - 1];
}

static const struct format *format_of(struct new_maker *m, const struct new_file *of,
                                      const char *file, struct measurement *ret)
{
    struct guess guess;
    if (measure_guess(m->guesser, file, &guess, ERR_IGNORED) < 0) {
        return NULL;
    }
    const struct format *found = first_that_reads(m, guess.formats, guess.n, file, ret);
    found = found ? found : made_that_reads(m, &m->made, file, ret);
    return found || of->rank == RANK_TEXT ? found : make_format(m, of->path, file, ret);
}

static int read_logs(struct new_maker *m, struct draft_reader *reader, struct err *err)
{
    struct progress progress;
    m->logs.items = arena_array(m->arena, struct draft_log, NEW_LOG_FILES_MAX);
    if (bring(m, &m->log_files, err) < 0) {
        return -1;
    }
    progress_start(&progress, m->ctx->clock, "new", "logs", m->log_files.n);
    for (size_t idx = 0; idx < m->log_files.n; idx++) {
        struct draft_log *log = &m->logs.items[m->logs.n];
        const char *path = m->log_files.items[idx].path;
        struct measurement *read = arena_new(m->arena, struct measurement);
        log->format = format_of(m, &m->log_files.items[idx], fs_join(m->arena, m->tmp, path), read);
        progress_set(&progress, idx + 1);
        if (!log->format) {
            m->n_unread += m->log_files.items[idx].rank != RANK_TEXT;
            continue;
        }
        struct log_counts counts = identity_counts(log->format, read, NULL);
        log->path = str_of(path);
        log->words = draft_bare(m->arena, log->path);
        log->m = read;
        log->model = identity_model(read);
        log->attrs = (struct draft_attrs){
            .nodes = counts.nodes, .gpus = counts.gpus, .batch = counts.batch_per_gpu};
        draft_read_attrs(reader, log->path, &log->attrs);
        m->logs.n++;
    }
    progress_end(&progress);
    return 0;
}

/* ---- what is written ---- */

static int write_report(struct new_maker *m, struct str series_sha256, const char *path,
                        struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    const struct draft_source source = {str_of(m->from->id), m->repository, m->commit, m->date,
                                        &m->draft.items[0],  series_sha256};
    draft_write(m->arena, &m->draft, &source, &text);
    if (text.is_full) {
        return err_set(err, ERR_USAGE, "the draft is longer than %u bytes; --below narrows it",
                       TEXT_MAX);
    }
    return fs_write_atomic(path, strbuf_str(&text), err);
}

static int write_formats(struct new_maker *m, struct err *err)
{
    for (size_t idx = 0; idx < m->made.n; idx++) {
        struct str id = m->made.items[idx]->id;
        const char *path =
            arena_printf(m->arena, "%s/formats/%.*s.json", m->from->folder, STR_ARG(id));
        if (fs_write_atomic(path, m->made_text[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* All formats that the draft's logs were read by. */
static struct format_set all_formats(struct new_maker *m)
{
    struct format_set all = {arena_array(m->arena, struct format *, FORMATS_MAX + 8), 0};
    for (size_t idx = 0; idx < m->formats.n; idx++) {
        all.items[all.n++] = m->formats.items[idx];
    }
    for (size_t idx = 0; idx < m->made.n; idx++) {
        all.items[all.n++] = m->made.items[idx];
    }
    return all;
}

/* Audits the draft before anything is written to its final place; also writes the series of its logs. */
static int judge_draft(struct new_maker *m, struct str *ret_series_sha256, struct err *err)
{
    const char *path = fs_join(m->arena, m->tmp, ".reperf-draft.json");
    struct audit_opts opts = {.logs_folder = m->tmp, .root = m->ctx->root, .lint = lint_report};
    struct format_set all = all_formats(m);
    struct report report;
    struct report_audit audit;
    opts.series_folder = fs_join(m->arena, m->from->folder, "series");
    if (write_report(m, STR_EMPTY, path, err) < 0 ||
        load_report(m->arena, m->ctx->root, path, &report, err) < 0 ||
        audit_report(m->arena, &report, &all, &opts, &audit, err) < 0) {
        return -1;
    }
    draft_take_audit(m->arena, &audit, &m->draft);
    *ret_series_sha256 = audit.written_sha256;
    return 0;
}

static const char *report_path(struct new_maker *m)
{
    return arena_printf(m->arena, "%s/reports/%s.json", m->from->folder, m->from->id);
}

/* The report and its formats; with the series, audit needs nothing else. */
static int write_all(struct new_maker *m, struct str series_sha256, struct err *err)
{
    const char *folder = m->from->folder;
    return fs_mkdir_p(fs_join(m->arena, folder, "reports"), err) < 0 ||
                   fs_mkdir_p(fs_join(m->arena, folder, "formats"), err) < 0 ||
                   write_formats(m, err) < 0
               ? -1
               : write_report(m, series_sha256, report_path(m), err);
}

/* ---- what is said ---- */

/* What the number's log gives, and what speaks against it. */
static void add_found(struct table *table, const struct draft_number *d)
{
    if (!d->log) {
        table_add(table, STR_LIT("-"));
        return;
    }
    table_addf(table, "%.*s by %.*s%s of %.*s%s%s", STR_ARG(d->found), STR_ARG(d->rule->id),
               d->is_proposed ? " (proposed)" : "", STR_ARG(d->log->path),
               d->is_of_another || d->log_state != LOG_WHOLE ? ", which is " : "",
               d->is_of_another            ? "of another row"
               : d->log_state != LOG_WHOLE ? LOG_STATE_NAMES[d->log_state]
                                           : "");
}

static size_t add_state(const struct draft *draft, enum draft_state state, struct table *table)
{
    static const char *const NAMES[] = {"fits", "differs", "no log", "no row"};
    size_t n = 0;
    for (size_t idx = 0; idx < draft->n; idx++) {
        const struct draft_number *d = &draft->items[idx];
        if (d->state != state || d->is_repeated || n++ >= SHOWN_MAX) {
            continue;
        }
        TABLE_ADD(table, str_of(NAMES[state]),
                  table_text(table, "%.*s:%" PRId64, STR_ARG(d->document), d->line),
                  table_text(table, "%.*s %.*s", STR_ARG(d->printed), STR_ARG(d->unit)));
        if (state == DRAFT_UNPLACED) {
            table_addf(table, "not said: %.*s", STR_ARG(d->missing));
        } else {
            table_addf(table, "%.*s%s%.*s%s", STR_ARG(d->id), d->missing.len ? " (not said: " : "",
                       STR_ARG(d->missing), d->missing.len ? ")" : "");
        }
        add_found(table, d);
    }
    return n;
}

/* What was left out, and the option that would include it. */
static void say_left_out(struct new_maker *m, struct strbuf *text)
{
    static const char *const WHY[] = {
        [LEFT_NO_UNIT] = "numbers of speed whose table names no unit (--unit says it)",
        [LEFT_UNKNOWN_UNIT] = "numbers whose unit is not known",
        [LEFT_SCALED] = "rates in thousands or millions",
        [LEFT_PER_GPU] = "rates of one GPU of several",
        [LEFT_UNUSABLE] =
            "numbers that are NaN, infinite, not over 0, over 1e+12, in two units or malformed"};
    if (m->docs.n_left_out + m->log_files.n_left_out + m->draft.n_left_out > 0) {
        strbuf_printf(text,
                      "not looked at, over the limits of %d documents, %d logs and %d numbers: %zu "
                      "documents, %zu logs, %zu tables, rows and numbers; --below FOLDER narrows "
                      "it\n",
                      NEW_DOC_FILES_MAX, NEW_LOG_FILES_MAX, DRAFT_NUMBERS_MAX, m->docs.n_left_out,
                      m->log_files.n_left_out, m->draft.n_left_out);
    }
    for (int why = LEFT_NO_UNIT; why < DRAFT_READINGS; why++) {
        const struct draft_left *left = &m->draft.left[why];
        if (left->n) {
            strbuf_printf(text, "left out: %zu %s, the first \"%.*s\" of %.*s:%" PRId64 "\n",
                          left->n, WHY[why], STR_ARG(left->first), STR_ARG(left->document),
                          left->line);
        }
    }
    if (m->n_others) {
        strbuf_printf(
            text,
            "not read: %zu spreadsheets, notebooks and reStructuredText documents: export "
            "their tables as CSV or Markdown and commit them\n",
            m->n_others);
    }
}

/* Numbers of that state, or of any that has a log, which a proposed format read. */
static size_t count_proposed(const struct draft *draft, enum draft_state most)
{
    size_t n = 0;
    for (size_t idx = 0; idx < draft->n; idx++) {
        n += draft->items[idx].is_proposed && draft->items[idx].state <= most;
    }
    return n;
}

static int say(struct new_maker *m, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct table table;
    size_t n[4];
    size_t n_proposed = count_proposed(&m->draft, DRAFT_FITS);
    table = table_of("state|table|>printed|row|log");
    for (int state = DRAFT_FITS; state <= DRAFT_UNPLACED; state++) {
        n[state] = add_state(&m->draft, (enum draft_state)state, &table);
    }
    table_render(&table, &text);
    table_release(&table);
    strbuf_printf(&text, "(at most %d of each state are shown)\n\n", SHOWN_MAX);
    strbuf_printf(&text,
                  "%zu document%s; %zu log%s: %zu read, %zu by no format; formats proposed: %zu\n",
                  m->docs.n, plural_s(m->docs.n), m->log_files.n, plural_s(m->log_files.n),
                  m->logs.n, m->n_unread, m->made.n);
    say_left_out(m, &text);
    strbuf_printf(&text, "%zu numbers fit, %zu differ, %zu without log, %zu without a row\n",
                  n[DRAFT_FITS], n[DRAFT_DIFFERS], n[DRAFT_NO_LOG], n[DRAFT_UNPLACED]);
    if (n_proposed) {
        strbuf_printf(&text,
                      "of those that fit %zu stand on a proposed format, which nothing confirms\n",
                      n_proposed);
    }
    return cmd_print(strbuf_str(&text), err);
}

/* The local repository, or a clone of an address without its history. */
static int open_clone(struct new_maker *m, struct err *err)
{
    const char *from = m->from->clone;
    const char *folder = fs_join(m->arena, m->tmp, ".reperf-clone.git");
    const struct git_call call = {
        .args = GIT_ARGS("clone", "--quiet", "--bare", "--depth", "1", "--", from, folder),
        .deadline_ns = CLONE_LIMIT_NS};
    if (strstr(from, "://")) {
        m->git_dir = folder;
        return git_must(&m->git, &call, NULL, ERR_NET, err);
    }
    m->git_dir = git_dir_of(&m->git, from);
    return m->git_dir ? 0
                      : err_set(err, ERR_USAGE,
                                "%s: expected a git repository, bare or not, or its URL", from);
}

/* A name as reports have names: "PyTorch 2" is pytorch-2. */
static int take_name(struct new_maker *m, const char *option, struct str *name, struct err *err)
{
    struct str slug = name->ptr ? draft_slug(m->arena, *name) : STR_EMPTY;
    if (name->ptr && !slug.len) {
        return err_set(err, ERR_USAGE, "%s: expected a name of letters and digits, found \"%.*s\"",
                       option, STR_ARG(*name));
    }
    *name = slug;
    return 0;
}

/* The user's statements about all rows, in a report's words. */
static int take_given(struct new_maker *m, struct draft_attrs *given, struct str *ret_unit,
                      struct err *err)
{
    const struct vocabulary *words = m->formats.items[0]->vocabulary;
    const struct word *unit =
        m->from->unit ? words_find(&words->units, str_of(m->from->unit)) : NULL;
    const struct word *precision;
    *given = (struct draft_attrs){.gpus = m->from->gpus,
                                  .batch = m->from->batch,
                                  .gpus_per_node = m->from->gpus_per_node,
                                  .precision = str_of(m->from->precision),
                                  .framework = str_of(m->from->framework),
                                  .model = str_of(m->from->model)};
    precision = given->precision.ptr ? words_find(&words->precisions, given->precision) : NULL;
    if (m->from->unit && !(unit && str_eq_z(unit->dimension, "rate"))) {
        return err_set(err, ERR_USAGE,
                       "--unit: expected a unit of a rate, as images/s, found \"%s\"",
                       m->from->unit);
    }
    if (given->precision.ptr && !precision) {
        return err_set(err, ERR_USAGE,
                       "--precision: expected a precision, as fp32, amp or bf16, found \"%.*s\"",
                       STR_ARG(given->precision));
    }
    given->precision = precision ? precision->name : STR_EMPTY;
    *ret_unit = unit ? unit->name : STR_EMPTY;
    return take_name(m, "--model", &given->model, err) < 0
               ? -1
               : take_name(m, "--framework", &given->framework, err);
}

static int make(struct new_maker *m, struct err *err)
{
    struct draft_attrs given;
    struct draft_attrs of_name = {0};
    struct str unit;
    struct str series_sha256 = STR_EMPTY;
    bool has_rows = false;
    size_t n_left = 0;
    if (fs_exists(report_path(m))) {
        return err_set(err, ERR_USAGE, "%s exists already", report_path(m));
    }
    if (open_clone(m, err) < 0 || find_source(m, err) < 0 || list_files(m, err) < 0 ||
        load_formats(m->arena, m->ctx->root, &m->formats, err) < 0) {
        return -1;
    }
    if (take_given(m, &given, &unit, err) < 0) {
        return -1;
    }
    m->guesser = guesser_new(&m->formats);
    struct draft_reader *reader = draft_reader_new(m->arena, m->formats.items[0]->vocabulary, unit);
    int status = read_docs(m, reader, err);
    if (status == 0) {
        choose_logs(m);
        status = read_logs(m, reader, err);
    }
    if (status == 0) {
        draft_read_attrs(reader, m->repository, &of_name);
        given.framework = given.framework.ptr ? given.framework : of_name.framework;
        draft_match(m->arena, &m->logs, &given, &m->draft);
        has_rows = draft_has_rows(&m->draft);
        status = (has_rows && judge_draft(m, &series_sha256, err) < 0) || say(m, err) < 0 ? -1 : 0;
    }
    draft_reader_free(reader);
    if (status < 0) {
        return -1;
    }
    for (int why = LEFT_NO_UNIT; why < DRAFT_READINGS; why++) {
        n_left += m->draft.left[why].n;
    }
    if (!has_rows) {
        log_line(LOG_ERROR, "%s",
                 m->draft.n || n_left > 0
                     ? "no number has a unit and a row: nothing is written; --unit, "
                       "--model, --framework, --precision, --gpus and --batch say "
                       "what the tables do not"
                     : "no table prints a rate, a time or an accuracy: nothing is "
                       "written");
        return 1;
    }
    if (write_all(m, series_sha256, err) < 0) {
        return -1;
    }
    log_line(LOG_INFO, "%s: written; reperf audit %s and reperf lint %s go on", report_path(m),
             m->from->id, m->from->id);
    return count_proposed(&m->draft, DRAFT_DIFFERS) ? STATUS_PROPOSED : 0;
}

int new_from_clone(const struct cmd_ctx *ctx, const struct new_from *from, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(temp) struct temp *tmp = NULL;
    struct new_maker m = {.ctx = ctx, .from = from, .arena = &arena};
    if (temp_scratch(&tmp, err) < 0) {
        return -1;
    }
    m.tmp = tmp->path;
    m.git = (struct git){.arena = &arena, .clock = ctx->clock, .tmp_folder = tmp->path};
    m.made.items = arena_array(&arena, struct format *, ARRAY_LEN(m.made_text));
    int status = make(&m, err);
    guesser_free(m.guesser);
    format_set_release(&m.formats);
    format_set_release(&m.made);
    return status;
}
