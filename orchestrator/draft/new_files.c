/* SPDX-License-Identifier: Apache-2.0 */
/* The documents and logs of a git repository at its HEAD. */
#include "base/base.h"

#include "draft/new_parts.h"

#include "base/fs.h"
#include "base/map.h"
#include "judge/identity.h"
#include "log/numbers.h"

#define LOG_BYTES_MAX (64u << 20)

int new_git_line(struct new_maker *m, const char *const *args, struct str *ret, struct err *err)
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

bool new_doc_kind(struct str path, enum doc_kind *ret_kind)
{
    static const struct {
        const char *ends;
        enum doc_kind kind;
    } ROWS[] = {{".md .MD .markdown", DOC_MARKDOWN},
                {".html .htm", DOC_HTML},
                {".csv .tsv", DOC_CSV},
                {".rst", DOC_RST},
                {".ipynb", DOC_NOTEBOOK}};
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
    return new_doc_kind(path, &kind);
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
static bool is_plain(struct str path)
{
    struct str part;
    struct str rest = path;
    if (!path.len || path.ptr[0] == '/' || path.ptr[0] == '"' ||
        str_starts(path, STR_LIT(".reperf-"))) {
        return false;
    }
    while (rest.len && str_next(&rest, '/', &part)) {
        if (!part.len || str_eq_z(part, ".") || str_eq_z(part, "..")) {
            return false;
        }
    }
    return true;
}

/* "MODE blob HASH SIZE<tab>PATH"; links and submodules are left out. */
static void take_entry(struct new_maker *m, struct str line)
{
    struct err ignored = {0};
    struct str left;
    struct str mode;
    struct str type;
    struct str hash;
    int64_t size = 0;
    if (!str_next(&line, '\t', &left) || !is_plain(line) || !str_next(&left, ' ', &mode) ||
        !str_next(&left, ' ', &type) || !str_next(&left, ' ', &hash) ||
        !str_starts(mode, STR_LIT("100")) || !str_eq_z(type, "blob") ||
        str_to_i64(str_trim(left), 1, INT64_MAX, &size, &ignored) < 0 ||
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

int new_list_files(struct new_maker *m, struct err *err)
{
    CLEANUP(map) struct map seen = {0};
    struct str list;
    struct str rest;
    struct str line;
    if (new_git_line(m, GIT_ARGS("ls-tree", "-r", "-l", "HEAD"), &list, err) < 0) {
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
        m->n_sheets += ends_with_any(str_of(m->all.items[idx].path), ".xlsx .xls .ods") > 0;
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

/* Whether a path names the machine of a row; each machine is asked once. */
static bool names_machine(const struct draft *draft, struct map *machines, struct str path)
{
    for (size_t idx = 0; idx < draft->n + draft->n_others; idx++) {
        const struct draft_number *n =
            idx < draft->n ? &draft->items[idx] : &draft->others[idx - draft->n];
        const struct identity_machine_words row = {n->attrs.machine, n->attrs.model,
                                                   n->attrs.framework};
        if (row.machine.ptr && map_add(machines, row.machine, machines) &&
            identity_machine(&row, path) == ID_PROVEN) {
            return true;
        }
    }
    return false;
}

/* If there are too many: first those that by the words of their path are of a row, and last those that are of none. */
static void set_apart(struct new_maker *m, struct draft_reader *reader)
{
    for (size_t idx = 0; idx < m->log_files.n; idx++) {
        struct new_file *file = &m->log_files.items[idx];
        struct draft_attrs attrs = {0};
        CLEANUP(map) struct map machines = {0};
        draft_read_attrs(reader, str_of(file->path), &attrs);
        if (file->rank == RANK_NAMED && !draft_has_row_like(&m->draft, &attrs)) {
            file->rank = RANK_APART;
        } else if (file->rank == RANK_NAMED &&
                   names_machine(&m->draft, &machines, str_of(file->path))) {
            file->rank = RANK_ROW;
        }
    }
}

void new_choose_logs(struct new_maker *m, struct draft_reader *reader)
{
    CLEANUP(map) struct map linked = {0};
    struct new_files *logs = &m->log_files;
    for (size_t idx = 0; idx < m->draft.n + m->draft.n_others; idx++) {
        const struct draft_number *n =
            idx < m->draft.n ? &m->draft.items[idx] : &m->draft.others[idx - m->draft.n];
        struct str path = draft_link_path(m->arena, n->document, n->link);
        if (path.len) {
            (void)map_add(&linked, path, m);
        }
    }
    for (size_t idx = 0; idx < m->all.n; idx++) {
        struct new_file file = m->all.items[idx];
        struct str path = str_of(file.path);
        file.rank = rank_of(path);
        for (size_t len = path.len; len > 0 && file.rank != RANK_LINKED; len--) {
            bool is_end = len == path.len || path.ptr[len] == '/';
            if (is_end && map_get(&linked, str_sub(path, 0, len)) && !is_doc(path) &&
                (rank_of(path) != RANK_NONE || len == path.len)) {
                file.rank = RANK_LINKED;
            }
        }
        if (file.rank == RANK_NONE) {
            continue;
        }
        logs->n_left_out += file.size > LOG_BYTES_MAX;
        if (file.size <= LOG_BYTES_MAX) {
            logs->items[logs->n++] = file;
        }
    }
    if (logs->n > NEW_LOG_FILES_MAX) {
        set_apart(m, reader);
    }
    qsort(logs->items, logs->n, sizeof(logs->items[0]), compare_logs);
    cut(logs, NEW_LOG_FILES_MAX);
}

int new_bring(struct new_maker *m, const struct new_files *files, struct err *err)
{
    for (size_t idx = 0; idx < files->n; idx++) {
        const char *target = fs_join(m->arena, m->tmp, files->items[idx].path);
        const struct git_call call = {.git_dir = m->git_dir,
                                      .args = GIT_ARGS("cat-file", "blob", files->items[idx].hash),
                                      .output_path = target,
                                      .deadline_ns = NEW_GIT_LIMIT_NS};
        if (fs_mkdir_above(target, err) < 0 ||
            git_must(&m->git, &call, NULL, ERR_INTEGRITY, err) < 0) {
            return -1;
        }
    }
    return 0;
}
